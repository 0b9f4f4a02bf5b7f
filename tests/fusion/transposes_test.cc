// TRANSPOSEs: merged, cancelled, moved behind what stands between two of them.
#include <algorithm>
#include <numeric>

#include "fusion/rewrites/rewrites.h"
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::ElementsAre;

TEST(MergeTransposes, ThatCancelGo) {
  GraphBuilder b;
  ValueId v = b.Conv(b.Input({1, 5, 6, 4}), 8, 1);
  v = b.Op("TRANSPOSE", {v, b.Ints({0, 3, 1, 2})});
  v = b.Op("RESHAPE", {v, b.Ints({8, 30})});
  v = b.Op("RESHAPE", {v, b.Ints({1, 8, 5, 6})});
  v = b.Op("TRANSPOSE", {v, b.Ints({0, 2, 3, 1})});
  b.Output(b.Conv(v, 3, 1));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops(), ElementsAre("CONV_2D", "CONV_2D"));
}

// As the PyTorch converter writes it.
TEST(MergeTransposes, AChannelShuffleIsOne) {
  GraphBuilder b;
  ValueId v = b.Op("NEG", {b.Input({1, 5, 6, 12})});
  v = b.Op("TRANSPOSE", {v, b.Ints({0, 3, 1, 2})});
  v = b.Op("RESHAPE", {v, b.Ints({1, 2, 6, 5, 6})});
  v = b.Op("TRANSPOSE", {v, b.Ints({0, 2, 1, 3, 4})});
  v = b.Op("RESHAPE", {v, b.Ints({1, 12, 5, 6})});
  v = b.Op("TRANSPOSE", {v, b.Ints({0, 2, 3, 1})});
  b.Output(b.Conv(v, 3, 1));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 1e-6f);
  EXPECT_THAT(outcome.ops(), ElementsAre("NEG", "TRANSPOSE", "CONV_2D"));
  EXPECT_THAT(outcome.report.steps[1].host_nodes, ElementsAre(1, 2, 3, 4, 5));
}

TEST(MergeTransposes, ThatMovesSingleDimensionsIsAReshape) {
  GraphBuilder b;
  const ValueId v = b.Conv(b.Input({1, 1, 6, 4}), 5, 1);
  const ValueId moved = b.Op("TRANSPOSE", {v, b.Ints({0, 2, 1, 3})});
  b.Output(b.Conv(moved, 3, 1));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops(), ElementsAre("CONV_2D", "CONV_2D"));
}

// Nine dimensions are moved, one more than TRANSPOSE takes.
TEST(MergeTransposes, NotToMoreDimensionsThanThereAre) {
  for (const bool between : {false, true}) {
    GraphBuilder b;
    const std::vector<int32_t> turned = {7, 6, 5, 4, 3, 2, 1, 0};
    ValueId v = b.Op("TRANSPOSE", {b.Input({4, 4, 4, 4, 4}), b.Ints({4, 3, 2, 1, 0})});
    // Each dimension is split into halves.
    v = b.Op("RESHAPE", {v, b.Ints({2, 4, 4, 4, 2, 2, 2, 1})});
    v = b.Op("TRANSPOSE", {v, b.Ints(turned)});
    if (between) v = b.Op("TRANSPOSE", {b.Op("EXP", {b.Op("NEG", {v})}), b.Ints(turned)});
    b.Output(v);
    const std::vector<std::string> ops = ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops();
    EXPECT_EQ(std::ranges::count(ops, "TRANSPOSE"), between ? 3 : 2);
  }
}

TEST(MergeTransposes, WhatOthersReadStays) {
  GraphBuilder b;
  const ValueId v = b.Conv(b.Input({1, 5, 6, 4}), 8, 1);
  const ValueId first = b.Op("TRANSPOSE", {v, b.Ints({0, 3, 1, 2})});
  b.Output(first);
  b.Output(b.Conv(b.Op("TRANSPOSE", {first, b.Ints({0, 2, 3, 1})}), 3, 1));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops(),
              ElementsAre("CONV_2D", "TRANSPOSE", "CONV_2D"));
}

