#include "tests/jit/jit_cases.h"
#include "tests/kernels/product_cases.h"

namespace fuselite::jit::testing {
namespace {

constexpr DataType kF32 = DataType::kFloat32;
// With fewer rows the emitted kernels do not pack weights that are run-time values.
constexpr int32_t kMinRows = 4;

TEST(JitFullyConnectedTest, AgreesWithTheReference) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = kernels::testing::RandomFullyConnected(random, kMinRows);
    ASSERT_TRUE(tester.Infer().ok());
    kernels::testing::AddRandomTail(tester, random);
    const auto bounds = kernels::testing::ProductBounds<kernels::FullyConnectedParams>(
        tester, tester.op.inputs[1].shape.dim(-1));
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
    auto kernel = candidate.Build(tester.op, {{.isa = isa}, store.get()});
    EXPECT_EQ(kernel.status().code(), StatusCode::kUnsupported);
  }
}

TEST(JitBatchMatMulTest, AgreesWithTheReference) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = kernels::testing::RandomBatchMatMul(random, true, kMinRows);
    ASSERT_TRUE(tester.Infer().ok());
    kernels::testing::AddRandomTail(tester, random);
    const auto bounds = kernels::testing::Bounds(tester, kernels::testing::BatchMatMulDepth(tester),
                                                 [](OpTester&) {});
    CompareJit(tester, bounds, random);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace fuselite::jit::testing
