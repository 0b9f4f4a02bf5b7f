// Products of bytes in pairs, without dot products: to the bit of the reference, with weights and
// values at the ends of their range, of which sums of 16 bits hold none or all.
#include <string>
#include <vector>

#include "jit/product/product_s8.h"
#include "tests/jit/int8_cases.h"

namespace fuselite::jit::testing {
namespace {

using kernels::testing::RandomQuantization;

// How large weights are: all small, as those of trained layers; of any size; at the ends.
enum class Weights { kSmall, kAny, kEnds };

int8_t RandomWeight(Random& random, Weights kind) {
  if (kind == Weights::kEnds) return static_cast<int8_t>(random.Pick<int64_t>({-127, 127}));
  const bool large = kind == Weights::kAny || random.Chance(0.01);
  const int64_t most = large ? 127 : 60;
  return static_cast<int8_t>(random.Int(-most, most));
}

// Values of any size, or all at one end, or each at one of them.
void FillValues(TestTensor& values, Random& random) {
  const auto kind = random.Int(0, 3);
  const auto end = static_cast<uint8_t>(random.Pick<int64_t>({0, 127, 128, 255}));
  for (int64_t i = 0; i < values.info().elements(); ++i) {
    values.at<uint8_t>(i) = kind == 0   ? end
                            : kind == 1 ? static_cast<uint8_t>(random.Pick<int64_t>({127, 128}))
                                        : static_cast<uint8_t>(random.Int(0, 255));
  }
}

OpTester RandomProduct(Random& random, Weights kind, const Shape& input, int32_t units) {
  const DataType type = DataType::kInt8;
  const int32_t depth = input[3], width = input[2];
  TestTensor values({.type = type,
                     .shape = input,
                     .quantization = RandomQuantization(random, 1, false, -128, 127)},
                    random.Int(0, 3));
  FillValues(values, random);
  TestTensor weights({.type = type,
                      .shape = {units, 1, 1, depth},
                      .quantization = RandomQuantization(random, units, true, 0, 0)});
  for (int64_t i = 0; i < weights.info().elements(); ++i) {
    weights.at<int8_t>(i) = RandomWeight(random, kind);
  }
  OpTester tester("CONV_2D");
  auto& params = tester.params<kernels::Conv2DParams>();
  params.padding = random.Pick({kernels::Padding::kSame, kernels::Padding::kValid});
  params.stride_w = params.stride_h = random.Chance(0.2) && width > 6 ? 2 : 1;
  params.dilation_w = params.dilation_h = 1;
  tester.Input(values).Constant(weights);
  tester.Constant(RandomTensor(random, {.type = DataType::kInt32, .shape = {units}}, 4));
  Quantization output = RandomQuantization(random, 1, false, -128, 127);
  output.scales = {output.scale() * 40};
  tester.Output(type, output);
  return tester;
}

OpTester RandomProduct(Random& random, Weights kind) {
  const auto depth = static_cast<int32_t>(4 * random.Int(8, 50));
  const auto units = static_cast<int32_t>(random.Int(32, 90));
  const auto width = static_cast<int32_t>(random.Int(1, 9)), height = (16 + width) / width;
  return RandomProduct(random, kind, {1, height, width, depth}, units);
}

bool IsOfBytePairs(const OpTester& tester) {
  const auto d = tester.op.op->product(tester.op);
  return d.ok() && FitsBytePairs(tester.op, *d, Isa::kAvx2);
}

TEST(JitBytePairsTest, ProductsEqualTheReference) {
  int of_pairs = 0;
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = RandomProduct(random, random.Chance(0.7) ? Weights::kSmall : Weights::kAny);
    ASSERT_TRUE(tester.Infer().ok());
    of_pairs += IsOfBytePairs(tester) ? 1 : 0;
    AddInt8Tail(tester, random);
    CompareInt8(tester, random);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(of_pairs, 60);
}

// Weights that saturate by the pair, of which there are too many for a layer of pairs, in those few
// channels that a sample does not see.
TEST(JitBytePairsTest, ChannelsAtTheEndsEqualTheReference) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = RandomProduct(random, Weights::kSmall);
    TestTensor& weights = tester.inputs[1];
    const int64_t depth = weights.info().shape[3];
    for (int64_t channel = random.Int(0, 7); channel < weights.info().shape[0]; channel += 23) {
      for (int64_t k = 0; k < depth; ++k) {
        weights.at<int8_t>(channel * depth + k) = RandomWeight(random, Weights::kEnds);
      }
    }
    ASSERT_TRUE(tester.Infer().ok());
    CompareInt8(tester, random);
    if (::testing::Test::HasFailure()) return;
  }
}

// Lines of one row by weights beyond 32 KiB, whose constants lie apart from them elsewhere.
TEST(JitBytePairsTest, LinesOfOneRowEqualTheReference) {
  for (const Shape& input : {Shape{1, 40, 1, 260}, Shape{1, 40, 2, 260}, Shape{40, 1, 1, 260}}) {
    Random random(input[2]);
    OpTester tester = RandomProduct(random, Weights::kSmall, input, 160);
    tester.params<kernels::Conv2DParams>().stride_w = input[2];
    tester.params<kernels::Conv2DParams>().stride_h = input[2];
    ASSERT_TRUE(tester.Infer().ok());
    EXPECT_TRUE(IsOfBytePairs(tester));
    CompareInt8(tester, random);
  }
}

TEST(JitBytePairsTest, WhichProductsAreOfPairs) {
  Random random(1);
  const auto fits = [&](Weights kind, auto change) {
    OpTester tester = RandomProduct(random, kind);
    change(tester);
    EXPECT_TRUE(tester.Infer().ok());
    return IsOfBytePairs(tester);
  };
  const auto as_is = [](OpTester&) {};
  EXPECT_TRUE(fits(Weights::kSmall, as_is));
  EXPECT_FALSE(fits(Weights::kEnds, as_is));
  // -128 has no opposite.
  EXPECT_FALSE(
      fits(Weights::kSmall, [](OpTester& t) { t.inputs[1].template at<int8_t>(7) = -128; }));
}

}  // namespace
}  // namespace fuselite::jit::testing
