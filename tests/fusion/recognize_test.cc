// Functions and layers that exporters spell out of small operators.
#include "fusion/rewrites/rewrites.h"
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::ElementsAre;

TEST(Silu, InEitherOrderAndIntoItsLayer) {
  GraphBuilder b;
  const ValueId c = b.Conv(b.Input({1, 6, 5, 8}), 6, 3);
  const ValueId d = b.Depthwise(b.Op("MUL", {c, b.Op("LOGISTIC", {c})}), 3);
  b.Output(b.Op("MUL", {b.Op("LOGISTIC", {d}), d}));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 1e-5f);
  EXPECT_THAT(outcome.ops(), ElementsAre("CONV_2D + silu", "DEPTHWISE_CONV_2D + silu"));
  EXPECT_THAT(outcome.report.steps[0].host_nodes, ElementsAre(0, 1, 2));
}

TEST(Silu, OfAValueThatOthersReadIsAStep) {
  GraphBuilder b;
  const ValueId x = b.Input({4, 9});
  b.Output(b.Op("MUL", {x, b.Op("LOGISTIC", {x})}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops(),
              ElementsAre("FUSELITE_ELEMENTWISE + silu"));
}

TEST(Silu, NotOfAnotherValue) {
  GraphBuilder b;
  const ValueId x = b.Input({4, 9}), y = b.Input({4, 9});
  b.Output(b.Op("MUL", {x, b.Op("LOGISTIC", {y})}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(), ElementsAre("LOGISTIC + mul"));
}

// RELU6(x + 3) in the ways that exporters have.
ValueId ShiftedRelu6(GraphBuilder& b, ValueId x, int way) {
  if (way == 0) return b.Op("RELU6", {b.Op("ADD", {x, b.Scalar(3)})});
  if (way == 1) {
    return b.Op("ADD", {b.Scalar(3), x}, {{"fused_activation_function", kRelu6}});
  }
  if (way == 2) {
    const ValueId relu = b.Op("ADD", {x, b.Scalar(3)}, {{"fused_activation_function", kRelu}});
    return b.Op("MINIMUM", {relu, b.Scalar(6)});
  }
  const ValueId sum = b.Op("ADD", {x, b.Scalar(3)});
  return b.Op("MINIMUM", {b.Op("MAXIMUM", {sum, b.Scalar(0)}), b.Scalar(6)});
}

TEST(HardSigmoid, FromItsParts) {
  for (int way = 0; way < 4; ++way) {
    SCOPED_TRACE(way);
    GraphBuilder b;
    const ValueId gate = ShiftedRelu6(b, b.Conv(b.Input({1, 5, 5, 4}), 6, 1), way);
    b.Output(b.Op("MUL", {gate, b.Scalar(1.0f / 6)}));
    EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops(),
                ElementsAre("CONV_2D + hard_sigmoid(0.166667, 0.5)"));
  }
}

TEST(HardSwish, FromItsParts) {
  for (int way = 0; way < 4; ++way) {
    for (const bool gate_first : {false, true}) {
      SCOPED_TRACE(way);
      GraphBuilder b;
      const ValueId x = b.Conv(b.Input({1, 5, 5, 4}), 6, 1);
      const ValueId gate = ShiftedRelu6(b, x, way);
      if (gate_first) {
        b.Output(b.Op("MUL", {x, b.Op("DIV", {gate, b.Scalar(6)})}));
      } else {
        b.Output(b.Op("MUL", {b.Op("MUL", {gate, x}), b.Scalar(1.0f / 6)}));
      }
      EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops(),
                  ElementsAre("CONV_2D + hard_swish"));
    }
  }
}

TEST(HardSwish, NotWithAnotherShift) {
  GraphBuilder b;
  const ValueId x = b.Input({4, 5});
  const ValueId gate = b.Op("RELU6", {b.Op("ADD", {x, b.Scalar(2)})});
  b.Output(b.Op("MUL", {x, b.Op("MUL", {gate, b.Scalar(1.0f / 6)})}));
  EXPECT_EQ(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops().size(), 1u);
}

