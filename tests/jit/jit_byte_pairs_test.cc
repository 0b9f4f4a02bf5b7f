// Products of bytes in pairs, without dot products: to the bit of the reference, with weights and
// values at the ends of their range, of which sums of 16 bits hold none or all.
#include <algorithm>
#include <array>

#include "jit/product/product_s8.h"
#include "tests/jit/int8_cases.h"
#include "tests/kernels/transpose_conv_cases.h"

namespace fuselite::jit::testing {
namespace {

using kernels::testing::RandomQuantization;

// How large weights are, less their zero point: all tiny or small, as those of trained layers; of
// any size; at the ends.
enum class Weights { kTiny, kSmall, kAny, kEnds };

int64_t RandomWeight(Random& random, Weights kind) {
  if (kind == Weights::kEnds) return random.Pick<int64_t>({-127, 127});
  const bool large = kind == Weights::kAny || random.Chance(0.01);
  const int64_t most = large ? 127 : kind == Weights::kTiny ? 30 : 60;
  return random.Int(-most, most);
}

int64_t Depth(const TestTensor& weights) {
  return weights.info().elements() / weights.info().shape[0];
}

// Whether weights of a few terms are beyond those of int8, or have no opposite there.
enum class Outliers { kNone, kFew };

void FillWeights(TestTensor& weights, Random& random, Weights kind, Outliers outliers) {
  const TensorInfo& info = weights.info();
  const bool is_signed = info.type == DataType::kInt8;
  const int64_t low = is_signed ? -128 : 0, zero_point = info.quantization.zero_point();
  const auto set = [&](int64_t i, int64_t difference) {
    const int64_t value = std::clamp(zero_point + difference, low, low + 255);
    weights.at<uint8_t>(i) = static_cast<uint8_t>(value);
  };
  for (int64_t i = 0; i < info.elements(); ++i) set(i, RandomWeight(random, kind));
  const int64_t depth = Depth(weights);
  const int64_t outlying = outliers == Outliers::kNone ? 0 : random.Int(0, depth / 40);
  for (int64_t t = 0; t < outlying; ++t) {
    const int64_t term = random.Int(0, depth - 1);
    for (int64_t n = 0; n < info.shape[0]; ++n) {
      if (random.Chance(0.1)) set(n * depth + term, random.Pick<int64_t>({-255, -128, 255}));
    }
  }
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

TestTensor RandomValues(Random& random, DataType type, const Shape& shape) {
  const int64_t low = type == DataType::kInt8 ? -128 : 0;
  TestTensor values({.type = type,
                     .shape = shape,
                     .quantization = RandomQuantization(random, 1, false, low, low + 255)},
                    random.Int(0, 3));
  FillValues(values, random);
  return values;
}

// int8 has a scale for each channel, uint8 a zero point.
TestTensor RandomWeights(Random& random, Weights kind, DataType type, const Shape& shape,
                         Outliers outliers = Outliers::kFew) {
  const bool is_signed = type == DataType::kInt8;
  const int64_t zero_point = is_signed ? 0 : random.Pick<int64_t>({1, 90, 127, 128, 150, 255});
  TestTensor weights(
      {.type = type,
       .shape = shape,
       .quantization = RandomQuantization(random, shape[0], is_signed, zero_point, zero_point)});
  FillWeights(weights, random, kind, outliers);
  return weights;
}

void AddOutput(OpTester& tester, Random& random, DataType type) {
  const int64_t low = type == DataType::kInt8 ? -128 : 0;
  Quantization output = RandomQuantization(random, 1, false, low, low + 255);
  output.scales = {output.scale() * 40};
  tester.Output(type, output);
}

// `filter`: height and width.
struct Sizes {
  Shape input;
  int32_t units;
  std::array<int32_t, 2> filter = {1, 1};
};

OpTester RandomProduct(Random& random, Weights kind, const Sizes& sizes,
                       DataType type = DataType::kInt8) {
  const auto [height, width] = sizes.filter;
  OpTester tester("CONV_2D");
  auto& params = tester.params<kernels::Conv2DParams>();
  params.padding = random.Pick({kernels::Padding::kSame, kernels::Padding::kValid});
  params.stride_w = params.stride_h = random.Chance(0.3) && sizes.input[2] > 6 ? 2 : 1;
  params.dilation_w = params.dilation_h = 1;
  tester.Input(RandomValues(random, type, sizes.input));
  tester.Constant(RandomWeights(random, kind, type, {sizes.units, height, width, sizes.input[3]}));
  tester.Constant(RandomTensor(random, {.type = DataType::kInt32, .shape = {sizes.units}}, 4));
  AddOutput(tester, random, type);
  return tester;
}

OpTester RandomProduct(Random& random, Weights kind) {
  const auto depth = static_cast<int32_t>(4 * random.Int(8, 50));
  const auto units = static_cast<int32_t>(random.Int(16, 90));
  const auto width = static_cast<int32_t>(random.Int(1, 9)), height = (16 + width) / width;
  return RandomProduct(random, kind, {{1, height, width, depth}, units});
}

// Of windows whose runs are whole groups or not, with strides or without.
OpTester RandomWindows(Random& random, Weights kind, DataType type) {
  const auto side = [&] { return static_cast<int32_t>(random.Int(1, 5)); };
  const auto depth = static_cast<int32_t>(random.Int(1, 40));
  const auto units = static_cast<int32_t>(random.Int(16, 60));
  const auto height = static_cast<int32_t>(random.Int(5, 9));
  const auto width = static_cast<int32_t>(random.Int(5, 12));
  return RandomProduct(random, kind, {{1, height, width, depth}, units, {side(), side()}}, type);
}

OpTester RandomTransposed(Random& random, Weights kind) {
  const DataType type = DataType::kInt8;
  const auto side = static_cast<int32_t>(random.Int(4, 7));
  const auto stride = static_cast<int32_t>(random.Int(1, 2));
  const auto filter = static_cast<int32_t>(random.Int(stride, 4));
  const auto depth = static_cast<int32_t>(random.Int(32, 60));
  const auto units = static_cast<int32_t>(random.Int(16, 40));
  const TestTensor weights =
      RandomWeights(random, kind, type, {units, filter, filter, depth}, Outliers::kNone);
  OpTester tester = kernels::testing::TransposeConvOf(
      {1, side * stride, side * stride, units}, weights,
      RandomValues(random, type, {1, side, side, depth}), kernels::Padding::kSame, stride, stride);
  AddOutput(tester, random, type);
  return tester;
}

bool IsOfBytePairs(const OpTester& tester) {
  const auto d = tester.op.op->product(tester.op);
  return d.ok() && TermsOfBytePairs(tester.op, *d, Isa::kAvx2);
}

// How many of such products were of byte pairs.
template <class Make>
int CompareProducts(uint64_t count, Make make) {
  int of_pairs = 0;
  for (uint64_t seed = 1; seed <= count; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const Weights kind =
        random.Pick({Weights::kTiny, Weights::kSmall, Weights::kSmall, Weights::kAny});
    OpTester tester = make(random, kind);
    EXPECT_TRUE(tester.Infer().ok());
    of_pairs += IsOfBytePairs(tester) ? 1 : 0;
    AddInt8Tail(tester, random);
    CompareInt8(tester, random);
    if (::testing::Test::HasFailure()) return of_pairs;
  }
  return of_pairs;
}

TEST(JitBytePairsTest, ProductsEqualTheReference) {
  const int of_pairs = CompareProducts(
      120, [](Random& random, Weights kind) { return RandomProduct(random, kind); });
  EXPECT_GT(of_pairs, 60);
}

TEST(JitBytePairsTest, WindowsEqualTheReference) {
  const int of_pairs = CompareProducts(150, [](Random& random, Weights kind) {
    return RandomWindows(random, kind, random.Pick({DataType::kInt8, DataType::kUInt8}));
  });
  EXPECT_GT(of_pairs, 45);
}

TEST(JitBytePairsTest, TransposedConvolutionsEqualTheReference) {
  EXPECT_GT(CompareProducts(60, RandomTransposed), 20);
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
        weights.at<uint8_t>(channel * depth + k) =
            static_cast<uint8_t>(RandomWeight(random, Weights::kEnds));
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
    OpTester tester = RandomProduct(random, Weights::kSmall, {input, 160});
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
  // -128 has no opposite: a term is multiplied twice, but not most of them.
  const auto without_opposite = [&](int64_t terms) {
    return fits(Weights::kSmall, [&](OpTester& tester) {
      for (int64_t k = 0; k < terms; ++k) tester.inputs[1].at<int8_t>(k) = -128;
    });
  };
  EXPECT_TRUE(without_opposite(1));
  EXPECT_FALSE(without_opposite(20));
}

}  // namespace
}  // namespace fuselite::jit::testing
