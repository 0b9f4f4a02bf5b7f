// TensorFlow's pools of volumes become pools of images, pools of whole images means.
#include <array>

#include "kernels/tensorflow/pool3d.h"
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::ElementsAre;

struct Pool {
  const char* name;
  kernels::Padding padding;
  std::array<int32_t, 3> filter, stride;
};

ValueId Pooled(GraphBuilder& b, ValueId x, const Pool& pool) {
  Node node;
  node.op = kernels::FindOperator(pool.name);
  auto& params = node.params.as<kernels::Pool3DParams>();
  params.padding = pool.padding;
  std::ranges::copy(pool.filter, params.filter);
  std::ranges::copy(pool.stride, params.stride);
  node.inputs = {x};
  kernels::OpDescription op;
  op.op = node.op;
  op.params = node.params;
  op.inputs = {b.graph().value(x).info};
  op.outputs.emplace_back();
  EXPECT_TRUE(kernels::Infer(op).ok());
  Value out;
  out.info = op.outputs[0];
  node.outputs = {b.graph().AddValue(out)};
  const ValueId y = node.outputs[0];
  b.graph().AddNode(std::move(node));
  return y;
}

constexpr auto kSamePadding = kernels::Padding::kSame, kNoPadding = kernels::Padding::kValid;

TEST(PoolVolumeByImages, HasTheSameValues) {
  const Pool pools[] = {
      {"FlexMaxPool3D", kSamePadding, {2, 2, 2}, {2, 2, 2}},
      {"FlexAvgPool3D", kSamePadding, {3, 2, 3}, {2, 1, 2}},
      {"FlexMaxPool3D", kNoPadding, {2, 3, 1}, {1, 2, 3}},
      {"FlexAvgPool3D", kNoPadding, {2, 3, 1}, {2, 2, 1}},
  };
  for (const Pool& pool : pools) {
    SCOPED_TRACE(pool.name);
    GraphBuilder b;
    const ValueId x = b.Op("TANH", {b.Input({2, 5, 6, 7, 5})});
    b.Output(b.Op("RELU", {Pooled(b, x, pool)}));
    const bool maxima = pool.name == std::string_view("FlexMaxPool3D");
    const std::string two = maxima ? "MAX_POOL_2D" : "AVERAGE_POOL_2D";
    EXPECT_THAT(ExpectSameFused(b.graph(), maxima ? 0 : 1e-6f).ops(),
                ElementsAre("TANH", two, two + " + clamp(0, inf)"));
  }
}

// Along height and width, or along the depth, alone.
TEST(PoolVolumeByImages, IsOnePoolWhereOneIsEnough) {
  for (const std::array<int32_t, 3>& window : {std::array{1, 2, 2}, std::array{3, 1, 1}}) {
    GraphBuilder b;
    const Pool pool{"FlexMaxPool3D", kNoPadding, window, window};
    b.Output(Pooled(b, b.Op("TANH", {b.Input({1, 6, 4, 4, 8})}), pool));
    const Outcome outcome = ExpectSameFused(b.graph(), 0);
    EXPECT_THAT(outcome.ops(), ElementsAre("TANH", "MAX_POOL_2D"));
  }
}

// A window over all of an image that is worth sharing, and windows that are not.
TEST(MeanOfImage, TakesLargeImages) {
  const auto ops = [](const Shape& shape, int height, int width, int activation) {
    GraphBuilder b;
    const Attributes pool = {{"filter_height", height},
                             {"filter_width", width},
                             {"stride_h", 1},
                             {"stride_w", 1},
                             {"padding", 1},
                             {"fused_activation_function", activation}};
    b.Output(b.Op("AVERAGE_POOL_2D", {b.Op("TANH", {b.Input(shape)})}, pool));
    return ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops();
  };
  EXPECT_THAT(ops({2, 30, 20, 30}, 30, 20, 0), ElementsAre("TANH", "MEAN"));
  EXPECT_THAT(ops({2, 30, 20, 30}, 30, 19, 0), ElementsAre("TANH", "AVERAGE_POOL_2D"));
  EXPECT_THAT(ops({2, 30, 20, 20}, 30, 20, 0), ElementsAre("TANH", "AVERAGE_POOL_2D"));
  EXPECT_THAT(ops({2, 30, 20, 30}, 30, 20, 1), ElementsAre("TANH", "AVERAGE_POOL_2D + relu"));
}

}  // namespace
}  // namespace fuselite::fusion::testing