// As the PyTorch converter writes it.
TEST(Prelu, FromACondition) {
  for (const bool scalar : {false, true}) {
    GraphBuilder b;
    const ValueId x = b.Conv(b.Input({1, 5, 5, 4}), 6, 1);
    const ValueId alpha = scalar ? b.Scalar(0.25f) : b.Constant({1, 1, 1, 6});
    const ValueId positive = b.Op("GREATER", {x, b.Scalar(0)});
    b.Output(b.Op("SELECT_V2", {positive, x, b.Op("MUL", {alpha, x})}));
    EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops(),
                ElementsAre(scalar ? "CONV_2D + leaky_relu(0.25)" : "CONV_2D + prelu"));
  }
}

// As the PyTorch converter takes it apart.
TEST(Prelu, FromTwoRelus) {
  for (const bool scalar : {true, false}) {
    GraphBuilder b;
    const ValueId x = b.Conv(b.Input({1, 5, 6, 3}), 7, 1);
    const ValueId alpha = scalar ? b.Scalar(0.25f) : b.Constant({7});
    const ValueId negative = b.Op("MUL", {x, b.Scalar(-1)}, {{"fused_activation_function", kRelu}});
    b.Output(b.Op("SUB", {b.Op("RELU", {x}), b.Op("MUL", {negative, alpha})}));
    EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops(),
                ElementsAre(scalar ? "CONV_2D + leaky_relu(0.25)" : "CONV_2D + prelu"));
  }
}

TEST(Prelu, NotOfAnotherFactor) {
  GraphBuilder b;
  const ValueId x = b.Input({2, 7});
  const ValueId negative = b.Op("MUL", {x, b.Scalar(-2)}, {{"fused_activation_function", kRelu}});
  b.Output(b.Op("SUB", {b.Op("RELU", {x}), b.Op("MUL", {negative, b.Scalar(0.5f)})}));
  for (const std::string& ops : ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops()) {
    EXPECT_EQ(ops.find("leaky"), std::string::npos) << ops;
  }
}

TEST(Prelu, NotOfAnotherCondition) {
  GraphBuilder b;
  const ValueId x = b.Input({4, 6});
  const ValueId negative = b.Op("LESS", {x, b.Scalar(0)});
  b.Output(b.Op("SELECT_V2", {negative, x, b.Op("MUL", {x, b.Scalar(0.25f)})}));
  EXPECT_EQ(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops().size(), 3u);
}

// x^3 as products, as SQUARE times x, or as a power.
enum class Cubes { kProducts, kSquare, kPower };
ValueId Cube(GraphBuilder& b, ValueId x, Cubes cubes) {
  if (cubes == Cubes::kPower) return b.Op("POW", {x, b.Scalar(3)});
  const ValueId square = cubes == Cubes::kSquare ? b.Op("SQUARE", {x}) : b.Op("MUL", {x, x});
  return b.Op("MUL", {square, x});
}

TEST(Gelu, ByTanhFromItsParts) {
  for (const Cubes cubes : {Cubes::kProducts, Cubes::kSquare, Cubes::kPower}) {
    GraphBuilder b;
    const ValueId x = b.Dense(b.Input({3, 7}), 9);
    const ValueId cubic = b.Op("MUL", {Cube(b, x, cubes), b.Scalar(0.044715f)});
    const ValueId inner = b.Op("MUL", {b.Scalar(0.7978845608f), b.Op("ADD", {x, cubic})});
    const ValueId gate = b.Op("ADD", {b.Op("TANH", {inner}), b.Scalar(1)});
    b.Output(b.Op("MUL", {b.Op("MUL", {x, b.Scalar(0.5f)}), gate}));
    EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(),
                ElementsAre("FULLY_CONNECTED + gelu_tanh"));
  }
}

TEST(Gelu, NotWithAnotherFactor) {
  GraphBuilder b;
  const ValueId x = b.Input({3, 7});
  const ValueId cubic = b.Op("MUL", {Cube(b, x, Cubes::kProducts), b.Scalar(0.05f)});
  const ValueId inner = b.Op("MUL", {b.Scalar(0.7978845608f), b.Op("ADD", {x, cubic})});
  const ValueId gate = b.Op("ADD", {b.Op("TANH", {inner}), b.Scalar(1)});
  b.Output(b.Op("MUL", {b.Op("MUL", {x, b.Scalar(0.5f)}), gate}));
  for (const std::string& ops : ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops()) {
    EXPECT_EQ(ops.find("gelu"), std::string::npos) << ops;
  }
}

