// TRANSPOSE moved behind reductions and PAD.
#include <utility>

#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Property;

std::vector<int32_t> RandomPermutation(Random& random) {
  std::vector<int32_t> permutation = {0, 1, 2, 3};
  for (size_t i = 3; i > 0; --i) {
    std::swap(permutation[i],
              permutation[static_cast<size_t>(random.Int(0, static_cast<int64_t>(i)))]);
  }
  return permutation;
}

void ExpectNoTranspose(const Outcome& outcome) {
  for (const std::string& ops : outcome.ops()) {
    EXPECT_EQ(ops.find("TRANSPOSE"), std::string::npos) << ops;
  }
}

// The end of a network over points, or over words.
TEST(ReduceBeforeTranspose, TakesTheMaximumOverPositions) {
  GraphBuilder b;
  ValueId v = b.Transpose(b.Conv(b.Input({1, 1, 9, 4}), 8, 1), {0, 3, 1, 2});
  v = b.Op("RESHAPE", {v, b.Ints({1, 8, 9})});
  v = b.Op("REDUCE_MAX", {v, b.Ints({2})});
  b.Output(b.Dense(v, 3));
  ExpectNoTranspose(ExpectFusedEqualsUnfused(b.graph(), 1e-5f));
}

// The record names the TRANSPOSE, which nobody reads any more, too.
TEST(ReduceBeforeTranspose, RecordsTheTranspose) {
  GraphBuilder b;
  ValueId v = b.Transpose(b.Conv(b.Input({1, 1, 9, 4}), 8, 1), {0, 3, 1, 2});
  b.Output(b.Op("REDUCE_MAX", {b.Op("RESHAPE", {v, b.Ints({1, 8, 9})}), b.Ints({2})}));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 1e-5f);
  EXPECT_THAT(outcome.report.rewrites,
              Contains(Property(&RewriteRecord::ToString,
                                "move TRANSPOSE behind REDUCE_MAX: nodes 1, 2, 3")));
}

TEST(ReduceBeforeTranspose, OfSeveralDimensions) {
  for (const char* op : {"MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"}) {
    for (const int keeps : {0, 1}) {
      GraphBuilder b;
      const ValueId v = b.Transpose(b.Conv(b.Input({2, 5, 6, 4}), 8, 1), {0, 3, 1, 2});
      b.Output(b.Op(op, {v, b.Ints({-1, 2})}, {{"keep_dims", keeps}}));
      ExpectNoTranspose(ExpectFusedEqualsUnfused(b.graph(), 1e-5f));
    }
  }
}

