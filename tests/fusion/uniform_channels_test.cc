// Channels that all pixels share before a convolution of 1x1, and each reason why not.
#include "fusion/rewrites/rewrites.h"
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Property;

constexpr int kHeight = 11, kWidth = 13, kFeatures = 40;

Attributes AlongChannels(int axis = 3) { return {{"axis", axis}}; }

// A pixel of `channels` features of each of the images, repeated at all places.
ValueId Repeated(GraphBuilder& b, int images, int channels,
                 std::string_view how = "RESIZE_BILINEAR") {
  const ValueId pixel = b.Op("TANH", {b.Input({images, 1, 1, channels})});
  if (how == "BROADCAST_TO") {
    return b.Op(how, {pixel, b.Ints({images, kHeight, kWidth, channels})});
  }
  if (how == "TILE") return b.Op(how, {pixel, b.Ints({1, kHeight, kWidth, 1})});
  return b.Op(how, {pixel, b.Ints({kHeight, kWidth})});
}

ValueId Features(GraphBuilder& b, int images, int channels = kFeatures) {
  return b.Input({images, kHeight, kWidth, channels});
}

bool Splits(const Outcome& outcome) {
  const auto says = Contains(Property(&RewriteRecord::ToString,
                                      HasSubstr("multiply channels that all pixels share once")));
  return ::testing::Matches(says)(outcome.report.rewrites);
}

bool Splits(GraphBuilder& b, ValueId output) {
  b.Output(output);
  return Splits(ExpectFusedEqualsUnfused(b.graph(), 1e-4f));
}

TEST(SplitUniformChannels, HoweverThePixelIsRepeated) {
  for (const char* how : {"RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "BROADCAST_TO", "TILE"}) {
    SCOPED_TRACE(how);
    GraphBuilder b;
    const ValueId joined =
        b.Op("CONCATENATION", {Repeated(b, 1, 48, how), Features(b, 1)}, AlongChannels());
    b.Output(b.Conv(joined, 32, 1, {{"fused_activation_function", kRelu}}));
    const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 1e-4f);
    EXPECT_TRUE(Splits(outcome));
    // TANH, the pixel's sums, and the layer with these in its tail.
    EXPECT_EQ(outcome.report.steps.size(), 3u);
  }
}

TEST(SplitUniformChannels, AmongSeveralOperandsOfSeveralImages) {
  for (const size_t place : {0u, 1u, 2u}) {
    GraphBuilder b;
    std::vector<ValueId> operands = {Features(b, 2, 5), Features(b, 2, 18)};
    operands.insert(operands.begin() + static_cast<std::ptrdiff_t>(place), Repeated(b, 2, 41));
    EXPECT_TRUE(Splits(b, b.Conv(b.Op("CONCATENATION", operands, AlongChannels(-1)), 37, 1)));
  }
}

TEST(SplitUniformChannels, OfTwoPixels) {
  GraphBuilder b;
  const ValueId joined = b.Op(
      "CONCATENATION", {Repeated(b, 1, 40), Features(b, 1), Repeated(b, 1, 56)}, AlongChannels());
  b.Output(b.Conv(joined, 48, 1));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 1e-4f);
  EXPECT_TRUE(Splits(outcome));
  // Two of TANH, the sums of both pixels together, and the layer.
  EXPECT_EQ(outcome.report.steps.size(), 4u);
}

TEST(SplitUniformChannels, OfLayersThatStep) {
  GraphBuilder b;
  const ValueId joined =
      b.Op("CONCATENATION", {Features(b, 1), Repeated(b, 1, 128)}, AlongChannels());
  EXPECT_TRUE(Splits(b, b.Conv(joined, 64, 1, {{"stride_h", 2}, {"stride_w", 3}})));
}

TEST(SplitUniformChannels, OfLayersWithoutABias) {
  GraphBuilder b;
  const ValueId joined =
      b.Op("CONCATENATION", {Features(b, 1), Repeated(b, 1, 64)}, AlongChannels());
  const ValueId weights = b.Constant({32, 1, 1, kFeatures + 64});
  EXPECT_TRUE(Splits(b, b.ConvBy(joined, weights)));
}

// --- It stays as it is ---

TEST(SplitUniformChannels, NotWhereLittleIsSpared) {
  GraphBuilder b;
  const ValueId joined =
      b.Op("CONCATENATION", {Features(b, 1), Repeated(b, 1, 8)}, AlongChannels());
  EXPECT_FALSE(Splits(b, b.Conv(joined, 16, 1)));
}

TEST(SplitUniformChannels, NotOfWindowsOfSeveralPixels) {
  GraphBuilder b;
  const ValueId joined =
      b.Op("CONCATENATION", {Features(b, 1), Repeated(b, 1, 64)}, AlongChannels());
  EXPECT_FALSE(Splits(b, b.Conv(joined, 32, 3)));
}

TEST(SplitUniformChannels, NotWhereOthersReadTheConcatenation) {
  GraphBuilder b;
  const ValueId joined =
      b.Op("CONCATENATION", {Features(b, 1), Repeated(b, 1, 64)}, AlongChannels());
  b.Output(b.Op("TANH", {joined}));
  EXPECT_FALSE(Splits(b, b.Conv(joined, 32, 1)));
}

TEST(SplitUniformChannels, NotOfImagesBelowEachOther) {
  GraphBuilder b;
  const ValueId joined =
      b.Op("CONCATENATION", {Features(b, 1, 64), Repeated(b, 1, 64)}, AlongChannels(1));
  EXPECT_FALSE(Splits(b, b.Conv(joined, 32, 1)));
}

TEST(SplitUniformChannels, NotOfRowsThatAreRepeated) {
  GraphBuilder b;
  const ValueId rows = b.Op("RESIZE_BILINEAR", {b.Input({1, 1, 2, 64}), b.Ints({kHeight, kWidth})});
  const ValueId joined = b.Op("CONCATENATION", {Features(b, 1), rows}, AlongChannels());
  EXPECT_FALSE(Splits(b, b.Conv(joined, 32, 1)));
}

TEST(SplitUniformChannels, NotInAnotherOrderWhereThatIsForbidden) {
  GraphBuilder b;
  const ValueId joined =
      b.Op("CONCATENATION", {Features(b, 1), Repeated(b, 1, 64)}, AlongChannels());
  b.Output(b.Conv(joined, 32, 1));
  for (const kernels::Precision precision :
       {kernels::Precision::kDefault, kernels::Precision::kStrict}) {
    Graph graph = b.graph();
    Planner planner({.isa = Isa::kScalar, .precision = precision}, false, {});
    RewriteContext context(planner, nullptr);
    EXPECT_EQ(RunRewrite(SplitUniformChannels, graph, context) > 0,
              precision == kernels::Precision::kDefault);
  }
}

// The range that quantizes the pixels is that of all channels.
TEST(SplitUniformChannels, NotBeforeDynamicRange) {
  GraphBuilder b;
  const ValueId joined =
      b.Op("CONCATENATION", {Features(b, 1), Repeated(b, 1, 64)}, AlongChannels());
  const ValueId weights = b.Int8Constant({32, 1, 1, kFeatures + 64}, 0.01f);
  EXPECT_FALSE(Splits(b, b.ConvBy(joined, weights)));
}

}  // namespace
}  // namespace fuselite::fusion::testing