TEST(Attention, WithScaleMaskAndEitherOrderOfKeys) {
  for (const bool by_rows : {false, true}) {
    for (const bool masked : {false, true}) {
      GraphBuilder b;
      const ValueId q = b.Input({2, 3, 9, 8});
      const ValueId k = by_rows ? b.Input({2, 3, 11, 8}) : b.Input({2, 3, 8, 11});
      const ValueId v = b.Input({2, 3, 11, 5});
      ValueId scores = b.Op("BATCH_MATMUL", {q, k}, {{"adj_y", by_rows}});
      scores = b.Op("MUL", {scores, b.Scalar(0.05f)});
      if (masked) scores = b.Op("ADD", {b.Input({1, 1, 9, 11}), scores});
      const ValueId weights = b.Op("SOFTMAX", {scores}, {{"beta", 1}});
      b.Output(b.Op("BATCH_MATMUL", {weights, v}));
      ExpectFusedEqualsUnfused(b.graph(), 2e-5f);
      // Where the JIT emits the products, they stay apart until it emits attention.
      CompileOptions vectors = Fused(), reference = Unfused();
      vectors.jit = false;
      reference.isa = Isa::kScalar;
      const Outcome outcome = RunGraph(b.graph(), vectors);
      EXPECT_THAT(outcome.ops(), ElementsAre("FUSELITE_ATTENTION"));
      ExpectClose(RunGraph(b.graph(), reference).outputs, outcome.outputs, 2e-5f);
    }
  }
}

// As the PyTorch converter writes it: products of rank 3, the mask and SOFTMAX of rank 4.
TEST(Attention, WithHeadsThatReshapesTakeApart) {
  for (const bool masked : {false, true}) {
    GraphBuilder b;
    const ValueId q = b.Input({6, 9, 8}), k = b.Input({6, 8, 11}), v = b.Input({6, 11, 5});
    ValueId scores = b.Op("MUL", {b.Op("BATCH_MATMUL", {q, k}), b.Scalar(0.05f)});
    scores = b.Op("RESHAPE", {scores, b.Ints({2, 3, 9, 11})});
    if (masked) scores = b.Op("ADD", {scores, b.Input({2, 1, 1, 11})});
    ValueId weights = b.Op("SOFTMAX", {scores}, {{"beta", 1}});
    weights = b.Op("RESHAPE", {weights, b.Ints({6, 9, 11})});
    b.Output(b.Op("NEG", {b.Op("BATCH_MATMUL", {weights, v})}));
    ExpectFusedEqualsUnfused(b.graph(), 2e-5f);
    CompileOptions vectors = Fused(), reference = Unfused();
    vectors.jit = false;
    reference.isa = Isa::kScalar;
    const Outcome outcome = RunGraph(b.graph(), vectors);
    EXPECT_THAT(outcome.ops(), ElementsAre("FUSELITE_ATTENTION + neg"));
    ExpectClose(RunGraph(b.graph(), reference).outputs, outcome.outputs, 2e-5f);
  }
}

// As shifted windows have it: a bias for each distance, and a mask of what a window must not see.
TEST(Attention, AddsItsTwoMasks) {
  for (const bool reshaped : {false, true}) {
    for (const bool first : {false, true}) {
      GraphBuilder b;
      const ValueId q = b.Input({6, 9, 8}), k = b.Input({6, 8, 11}), v = b.Input({6, 11, 5});
      const auto add = [&](ValueId scores, ValueId mask) {
        return first ? b.Op("ADD", {mask, scores}) : b.Op("ADD", {scores, mask});
      };
      ValueId scores = b.Op("MUL", {b.Op("BATCH_MATMUL", {q, k}), b.Scalar(0.05f)});
      scores = b.Op("RESHAPE", {scores, b.Ints({2, 3, 9, 11})});
      scores = add(scores, b.Constant({1, 3, 9, 11}, -1, 1));
      if (reshaped) scores = b.Op("RESHAPE", {scores, b.Ints({1, 2, 3, 9, 11})});
      scores = add(scores, reshaped ? b.Input({1, 2, 1, 9, 11}) : b.Input({2, 1, 1, 11}));
      if (reshaped) scores = b.Op("RESHAPE", {scores, b.Ints({2, 3, 9, 11})});
      ValueId weights = b.Op("SOFTMAX", {scores}, {{"beta", 1}});
      weights = b.Op("RESHAPE", {weights, b.Ints({6, 9, 11})});
      b.Output(b.Op("NEG", {b.Op("BATCH_MATMUL", {weights, v})}));
      ExpectFusedEqualsUnfused(b.graph(), 2e-5f);
      CompileOptions vectors = Fused(), reference = Unfused();
      vectors.jit = false;
      reference.isa = Isa::kScalar;
      const Outcome outcome = RunGraph(b.graph(), vectors);
      EXPECT_THAT(outcome.ops(), ElementsAre("FUSELITE_ATTENTION + neg"));
      ExpectClose(RunGraph(b.graph(), reference).outputs, outcome.outputs, 2e-5f);
    }
  }
}

