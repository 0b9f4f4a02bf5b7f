#include "kernels/numbers/quantization.h"
#include "tests/jit/int8_cases.h"
#include "tests/runtime/counting_store.h"

namespace fuselite::jit::testing {
namespace {

TEST(JitProductInt8Test, ConvolutionsEqualTheReference) {
  CompareInt8Cases(150, kernels::testing::RandomQuantizedConv2D);
}

TEST(JitProductInt8Test, ExtremeChannelsEqualTheReference) {
  CompareExtremeCases(150, false, kernels::testing::RandomQuantizedConv2D);
  CompareExtremeCases(50, true, kernels::testing::RandomQuantizedConv2D);
  CompareExtremeCases(50, true, kernels::testing::RandomQuantizedFullyConnected);
}

TEST(JitProductInt8Test, FullyConnectedEqualsTheReference) {
  CompareInt8Cases(100, kernels::testing::RandomQuantizedFullyConnected);
}

TEST(JitProductInt8Test, BatchMatMulEqualsTheReference) {
  CompareInt8Cases(100, [](Random& random, QuantizedProductCases cases) {
    cases.types = {DataType::kInt8};
    cases.min_lines = 4;
    return kernels::testing::RandomQuantizedBatchMatMul(random, cases);
  });
}

TEST(JitProductInt8Test, HeadsMatMulEqualsTheReference) {
  CompareInt8Cases(100, [](Random& random, const QuantizedProductCases&) {
    return kernels::testing::RandomQuantizedHeadsMatMul(random);
  });
}

TEST(JitProductInt8Test, TransposedConvolutionsEqualTheReference) {
  CompareInt8Cases(100, RandomTransposeConvOfBytes);
}

// With few pixels, some parts have a single row of sums, whose constants lie apart from its
// weights, and others have several, whose constants lie beside them.
TEST(JitProductInt8Test, PartsOfASingleRowBesideLargerOnes) {
  using kernels::testing::RandomQuantization;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const auto depth = static_cast<int32_t>(random.Int(300, 1200));
    const auto units = static_cast<int32_t>(random.Int(8, 40));
    const auto size = static_cast<int32_t>(random.Int(3, 5)), pixels = (size + 2) / 3;
    const TestTensor image =
        RandomTensor(random, {.type = DataType::kInt8,
                              .shape = {1, pixels, pixels, depth},
                              .quantization = RandomQuantization(random, 1, false, -128, 127)});
    const TestTensor filter =
        RandomTensor(random, {.type = DataType::kInt8,
                              .shape = {units, 4, 4, depth},
                              .quantization = RandomQuantization(random, units, true, 0, 0)});
    OpTester tester = kernels::testing::TransposeConvOf({1, size, size, units}, filter, image,
                                                        kernels::Padding::kSame, 3, 3);
    tester.Constant(RandomTensor(random, {.type = DataType::kInt32, .shape = {units}}, 4));
    Quantization output = RandomQuantization(random, 1, false, -128, 127);
    output.scales = {output.scale() * 50};
    tester.Output(DataType::kInt8, output);
    ASSERT_TRUE(tester.Infer().ok());
    CompareInt8(tester, random);
  }
}

// Masks that heads share, and the branches of a block: no pass over what was stored.
TEST(JitProductInt8Test, ResidualsAreEmitted) {
  for (const Isa isa : EmittedIsas()) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      Random random(seed);
      SCOPED_TRACE(random.Trace());
      OpTester tester("BATCH_MATMUL");
      const auto rows = static_cast<int32_t>(random.Int(4, 40));
      const auto columns = static_cast<int32_t>(16 * random.Int(1, 5));
      const Quantization quantization{{0.05f}, {3}};
      for (const Shape& shape : {Shape{6, rows, 32}, Shape{6, 32, columns}}) {
        tester.Input(kernels::testing::AnyIntegers(random, DataType::kInt8, shape, quantization));
      }
      tester.Output(DataType::kInt8, {{2.0f}, {-5}});
      ASSERT_TRUE(tester.Infer().ok());
      tester.op.tail.rows_per_batch = rows;
      const int64_t residuals = random.Int(1, 3);
      for (int64_t i = 0; i < residuals; ++i) {
        AddResidual(tester, random, random.Chance(0.3));
        kernels::QuantizedAdd& add = tester.op.tail.stages.back().add;
        for (int32_t* shift : {&add.x_shift, &add.y_shift}) *shift = std::min(*shift, -1);
      }
      const auto kernel = CandidatesFor(*tester.op.op)[0].Build(tester.op, {{.isa = isa}});
      ASSERT_TRUE(kernel.ok()) << kernel.status().ToString();
      EXPECT_EQ((*kernel)->name().find("apart"), std::string_view::npos) << (*kernel)->name();
      CompareInt8(tester, random);
    }
  }
}