// What is left is less to transpose.
TEST(ReduceBeforeTranspose, OrdersWhatIsLeft) {
  GraphBuilder b;
  const ValueId v = b.Transpose(b.Op("NEG", {b.Input({3, 4, 5, 7})}), {3, 1, 0, 2});
  b.Output(b.Op("SUM", {v, b.Ints({3})}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(),
              ElementsAre("NEG", "SUM", "TRANSPOSE"));
}

// Rows of a few elements take longer than columns.
TEST(ReduceBeforeTranspose, LeavesColumns) {
  GraphBuilder b;
  const ValueId v = b.Transpose(b.Op("NEG", {b.Input({40, 5})}), {1, 0});
  b.Output(b.Op("REDUCE_MAX", {v, b.Ints({0})}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("NEG", "TRANSPOSE", "REDUCE_MAX"));
}

TEST(ReduceBeforeTranspose, LeavesWhatReshapesCutThrough) {
  GraphBuilder b;
  ValueId v = b.Transpose(b.Op("NEG", {b.Input({4, 6})}), {1, 0});
  v = b.Op("RESHAPE", {v, b.Ints({8, 3})});
  b.Output(b.Op("SUM", {v, b.Ints({1})}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(),
              ElementsAre("NEG", "TRANSPOSE", "SUM"));
}

TEST(ReduceBeforeTranspose, OfBytes) {
  Int8Builder b;
  ValueId v = b.Conv8(b.In({1, 1, 9, 4}), 8, 1, 0.04f, 3);
  v = b.Int8Op("TRANSPOSE", {v, b.Ints({0, 3, 1, 2})}, 0.04f, 3);
  b.Out(b.Int8Op("MEAN", {v, b.Ints({2, 3})}, 0.03f, -4));
  ExpectNoTranspose(ExpectFusedEqualsUnfused(b.graph(), 0));
}

TEST(ReduceBeforeTranspose, ComputesTheSameForRandomShapes) {
  for (int seed = 1; seed <= 40; ++seed) {
    GraphBuilder b(seed);
    SCOPED_TRACE(b.random().Trace());
    ValueId v = b.Op("NEG", {b.Input({2, 3, 4, 5})});
    v = b.Transpose(v, RandomPermutation(b.random()));
    if (b.random().Chance(0.3)) v = b.Op("RESHAPE", {v, b.Ints({2, 30, 2})});
    std::vector<int32_t> axes = {static_cast<int32_t>(b.random().Int(0, 2))};
    if (b.random().Chance(0.5)) axes.push_back(static_cast<int32_t>(b.random().Int(-2, 2)));
    b.Output(b.Op(b.random().Chance(0.5) ? "SUM" : "REDUCE_MIN", {v, b.Ints(axes)},
                  {{"keep_dims", b.random().Chance(0.5)}}));
    ExpectFusedEqualsUnfused(b.graph(), 1e-5f);
  }
}

// A causal convolution over time, as the PyTorch converter writes it: the padding becomes that of
// the convolution.
TEST(PadBeforeTranspose, BecomesThatOfTheNextConvolution) {
  GraphBuilder b;
  ValueId v = b.Transpose(b.Conv(b.Input({1, 1, 9, 4}), 8, 1), {0, 3, 1, 2});
  v = b.Op("RESHAPE", {v, b.Ints({1, 8, 9})});
  v = b.Op("PAD", {v, b.Ints({3, 2}, {0, 0, 0, 0, 2, 0})});
  v = b.Op("RESHAPE", {v, b.Ints({1, 8, 1, 11})});
  b.Output(b.Conv(b.Transpose(v, {0, 2, 3, 1}), 3, 1));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(), ElementsAre("CONV_2D", "CONV_2D"));
}

TEST(PadBeforeTranspose, OfChannelsAndRows) {
  GraphBuilder b;
  ValueId v = b.Transpose(b.Conv(b.Input({2, 5, 6, 4}), 8, 1), {0, 3, 1, 2});
  v = b.Op("PAD", {v, b.Ints({4, 2}, {0, 0, 1, 3, 2, 0, 0, 1})});
  b.Output(b.Conv(b.Transpose(v, {0, 2, 3, 1}), 3, 1));
  ExpectNoTranspose(ExpectFusedEqualsUnfused(b.graph(), 1e-5f));
}

TEST(PadBeforeTranspose, StaysWhereNoOtherFollows) {
  GraphBuilder b;
  const ValueId v = b.Transpose(b.Op("NEG", {b.Input({4, 6})}), {1, 0});
  b.Output(b.Op("PAD", {v, b.Ints({2, 2}, {1, 0, 0, 2})}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(), ElementsAre("NEG", "TRANSPOSE", "PAD"));
}

// No dimension of the source has ten elements, or is the new one.
TEST(PadBeforeTranspose, StaysWhereTheSourceHasNoSuchDimension) {
  for (const Shape& shape : {Shape{6, 2, 5}, Shape{30, 2, 1}}) {
    GraphBuilder b;
    ValueId v = b.Transpose(b.Op("NEG", {b.Input({2, 5, 6})}), {2, 0, 1});
    v = b.Op("RESHAPE", {v, b.Ints({shape[0], shape[1] * shape[2], 1})});
    v = b.Op("PAD", {v, b.Ints({3, 2}, {0, 0, 1, 0, 0, 0})});
    b.Output(b.Transpose(v, {1, 0, 2}));
    EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
                ElementsAre("NEG", HasSubstr("TRANSPOSE"), "PAD", HasSubstr("TRANSPOSE")));
  }
}

TEST(PadBeforeTranspose, OfBytes) {
  Int8Builder b;
  ValueId v = b.Conv8(b.In({1, 1, 9, 4}), 8, 1, 0.04f, 3);
  v = b.Int8Op("TRANSPOSE", {v, b.Ints({0, 3, 1, 2})}, 0.04f, 3);
  v = b.Int8Op("PAD", {v, b.Ints({4, 2}, {0, 0, 0, 0, 0, 0, 2, 1})}, 0.04f, 3);
  v = b.Int8Op("TRANSPOSE", {v, b.Ints({0, 2, 3, 1})}, 0.04f, 3);
  b.Out(b.Conv8(v, 3, 1, 0.06f, 0));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("QUANTIZE", "CONV_2D", "CONV_2D", "DEQUANTIZE"));
}

TEST(PadBeforeTranspose, ComputesTheSameForRandomShapes) {
  for (int seed = 1; seed <= 40; ++seed) {
    GraphBuilder b(seed);
    SCOPED_TRACE(b.random().Trace());
    ValueId v = b.Transpose(b.Op("NEG", {b.Input({2, 3, 1, 5})}), RandomPermutation(b.random()));
    std::vector<int32_t> paddings(8);
    for (int32_t& p : paddings)
      p = b.random().Chance(0.5) ? 0 : static_cast<int32_t>(b.random().Int(1, 3));
    v = b.Op("PAD", {v, b.Ints({4, 2}, paddings)});
    v = b.Op("ABS", {v});
    b.Output(b.Op("RELU", {b.Transpose(v, {1, 2, 3, 0})}));
    ExpectFusedEqualsUnfused(b.graph(), 0);
  }
}

}  // namespace
}  // namespace fuselite::fusion::testing