// Layers give rows in which all heads lie side by side; no TRANSPOSE is left between them.
TEST(Attention, ReadsHeadsWhereLayersLeaveThem) {
  for (const int32_t batches : {1, 2}) {
    for (const bool turned : {false, true}) {
      for (const bool joined : {false, true}) {
        GraphBuilder b;
        const auto heads = [&](int32_t rows, std::vector<int32_t> permutation) {
          const ValueId x = b.Op("RESHAPE", {b.Op("NEG", {b.Input({batches, rows, 24})}),
                                             b.Ints({batches, rows, 3, 8})});
          const ValueId moved = b.Op("TRANSPOSE", {x, b.Ints(permutation)});
          if (!joined) return moved;
          const Shape& s = b.shape(moved);
          return b.Op("RESHAPE", {moved, b.Ints({batches * 3, s.dim(-2), s.dim(-1)})});
        };
        const ValueId q = heads(9, {0, 2, 1, 3});
        const ValueId k = turned ? heads(11, {0, 2, 3, 1}) : heads(11, {0, 2, 1, 3});
        const ValueId v = heads(11, {0, 2, 1, 3});
        const ValueId scores = b.Op("BATCH_MATMUL", {q, k}, {{"adj_y", !turned}});
        const ValueId weights = b.Op("SOFTMAX", {scores}, {{"beta", 1}});
        ValueId y = b.Op("BATCH_MATMUL", {weights, v});
        if (joined) y = b.Op("RESHAPE", {y, b.Ints({batches, 3, 9, 8})});
        y = b.Op("TRANSPOSE", {y, b.Ints({0, 2, 1, 3})});
        b.Output(b.Op("NEG", {b.Op("RESHAPE", {y, b.Ints({batches * 9, 24})})}));
        EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops(),
                    ElementsAre("NEG", "NEG", "NEG", "FUSELITE_ATTENTION + neg"));
      }
    }
  }
}

// Heads in two dimensions have masks of their own, which are none of the batches'.
TEST(Attention, KeepsMasksOverTheirHeads) {
  GraphBuilder b;
  const auto heads = [&](int32_t rows) {
    const ValueId x = b.Op("NEG", {b.Input({2, rows, 16})});
    const ValueId apart = b.Op("RESHAPE", {x, b.Ints({2, rows, 2, 1, 8})});
    return b.Op("TRANSPOSE", {apart, b.Ints({0, 2, 3, 1, 4})});
  };
  const ValueId q = heads(9), k = heads(11), v = heads(11);
  ValueId scores = b.Op("BATCH_MATMUL", {q, k}, {{"adj_y", 1}});
  scores = b.Op("ADD", {scores, b.Input({2, 1, 9, 11})});
  const ValueId weights = b.Op("SOFTMAX", {scores}, {{"beta", 1}});
  b.Output(b.Op("NEG", {b.Op("BATCH_MATMUL", {weights, v})}));
  const std::vector<std::string> ops = ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops();
  EXPECT_EQ(std::ranges::count(ops, "FUSELITE_ATTENTION + neg"), 1);
}

// Three layers with dynamic range over the same rows, and attention to what they give.
ValueId AttentionOfProjections(GraphBuilder& b, ValueId x, std::vector<ValueId>* projections) {
  for (int i = 0; i < 3; ++i) {
    projections->push_back(b.Op("FULLY_CONNECTED",
                                {x, b.Int8Constant({24, 24}, 0.01f * (i + 1)), b.Constant({24})},
                                {{"keep_num_dims", 1}, {"asymmetric_quantize_inputs", 1}}));
  }
  const auto heads = [&](ValueId rows) {
    const ValueId apart = b.Op("RESHAPE", {rows, b.Ints({1, 9, 3, 8})});
    return b.Op("TRANSPOSE", {apart, b.Ints({0, 2, 1, 3})});
  };
  const ValueId scores =
      b.Op("BATCH_MATMUL", {heads((*projections)[0]), heads((*projections)[1])}, {{"adj_y", 1}});
  const ValueId weights = b.Op("SOFTMAX", {scores}, {{"beta", 1}});
  const ValueId means = b.Op("BATCH_MATMUL", {weights, heads((*projections)[2])});
  const ValueId y = b.Op("TRANSPOSE", {means, b.Ints({0, 2, 1, 3})});
  return b.Op("RESHAPE", {y, b.Ints({1, 9, 24})});
}

