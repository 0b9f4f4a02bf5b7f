// A classifier's weights that are read where they lie, and each reason why others are not.
#include <memory>
#include <utility>
#include <vector>

#include "fusion/rewrites/rewrites.h"
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Property;

constexpr int kDepth = 512, kUnits = 512;  // 1 MiB of weights

// Features of an image, kDepth of which take 75 million multiply-adds.
ValueId Features(GraphBuilder& b, int features = kDepth) {
  const ValueId layer = b.Conv(b.Input({1, 16, 16, 64}), features, 3);
  return b.Op("MEAN", {layer, b.Ints({1, 2})}, {{"keep_dims", 1}});
}

ValueId Rows(GraphBuilder& b, ValueId features) {
  return b.Op("RESHAPE", {features, b.Ints({-1, kDepth})});
}

// Makes the graph's output by weights that are a model's, with a bias and something in the tail.
class Model {
 public:
  ValueId Weights(Shape shape) {
    const ValueId weights = b.Constant(shape, -0.05f, 0.05f);
    bytes_.push_back(std::exchange(b.graph().value(weights).storage, nullptr));
    return weights;
  }
  void Classify(ValueId rows, int units = kUnits) {
    Finish(b.Op("FULLY_CONNECTED", {rows, Weights({units, kDepth}), b.Constant({units})}));
  }
  void Finish(ValueId classes) { b.Output(b.Op("LOGISTIC", {classes})); }
  // Whether the weights are read where they lie; outputs are right either way.
  bool InPlace() {
    const Outcome expected = RunGraph(b.graph(), Unfused());
    const Outcome outcome = RunGraph(b.graph(), Fused());
    ExpectClose(expected.outputs, outcome.outputs, 1e-4f);
    const auto says = Contains(Property(&RewriteRecord::ToString, HasSubstr("where they lie")));
    return ::testing::Matches(says)(outcome.report.rewrites);
  }

  GraphBuilder b;

 private:
  std::vector<std::shared_ptr<const void>> bytes_;
};

bool HasVectors() { return DetectIsa() != Isa::kScalar; }

TEST(ReadWeightsInPlace, OfARow) {
  Model model;
  model.Classify(Rows(model.b, Features(model.b)));
  EXPECT_EQ(model.InPlace(), HasVectors());
}

TEST(ReadWeightsInPlace, OfAPixel) {
  Model model;
  const ValueId weights = model.Weights({kUnits, 1, 1, kDepth});
  model.Finish(model.b.ConvBy(Features(model.b), weights, model.b.Constant({kUnits}),
                              {{"fused_activation_function", kRelu6}}));
  EXPECT_EQ(model.InPlace(), HasVectors());
}

// Smaller filters, and windows of several pixels, stay convolutions.
TEST(PixelAsRow, OfManyWeights) {
  const auto ops = [](int height, int units, int filter) {
    GraphBuilder b;
    const ValueId pixel = b.Input({2, height, 1, kDepth});
    b.Output(b.Conv(pixel, units, filter, {{"fused_activation_function", kRelu6}}));
    return ExpectFusedEqualsUnfused(b.graph(), 1e-4f).ops();
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(ops(1, kUnits, 1), ElementsAre("FULLY_CONNECTED + relu6"));
  EXPECT_THAT(ops(1, kUnits - 1, 1), ElementsAre("CONV_2D + relu6"));
  EXPECT_THAT(ops(2, kUnits, 1), ElementsAre("CONV_2D + relu6"));
  EXPECT_THAT(ops(1, kUnits, 2), ElementsAre("CONV_2D + relu6"));
}

// Weights that DEQUANTIZE makes are kept small, once they are a row's.
TEST(PixelAsRow, OfDequantizedWeights) {
  GraphBuilder b;
  const ValueId small = b.Int8Constant({kUnits, 1, 1, kDepth}, 0.01f);
  const ValueId pixel = b.Input({1, 1, 1, kDepth});
  b.Output(b.ConvBy(pixel, b.Op("DEQUANTIZE", {small}), b.Constant({kUnits})));
  EXPECT_THAT(ExpectSameFused(b.graph(), 1e-4f).ops(),
              ::testing::ElementsAre("FUSELITE_WEIGHT_ONLY_FULLY_CONNECTED"));
}

TEST(ReadWeightsInPlace, NotOfTwoRows) {
  Model model;
  model.Classify(Rows(model.b, Features(model.b, 2 * kDepth)));
  EXPECT_FALSE(model.InPlace());
}

TEST(ReadWeightsInPlace, NotOfFewWeights) {
  Model model;
  model.Classify(Rows(model.b, Features(model.b)), kUnits - 1);
  EXPECT_FALSE(model.InPlace());
}

// All multiply-adds are the row's.
TEST(ReadWeightsInPlace, NotWhereTheyAreMostOfTheGraph) {
  Model model;
  model.Classify(model.b.Input({1, kDepth}));
  EXPECT_FALSE(model.InPlace());
}

// Packed, they are freed.
TEST(ReadWeightsInPlace, NotWhereARewriteMadeThem) {
  Model model;
  model.Finish(model.b.Dense(Rows(model.b, Features(model.b)), kUnits));
  EXPECT_FALSE(model.InPlace());
}

TEST(ReadWeightsInPlace, NotWhereTheyMayBeRounded) {
  Model model;
  model.Classify(Rows(model.b, Features(model.b)));
  std::vector<RewriteRecord> records;
  Planner planner = PlannerFor([] {
    CompileOptions options = Fused();
    options.precision = kernels::Precision::kFast;
    return options;
  }());
  RewriteContext context(planner, &records);
  EXPECT_EQ(RunRewrite(ReadWeightsInPlace, model.b.graph(), context), 0);
}

}  // namespace
}  // namespace fuselite::fusion::testing
