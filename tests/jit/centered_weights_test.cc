#include "jit/product/centered_weights.h"

#include "jit/code/assembler.h"
#include "jit/product/product_s8.h"
#include "tests/jit/int8_cases.h"

namespace fuselite::jit::testing {
namespace {

using kernels::DepthRuns;

using Groups = std::vector<std::array<int64_t, 3>>;

Groups GroupsOf(const DepthRuns& depth, int64_t values, int64_t value_bytes,
                const std::vector<int64_t>& terms) {
  Groups groups;
  for (const TermGroup& group : GroupsOfTerms(depth, values, value_bytes, terms)) {
    groups.push_back({group.first, group.offset, group.length});
  }
  return groups;
}

TEST(CenteredWeightsTest, TermsAreFoundInTheirGroups) {
  // Two rows of windows of two runs, of 5 and 4 values.
  const DepthRuns depth{.outer = 2, .outer_step = 100, .runs = {{0, 5}, {20, 4}}};
  EXPECT_EQ(GroupsOf(depth, 4, 1, {1, 2, 4, 8, 9, 17}),
            (Groups{{0, 0, 4}, {4, 4, 1}, {5, 20, 4}, {9, 100, 4}, {14, 120, 4}}));
  EXPECT_EQ(GroupsOf(depth, 2, 2, {1, 4, 8, 17}),
            (Groups{{0, 0, 2}, {4, 8, 1}, {7, 24, 2}, {16, 124, 2}}));
}

void ExpectDivided(DataType type, int32_t zero_point, int8_t least) {
  constexpr int64_t kCount = 263;  // all bytes, and some again for the loops' ends
  std::vector<uint8_t> bytes(kCount), marks(kCount);
  std::iota(bytes.begin(), bytes.end(), 0);
  const std::array<const uint8_t*, 1> rows = {bytes.data()};
  const Centering centering(type, zero_point, least);
  CenteredRows centered(rows, kCount, centering);
  centering.MarkExcess(bytes.data(), marks);
  const uint8_t* const nearest = centered.nearest()[0];
  for (int64_t k = 0; k < kCount; ++k) {
    const int64_t value = type == DataType::kInt8 ? static_cast<int8_t>(bytes[k]) : bytes[k];
    const auto near = static_cast<int8_t>(nearest[k]);
    const auto excess = static_cast<int8_t>(centered.excess(0)[k]);
    ASSERT_EQ(near + excess, value - zero_point);
    ASSERT_GE(near, least);
    ASSERT_EQ(marks[k] != 0, excess != 0) << value << ", " << zero_point;
  }
}

TEST(CenteredWeightsTest, NearestAndExcessAddUp) {
  for (const DataType type : {DataType::kInt8, DataType::kUInt8}) {
    const int32_t low = type == DataType::kInt8 ? -128 : 0;
    for (int32_t zero_point = low + 1; zero_point < low + 256; ++zero_point) {
      for (const int8_t least : {-128, -127}) {
        ExpectDivided(type, zero_point, least);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

// Weights as converters leave them: near the zero point, and up to three at the far ends.
void PlaceOutliers(const OpTester& tester, Random& random) {
  const TestTensor& weights = tester.inputs[1];
  if (weights.info().type == DataType::kInt4) return;
  const int32_t low = weights.info().type == DataType::kInt8 ? -128 : 0, high = low + 255;
  const int32_t zero_point = tester.op.inputs[1].quantization.zero_point();
  weights.Fill(random, std::max(low, zero_point - 128), std::min(high, zero_point + 127));
  for (int64_t count = random.Int(0, 3); count > 0; --count) {
    const int64_t at = random.Int(0, weights.info().elements() - 1);
    const auto value = static_cast<uint8_t>(
        random.Pick<int32_t>({low, high, high - 1, static_cast<int32_t>(random.Int(low, high))}));
    weights.at<uint8_t>(at) = value;
  }
}

template <class Make>
void CompareOutliers(Make make) {
  const QuantizedProductCases cases = {
      .types = {DataType::kUInt8, DataType::kUInt8, DataType::kInt8}, .groups = true};
  kernels::testing::CompareRandomly(
      150,
      [&](Random& random) {
        OpTester tester = make(random, cases);
        PlaceOutliers(tester, random);
        return tester;
      },
      [](OpTester& tester, Random& random) {
        AddInt8Tail(tester, random);
        CompareInt8(tester, random);
        return 1;
      });
}

TEST(CenteredWeightsTest, ConvolutionsEqualTheReference) {
  CompareOutliers(kernels::testing::RandomQuantizedConv2D);
}

TEST(CenteredWeightsTest, FullyConnectedEqualsTheReference) {
  CompareOutliers(kernels::testing::RandomQuantizedFullyConnected);
}

TEST(CenteredWeightsTest, DepthwiseConvolutionsEqualTheReference) {
  CompareOutliers(kernels::testing::RandomQuantizedDepthwise);
}

// No pass over the activations before the product, whose zero point would need their sums.
TEST(CenteredWeightsTest, AFewOutliersCostNoPhase) {
  for (const Isa isa : EmittedIsas()) {
    if (isa.has(Feature::kAmxInt8)) continue;
    for (const int64_t outliers : {0, 1, 2}) {
      OpTester tester("CONV_2D");
      Random random(1);
      tester.params<kernels::Conv2DParams>().stride_h = 1;
      tester.params<kernels::Conv2DParams>().stride_w = 1;
      tester.Input(kernels::testing::AnyIntegers(random, DataType::kUInt8, {1, 7, 9, 48},
                                                 Quantization{{0.02f}, {117}}));
      const TestTensor weights = kernels::testing::AnyIntegers(
          random, DataType::kUInt8, {16, 1, 1, 48}, Quantization{{0.01f}, {117}});
      weights.Fill(random, 0, 244);
      for (int64_t i = 0; i < outliers; ++i) weights.at<uint8_t>(50 + 7 * i) = 255;
      tester.Constant(weights).Absent().Output(DataType::kUInt8, Quantization{{0.1f}, {100}});
      ASSERT_TRUE(tester.Infer().ok());
      CompareInt8(tester, random);
      const auto store = NewPackedStore();
      // Without dot products weights are int16.
      if (!isa.has_vnni()) continue;
      const auto kernel = PlanProductS8(tester.op, {.isa = isa});
      ASSERT_TRUE(kernel.ok()) << kernel.status().ToString();
      EXPECT_EQ(kernel->kernel().phases(), 1) << IsaName(isa);
    }
  }
}

}  // namespace
}  // namespace fuselite::jit::testing
