#include "kernels/batch_matmul/batch_matmul.h"
#include "kernels/fully_connected/fully_connected.h"
#include "tests/jit/jit_cases.h"

namespace fuselite::jit::testing {
namespace {

using kernels::Activation;
using kernels::BatchMatMulParams;
using kernels::FullyConnectedParams;

constexpr DataType kF32 = DataType::kFloat32;

TEST(JitFullyConnectedTest, AgreesWithTheReference) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester("FULLY_CONNECTED");
    tester.params<FullyConnectedParams>().activation =
        random.Pick({Activation::kNone, Activation::kRelu, Activation::kTanh});
    const auto depth = static_cast<int32_t>(random.Int(1, 150));
    const auto units = static_cast<int32_t>(random.Int(1, 200));
    const bool constant = random.Chance(0.7);
    const TestTensor input(
        {.type = kF32,
         .shape = {constant ? random.Pick({1, 1, 2, 7, 40}) : random.Pick({4, 19}), depth},
         .row_pitch = random.Chance(0.3) ? depth + random.Int(1, 9) : 0},
        4 * random.Int(0, 3));
    input.Fill(random, -1, 1);
    tester.Input(input);
    const TestTensor weights({.type = kF32, .shape = {units, depth}}, 4 * random.Int(0, 3));
    weights.Fill(random, -1, 1);
    constant ? tester.Constant(weights) : tester.Input(weights);
    if (random.Chance(0.7)) {
      const TestTensor bias({.type = kF32, .shape = {units}}, 4);
      bias.Fill(random, -1, 1);
      constant ? tester.Constant(bias) : tester.Input(bias);
    }
    ASSERT_TRUE(tester.Infer().ok());
    kernels::testing::AddRandomTail(tester, random);
    const auto bounds = kernels::testing::Bounds(tester, depth, [](OpTester& plain) {
      plain.params<FullyConnectedParams>().activation = Activation::kNone;
    });
    CompareJit(tester, bounds, random);
    if (HasFailure()) return;
  }
}

TEST(JitFullyConnectedTest, RefusesToPackForFewRows) {
  OpTester tester("FULLY_CONNECTED");
  tester.Input(TestTensor({.type = kF32, .shape = {1, 8}}));
  tester.Input(TestTensor({.type = kF32, .shape = {3, 8}}));
  ASSERT_TRUE(tester.Infer().ok());
  const auto& candidate = *FloatCandidate(*tester.op.op);
  const std::unique_ptr<PackedStore> store = NewPackedStore();
  for (Isa isa : EmittedIsas()) {
    auto kernel = candidate.build(tester.op, {.isa = isa, .store = store.get()});
    EXPECT_EQ(kernel.status().code(), StatusCode::kUnsupported);
  }
}

TEST(JitBatchMatMulTest, AgreesWithTheReference) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester("BATCH_MATMUL");
    auto& params = tester.params<BatchMatMulParams>();
    params.adj_y = random.Chance(0.5);
    const auto rows = static_cast<int32_t>(random.Int(4, 40));
    const auto depth = static_cast<int32_t>(random.Int(1, 70));
    const auto columns = static_cast<int32_t>(random.Int(1, 70));
    const auto matrix = [&](Shape batches, int32_t outer, int32_t inner, bool adjoint) {
      if (adjoint) std::swap(outer, inner);
      batches.push_back(outer);
      batches.push_back(inner);
      const TestTensor tensor({.type = kF32,
                               .shape = batches,
                               .row_pitch = random.Chance(0.3) ? inner + random.Int(1, 9) : 0},
                              4 * random.Int(0, 3));
      tensor.Fill(random, -1, 1);
      return tensor;
    };
    const bool broadcast = random.Chance(0.4);
    tester.Input(matrix(broadcast ? Shape{2, 1} : Shape{2, 3}, rows, depth, false));
    const TestTensor y = matrix(random.Pick({Shape{}, Shape{3}, Shape{1, 3}, Shape{2, 3}}), depth,
                                columns, params.adj_y);
    y.info().row_pitch == 0 && random.Chance(0.4) ? tester.Constant(y) : tester.Input(y);
    ASSERT_TRUE(tester.Infer().ok());
    kernels::testing::AddRandomTail(tester, random);
    const auto bounds = kernels::testing::Bounds(tester, depth, [](OpTester&) {});
    CompareJit(tester, bounds, random);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace fuselite::jit::testing
