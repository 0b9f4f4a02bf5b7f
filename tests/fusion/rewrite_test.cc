// What rewrites ask before they replace anything.
#include "fusion/rewrite.h"

#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

// One node, and what it computes.
kernels::OpDescription Described(GraphBuilder& b) {
  return b.graph().Describe(b.graph().order().back());
}

// Its weights are the graph's, which stays.
const kernels::OpDescription& Layer() {
  static GraphBuilder graph;
  static const kernels::OpDescription layer = [] {
    graph.Dense(graph.Input({2, 16}), 8);
    return Described(graph);
  }();
  return layer;
}

TEST(RewriteContext, AcceptsWhatGivesTheShapeAndTheTypeOfTheOutput) {
  Planner planner = PlannerFor(Fused());
  RewriteContext context(planner, nullptr);
  const kernels::OpDescription& layer = Layer();
  EXPECT_TRUE(context.Accepts(layer));
  kernels::OpDescription wider = layer, untyped = layer;
  wider.outputs[0].shape = {2, 9};
  untyped.outputs[0].type = DataType::kNone;
  for (const kernels::OpDescription& other : {wider, untyped}) {
    EXPECT_FALSE(context.Accepts(other));
    EXPECT_FALSE(context.AcceptsInsteadOf(layer, other));
    EXPECT_FALSE(context.AcceptsComposite(other));
  }
  context.Record("nobody asks", {1});
}

TEST(RewriteContext, AcceptsNothingBeyondTheBudget) {
  CompileOptions options = Fused();
  options.budget.max_memory = 2 * 8 * sizeof(float) - 1;
  Planner planner = PlannerFor(options);
  EXPECT_FALSE(RewriteContext(planner, nullptr).Accepts(Layer()));
}

// Where the JIT computes most of what goes, it has to compute what comes.
TEST(RewriteContext, AcceptsEmittedKernelsAloneForEmittedOnes) {
  GraphBuilder b;
  b.Op("TRANSPOSE", {b.Input({16, 2}), b.Ints({1, 0})});
  const kernels::OpDescription transpose = Described(b);
  const kernels::OpDescription& layer = Layer();
  for (const bool jit : {false, true}) {
    CompileOptions options = Fused();
    options.jit = jit;
    Planner planner = PlannerFor(options);
    RewriteContext context(planner, nullptr);
    EXPECT_TRUE(context.AcceptsComposite(transpose));
    EXPECT_NE(context.AcceptsComposite(transpose, &layer), planner.Choose(layer).emitted);
    EXPECT_TRUE(context.AcceptsComposite(layer, &layer));
  }
}

// However its shapes are written, what no kernel takes is refused.
TEST(Planner, RefusesElementwiseOperationsToo) {
  GraphBuilder b;
  b.Op("MAXIMUM", {b.Input({2, 3, 4}), b.Input({2, 3, 4})});
  kernels::OpDescription larger = Described(b);
  Planner planner = PlannerFor(Fused());
  EXPECT_TRUE(planner.Choose(larger).status.ok());
  for (TensorInfo* info : {&larger.inputs[0], &larger.inputs[1], &larger.outputs[0]}) {
    info->type = DataType::kString;
  }
  EXPECT_FALSE(planner.Choose(larger).status.ok());
}

}  // namespace
}  // namespace fuselite::fusion::testing