TEST(Attention, JoinsTheProjectionsThatItReads) {
  GraphBuilder b;
  std::vector<ValueId> projections;
  b.Output(AttentionOfProjections(b, b.Op("NEG", {b.Input({1, 9, 24})}), &projections));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops(),
              ElementsAre("NEG", "FULLY_CONNECTED", "FUSELITE_ATTENTION"));
}

TEST(Attention, JoinsNoProjectionThatOthersRead) {
  GraphBuilder b;
  std::vector<ValueId> projections;
  b.Output(AttentionOfProjections(b, b.Op("NEG", {b.Input({1, 9, 24})}), &projections));
  b.Output(b.Op("NEG", {projections[1]}));
  b.Output(projections[2]);
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops(),
              ElementsAre("NEG", "FULLY_CONNECTED", "FULLY_CONNECTED", "FULLY_CONNECTED",
                          "FUSELITE_ATTENTION", "NEG"));
}

// A single head, as SegFormer's first stage has it: its scores are a layer whose weights are keys.
TEST(Attention, OfASingleHeadMayMultiplyByALayer) {
  enum class Mask { kNone, kFirst, kLast };
  for (const bool constant : {false, true}) {
    for (const Mask mask : {Mask::kNone, Mask::kFirst, Mask::kLast}) {
      GraphBuilder b;
      const ValueId k = constant ? b.Constant({11, 8}) : b.Op("NEG", {b.Input({11, 8})});
      const ValueId q = b.Op("NEG", {b.Input({1, 9, 8})}), v = b.Op("NEG", {b.Input({11, 5})});
      ValueId scores = b.Op("FULLY_CONNECTED", {q, k}, {{"keep_num_dims", 1}});
      scores = b.Op("MUL", {scores, b.Scalar(0.35f)});
      scores = b.Op("RESHAPE", {scores, b.Ints({1, 1, 9, 11})});
      if (mask == Mask::kFirst) scores = b.Op("ADD", {b.Input({1, 1, 9, 11}), scores});
      if (mask == Mask::kLast) scores = b.Op("ADD", {scores, b.Input({1, 1, 9, 11})});
      const ValueId weights = b.Op("SOFTMAX", {scores}, {{"beta", 1}});
      const ValueId y = b.Op("BATCH_MATMUL", {b.Op("RESHAPE", {weights, b.Ints({9, 11})}), v});
      b.Output(b.Op("NEG", {y}));
      const std::vector<std::string> ops = ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops();
      EXPECT_EQ(std::ranges::count(ops, "FUSELITE_ATTENTION + neg"), constant ? 0 : 1);
    }
  }
}

// One matrix of values for all heads is no batch of them.
TEST(Attention, NotWhereHeadsShareAMatrix) {
  GraphBuilder b;
  const ValueId q = b.Input({6, 9, 8}), k = b.Input({6, 8, 11}), v = b.Input({11, 5});
  const ValueId weights = b.Op("SOFTMAX", {b.Op("BATCH_MATMUL", {q, k})}, {{"beta", 1}});
  b.Output(b.Op("BATCH_MATMUL", {weights, v}));
  for (const std::string& ops : ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops()) {
    EXPECT_EQ(ops.find("FUSELITE_ATTENTION"), std::string::npos) << ops;
  }
}

TEST(Attention, NotWhereSomebodyReadsTheWeights) {
  GraphBuilder b;
  const ValueId q = b.Input({3, 9, 8}), k = b.Input({3, 8, 11}), v = b.Input({3, 11, 5});
  const ValueId weights = b.Op("SOFTMAX", {b.Op("BATCH_MATMUL", {q, k})}, {{"beta", 1}});
  b.Output(weights);
  b.Output(b.Op("BATCH_MATMUL", {weights, v}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(),
              ElementsAre("BATCH_MATMUL", "SOFTMAX", "BATCH_MATMUL"));
}

}  // namespace
}  // namespace fuselite::fusion::testing