TEST(MergeTransposes, NotWhereAShapeCutsThroughThem) {
  GraphBuilder b;
  ValueId v = b.Conv(b.Input({1, 1, 6, 4}), 4, 1);
  v = b.Op("TRANSPOSE", {v, b.Ints({0, 1, 3, 2})});
  v = b.Op("RESHAPE", {v, b.Ints({1, 1, 3, 8})});
  v = b.Op("TRANSPOSE", {v, b.Ints({0, 1, 3, 2})});
  b.Output(b.Op("RESHAPE", {v, b.Ints({24})}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops(),
              ElementsAre("CONV_2D", "TRANSPOSE", "TRANSPOSE"));
}

TEST(MergeTransposes, ComputesTheSameForRandomChains) {
  for (int seed = 1; seed <= 100; ++seed) {
    GraphBuilder b(seed);
    SCOPED_TRACE(b.random().Trace());
    std::vector<int32_t> shape = {2, 3, 4, 2};
    ValueId v = b.Op("RELU", {b.Input({2, 3, 4, 2})});
    for (int i = 0; i < 5; ++i) {
      std::vector<int32_t> order(shape.size());
      std::iota(order.begin(), order.end(), 0);
      for (size_t k = order.size(); k > 1; --k) {
        std::swap(order[k - 1], order[b.random().Int(0, static_cast<int64_t>(k) - 1)]);
      }
      std::vector<int32_t> moved;
      for (const int32_t d : order) moved.push_back(shape[d]);
      v = b.Op("TRANSPOSE", {v, b.Ints(order)});
      if (b.random().Chance(0.5) && moved.size() > 2) {
        moved[0] *= moved[1];
        moved.erase(moved.begin() + 1);
      } else if (moved.back() % 2 == 0 && moved.size() < 6) {
        moved.back() /= 2;
        moved.push_back(2);
      }
      v = b.Op("RESHAPE", {v, b.Ints(moved)});
      shape = moved;
    }
    b.Output(b.Op("NEG", {v}));
    ExpectSameFused(b.graph(), 0);
    if (HasFailure()) return;
  }
}

// From channels last to channels first and back.
ValueId ToFirst(GraphBuilder& b, ValueId v) { return b.Op("TRANSPOSE", {v, b.Ints({0, 3, 1, 2})}); }
ValueId ToLast(GraphBuilder& b, ValueId v) { return b.Op("TRANSPOSE", {v, b.Ints({0, 2, 3, 1})}); }

TEST(SinkTranspose, PerChannelWorkBetweenTwoOfThem) {
  GraphBuilder b;
  ValueId v = ToFirst(b, b.Conv(b.Input({1, 5, 6, 4}), 8, 1));
  v = b.Op("MUL", {v, b.Constant({8, 1, 1})});
  v = b.Op("ADD", {v, b.Constant({1, 8, 1, 1})});
  v = b.Op("TANH", {v});
  b.Output(b.Conv(ToLast(b, v), 3, 1));
  for (const std::string& ops : ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops()) {
    EXPECT_EQ(ops.find("TRANSPOSE"), std::string::npos) << ops;
  }
}

// No layer gives what is moved; the one that gives the factor cannot take a tail of another shape.
TEST(SinkTranspose, StaysWhereNoLayerGains) {
  GraphBuilder b;
  const ValueId v = ToFirst(b, b.Input({1, 5, 6, 4}));
  b.Output(b.Op("MUL", {v, b.Dense(b.Input({1, 8}), 1)}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(),
              ElementsAre("TRANSPOSE", "FULLY_CONNECTED", "MUL"));
}

// A batch normalization of a one-dimensional convolution, as the PyTorch converter writes it.
TEST(SinkTranspose, ThroughReshapes) {
  Int8Builder b;
  ValueId v = b.Conv8(b.In({1, 1, 9, 4}), 8, 1, 0.04f, 3);
  v = b.Int8Op("TRANSPOSE", {v, b.Ints({0, 3, 1, 2})}, 0.04f, 3);
  v = b.Int8Op("RESHAPE", {v, b.Ints({1, 8, 9})}, 0.04f, 3);
  v = b.Int8Op("MUL", {v, b.Int8Constant({1, 8, 1}, 0.01f)}, 0.03f, -2);
  v = b.Int8Op("ADD", {v, b.Int8Constant({1, 8, 1}, 0.02f)}, 0.05f, 4);
  v = b.Int8Op("RESHAPE", {v, b.Ints({1, 8, 1, 9})}, 0.05f, 4);
  v = b.Int8Op("TRANSPOSE", {v, b.Ints({0, 2, 3, 1})}, 0.05f, 4);
  b.Out(b.Conv8(v, 3, 1, 0.06f, 0));
  for (const std::string& ops : ExpectFusedEqualsUnfused(b.graph(), 0).ops()) {
    EXPECT_EQ(ops.find("TRANSPOSE"), std::string::npos) << ops;
  }
}

// Residuals and the mean of everything; the value is used again and again.
TEST(SinkTranspose, ThroughSeveralReaders) {
  GraphBuilder b;
  const ValueId v = ToFirst(b, b.Conv(b.Input({1, 5, 6, 4}), 8, 1));
  const ValueId mean = b.Op("MEAN", {v, b.Ints({1, 2, 3})}, {{"keep_dims", 1}});
  const ValueId centred = b.Op("SUB", {v, mean});
  const ValueId sum = b.Op("ADD", {b.Op("MUL", {centred, centred}), b.Op("RELU", {v})});
  b.Output(b.Conv(ToLast(b, sum), 3, 1));
  for (const std::string& ops : ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops()) {
    EXPECT_EQ(ops.find("TRANSPOSE"), std::string::npos) << ops;
  }
}

// The end of a one-dimensional convolutional network.
TEST(SinkTranspose, WhatALayersTailTakes) {
  GraphBuilder b;
  ValueId v = ToFirst(b, b.Conv(b.Input({1, 1, 9, 4}), 8, 1));
  v = b.Op("RESHAPE", {v, b.Ints({1, 8, 9})});
  v = b.Op("MUL", {v, b.Constant({1, 8, 1})});
  b.Output(b.Op("TANH", {b.Op("ADD", {v, b.Constant({8, 1})})}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(),
              ElementsAre("CONV_2D + tanh", "TRANSPOSE"));
}

TEST(SinkTranspose, NotWhereNoOtherFollows) {
  GraphBuilder b;
  const ValueId v = ToFirst(b, b.Input({1, 5, 6, 4}));
  b.Output(b.Op("MUL", {v, b.Constant({4, 1, 1})}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(), ElementsAre("TRANSPOSE", "MUL"));
}

// Operands over any of the dimensions, among them several that a transpose exchanges.
TEST(SinkTranspose, ComputesTheSameForRandomOperands) {
  for (int seed = 1; seed <= 150; ++seed) {
    GraphBuilder b(seed);
    SCOPED_TRACE(b.random().Trace());
    ValueId v = b.Op("NEG", {b.Input({2, 3, 4, 5})});
    std::vector<int32_t> order = {0, 1, 2, 3};
    for (size_t k = 4; k > 1; --k) std::swap(order[k - 1], order[b.random().Int(0, k - 1)]);
    v = b.Op("TRANSPOSE", {v, b.Ints(order)});
    const ValueId first = v;
    for (int i = 0; i < 3; ++i) {
      Shape operand;
      for (const int32_t d : b.shape(v).dims()) {
        operand.push_back(b.random().Chance(0.5) ? d : 1);
      }
      const ValueId other = b.random().Chance(0.2) ? first : b.Constant(operand);
      v = b.random().Chance(0.5) ? b.Op("MUL", {v, other}) : b.Op("SUB", {other, v});
    }
    std::vector<int32_t> back(4);
    for (int d = 0; d < 4; ++d) back[order[d]] = d;
    if (b.random().Chance(0.3)) std::swap(back[0], back[1]);
    b.Output(b.Op("ABS", {b.Op("TRANSPOSE", {v, b.Ints(back)})}));
    ExpectSameFused(b.graph(), 1e-6f);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace fuselite::fusion::testing