// The steps of an unrolled recurrent network: rows with scales and zero points of their own.
TEST(JitProductInt8Test, RowsShareWeightsWhateverTheirScales) {
  if (!CanBuildFor(Isa::kAvx2)) GTEST_SKIP() << "this machine cannot pack the weights";
  constexpr int32_t kUnits = 512, kDepth = 128;
  Random random(1);
  const TestTensor weights = kernels::testing::AnyIntegers(
      random, DataType::kInt8, {kUnits, kDepth}, Quantization{{0.01f}, {0}});
  for (const Isa isa : EmittedIsas()) {
    CountingStore store;
    std::vector<std::shared_ptr<const Kernel>> kernels;
    for (const int32_t zero_point : {-7, 3, 40}) {
      OpTester tester("FULLY_CONNECTED");
      const float scale = 0.02f + 0.001f * static_cast<float>(zero_point + 7);
      tester.Input(kernels::testing::AnyIntegers(random, DataType::kInt8, {1, kDepth},
                                                 Quantization{{scale}, {zero_point}}));
      tester.Constant(weights);
      tester.Output(DataType::kInt8, Quantization{{scale * 3}, {-zero_point}});
      ASSERT_TRUE(tester.Infer().ok());
      CompareInt8(tester, random);
      const kernels::BuildContext context({.isa = isa}, &store);
      const size_t before = store.bytes;
      auto kernel = CandidatesFor(*tester.op.op)[0].Build(tester.op, context);
      ASSERT_TRUE(kernel.ok()) << IsaName(isa) << ": " << kernel.status().ToString();
      const bool whole = store.bytes - before >= size_t{kUnits} * kDepth;
      EXPECT_EQ(whole, kernels.empty()) << IsaName(isa) << ": " << store.bytes - before;
      kernels.push_back(*std::move(kernel));
    }
  }
}

// The kernel of the first candidate that takes the operation.
Result<std::shared_ptr<const Kernel>> FirstEmitted(const kernels::OpDescription& op,
                                                   const kernels::BuildContext& context) {
  Status refusal;
  for (const kernels::Candidate& candidate : CandidatesFor(*op.op)) {
    auto kernel = candidate.Build(op, context);
    if (kernel.ok()) return kernel;
    refusal = kernel.status();
  }
  return refusal;
}

// Code of every level is emitted, also where this machine does not run it, as long as it can pack.
TEST(JitProductInt8Test, EveryLevelIsEmitted) {
  if (!CanBuildFor(Isa::kAvx2)) GTEST_SKIP() << "this machine cannot pack the weights";
  for (const Isa isa : {Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512, Isa::kAvx512Vnni, Isa::kAmx}) {
    if (!CanBuildFor(isa)) continue;
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      Random random(seed);
      SCOPED_TRACE(random.Trace());
      OpTester tester = random.Chance(0.5)
                            ? kernels::testing::RandomQuantizedDepthwise(random, kBytes)
                            : kernels::testing::RandomQuantizedConv2D(random, kBytes);
      ASSERT_TRUE(tester.Infer().ok());
      AddInt8Tail(tester, random);
      const auto store = NewPackedStore();
      const auto kernel = FirstEmitted(tester.op, {{.isa = isa}, store.get()});
      ASSERT_TRUE(kernel.ok()) << IsaName(isa) << ": " << kernel.status().ToString();
      EXPECT_NE((*kernel)->name().find(" jit"), std::string_view::npos) << (*kernel)->name();
    }
  }
}

// The narrow form of jit/tail/requantization.h, in scalar code, against the two roundings.
TEST(JitProductInt8Test, OneShiftRoundsAsTwo) {
  Random random(1);
  for (int i = 0; i < 1000000; ++i) {
    const auto multiplier = static_cast<int32_t>(random.Int(1 << 30, INT32_MAX));
    const auto e = static_cast<int32_t>(random.Int(0, 20));
    auto sum = static_cast<int32_t>(random.Int(-(1 << 28) + 1, (1 << 28) - 1));
    sum >>= random.Int(0, 27);
    if (e > 0 && random.Chance(0.5)) {  // near a tie of the second rounding
      const int64_t tie = (random.Int(-200, 200) * 2 + 1) << (e - 1);
      const int64_t near = (tie << 31) / multiplier + random.Int(-2, 2);
      if (std::abs(near) < 1 << 28) sum = static_cast<int32_t>(near);
    }
    const auto zero_point = static_cast<int32_t>(random.Int(-128, 255));
    const auto y = static_cast<int32_t>((int64_t{sum} * 4 * multiplier) >> 32);
    const int32_t constant = 1 + (e > 0 ? 1 << e : 0) + zero_point * (1 << (e + 1));
    const int32_t once = (y + constant - (sum < 0 && e > 0 ? 2 : 0)) >> (e + 1);
    ASSERT_EQ(kernels::MultiplyByQuantizedMultiplier(sum, multiplier, -e) + zero_point, once)
        << sum << " * " << multiplier << " >> " << e;
  }
}

}  // namespace
}  // namespace fuselite::jit::testing
