// Attention as JAX writes it: with products of turned matrices, and masks by SELECT.
#include <algorithm>
#include <limits>

#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int32_t kHeads = 3, kDepth = 8;
constexpr float kTolerance = 2e-5f, kLow = -2.4e38f;

// [1, rows, heads, depth], as a layer leaves it.
ValueId Rows(GraphBuilder& b, int32_t rows) {
  const ValueId x = b.Op("NEG", {b.Input({1, rows, kHeads * kDepth})});
  return b.Op("RESHAPE", {x, b.Ints({1, rows, kHeads, kDepth})});
}

void OutputRows(GraphBuilder& b, ValueId y, int32_t rows) {
  y = b.Op("RESHAPE", {y, b.Ints({1, rows, kHeads * kDepth})});
  b.Output(b.Op("NEG", {y}));
}

// Triangular, over [..., rows, keys] of `shape`.
ValueId Condition(GraphBuilder& b, const Shape& shape, bool constant) {
  const auto keys = static_cast<int32_t>(shape.dim(-1));
  std::vector<int32_t> of_row, of_key;
  const auto rows = static_cast<int32_t>(shape.elements() / keys);
  for (int32_t i = 0; i < rows; ++i) of_row.push_back(i);
  for (int32_t i = 0; i < keys; ++i) of_key.push_back(i);
  Shape rows_shape = shape;
  rows_shape.set(shape.rank() - 1, 1);
  const ValueId row = b.Ints(rows_shape, of_row), key = b.Ints({keys}, of_key);
  if (constant) return b.Op("LESS_EQUAL", {key, row});
  return b.Op("LESS_EQUAL", {b.Op("ADD", {key, b.Input({1}, DataType::kInt32)}), row});
}

// Flax: [heads, rows, keys] of scores, and values by weights.
TEST(EinsumAttention, OfValuesByWeights) {
  for (const int mask : {0, 1, 2, 3}) {
    SCOPED_TRACE(mask);
    GraphBuilder b;
    const int32_t rows = 9, keys = 11;
    const ValueId q = b.Transpose(Rows(b, rows), {0, 2, 1, 3});
    const ValueId k = b.Transpose(Rows(b, keys), {0, 2, 3, 1});
    const ValueId v = b.Transpose(Rows(b, keys), {0, 2, 3, 1});
    ValueId scores = b.Op("BATCH_MATMUL", {q, k});
    const ValueId low = b.Scalar(kLow);
    if (mask != 0) {
      const ValueId seen = Condition(b, {1, 1, rows, keys}, mask != 2);
      scores = mask == 3 ? b.Op("SELECT_V2", {b.Op("LOGICAL_NOT", {seen}), low, scores})
                         : b.Op("SELECT_V2", {seen, scores, low});
    }
    const ValueId y = b.Op("BATCH_MATMUL", {v, b.Softmax(scores)}, {{"adj_y", 1}});
    OutputRows(b, b.Transpose(y, {0, 3, 1, 2}), rows);
    const std::vector<std::string> ops = ExpectFusedEqualsUnfused(b.graph(), kTolerance).ops();
    EXPECT_THAT(ops, Contains("FUSELITE_ATTENTION + neg"));
    EXPECT_THAT(ops, Not(Contains(StartsWith("TRANSPOSE"))));
    EXPECT_THAT(ops, Not(Contains(StartsWith("BATCH_MATMUL"))));
  }
}

// Gemma: keys by queries, and scores of [rows, heads, keys].
TEST(EinsumAttention, OfKeysByQueries) {
  for (const bool scaled : {false, true}) {
    SCOPED_TRACE(scaled);
    GraphBuilder b;
    const int32_t rows = 9, keys = 11;
    const ValueId k = b.Transpose(Rows(b, keys), {0, 2, 1, 3});
    const ValueId q = b.Transpose(Rows(b, rows), {0, 2, 3, 1});
    ValueId scores = b.Transpose(b.Op("BATCH_MATMUL", {k, q}), {0, 3, 1, 2});
    if (scaled) scores = b.Op("MUL", {scores, b.Scalar(0.5f)});
    const ValueId seen = Condition(b, {1, rows, 1, keys}, true);
    scores = b.Op("SELECT_V2", {seen, scores, b.Scalar(kLow)});
    const ValueId weights = b.Transpose(b.Softmax(scores), {0, 2, 3, 1});
    const ValueId v = b.Transpose(Rows(b, keys), {0, 2, 3, 1});
    const ValueId y = b.Op("BATCH_MATMUL", {v, weights});
    OutputRows(b, b.Transpose(y, {0, 3, 1, 2}), rows);
    EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), kTolerance).ops(),
                ElementsAre("NEG", "NEG", "NEG", "FUSELITE_ATTENTION + neg"));
  }
}

// jax.nn.dot_product_attention: heads of a single group each, and a scale between reshapes.
TEST(EinsumAttention, OverDimensionsOfOne) {
  for (const bool masked : {false, true}) {
    SCOPED_TRACE(masked);
    GraphBuilder b;
    const int32_t rows = 9, keys = 11;
    ValueId q = b.Op("RESHAPE", {Rows(b, rows), b.Ints({1, rows, kHeads, 1, kDepth})});
    q = b.Transpose(q, {0, 2, 1, 3, 4});
    q = b.Op("RESHAPE", {q, b.Ints({1, kHeads, rows, kDepth})});
    const ValueId k = b.Transpose(Rows(b, keys), {0, 2, 3, 1});
    ValueId scores = b.Op("RESHAPE", {b.Op("BATCH_MATMUL", {q, k}),  //
                                      b.Ints({1, kHeads, rows, 1, keys})});
    scores = b.Op("MUL", {scores, b.Scalar(0.25f)});
    scores = b.Op("RESHAPE", {scores, b.Ints({1, 1, kHeads, rows, keys})});
    if (masked) {
      const ValueId seen = Condition(b, {1, 1, 1, rows, keys}, true);
      scores = b.Op("SELECT_V2", {seen, scores, b.Scalar(kLow)});
    }
    ValueId weights = b.Transpose(b.Softmax(scores), {1, 2, 4, 0, 3});
    weights = b.Op("RESHAPE", {weights, b.Ints({1, kHeads, keys, rows})});
    const ValueId v = b.Transpose(Rows(b, keys), {0, 2, 3, 1});
    ValueId y = b.Op("RESHAPE", {b.Op("BATCH_MATMUL", {v, weights}),  //
                                 b.Ints({1, kHeads, kDepth, 1, rows})});
    OutputRows(b, b.Transpose(y, {0, 4, 1, 3, 2}), rows);
    EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), kTolerance).ops(),
                ElementsAre("NEG", "NEG", "NEG", "FUSELITE_ATTENTION + neg"));
  }
}

// Queries that share keys: their heads lie in the rows of the product, where no mask fits. No
// TRANSPOSE takes elements out of rows.
TEST(EinsumAttention, OfGroupsMovesWholeRows) {
  GraphBuilder b;
  const int32_t rows = 9, keys = 11, group = 2;
  const ValueId k = b.Transpose(Rows(b, keys), {0, 2, 1, 3});
  ValueId q = b.Op("NEG", {b.Input({1, rows, kHeads, group, kDepth})});
  q = b.Op("RESHAPE", {b.Transpose(q, {0, 2, 4, 1, 3}), b.Ints({1, kHeads, kDepth, rows * group})});
  ValueId scores = b.Op("BATCH_MATMUL", {k, q});
  scores = b.Op("RESHAPE", {scores, b.Ints({1, kHeads, keys, rows, group})});
  scores = b.Transpose(scores, {0, 3, 1, 4, 2});
  b.Output(b.Softmax(scores));
  Graph graph = b.graph();
  const std::vector<RewriteRecord> records = RecordsOf(graph, Fused());
  EXPECT_TRUE(
      std::ranges::any_of(records, [](const auto& r) { return r.what == "turn BATCH_MATMUL"; }));
  ExpectFusedEqualsUnfused(b.graph(), kTolerance);
}

int Turned(Graph graph) {
  const std::vector<RewriteRecord> records = RecordsOf(graph, Fused());
  return static_cast<int>(
      std::ranges::count_if(records, [](const auto& r) { return r.what == "turn BATCH_MATMUL"; }));
}

// An operand that nothing transposed is read adjoint on the right, and would have to be transposed
// on the left.
TEST(TurnProduct, OfOperandsAsTheyLie) {
  for (const bool adj_x : {false, true}) {
    for (const bool adj_y : {false, true}) {
      GraphBuilder b;
      const ValueId x = b.Op("NEG", {b.Input(adj_x ? Shape({2, 5, 7}) : Shape({2, 7, 5}))});
      const ValueId y = b.Op("NEG", {b.Input(adj_y ? Shape({2, 6, 5}) : Shape({2, 5, 6}))});
      const ValueId z = b.Op("BATCH_MATMUL", {x, y}, {{"adj_x", adj_x}, {"adj_y", adj_y}});
      b.Output(b.Op("TANH", {b.Transpose(z, {0, 2, 1})}));
      EXPECT_EQ(Turned(b.graph()), adj_y ? 1 : 0);
      const std::vector<std::string> ops = ExpectFusedEqualsUnfused(b.graph(), kTolerance).ops();
      if (!adj_y) continue;
      EXPECT_THAT(ops, ElementsAre("NEG", "NEG", "BATCH_MATMUL + tanh"));
    }
  }
}

// A single column of results is a row of the turned product, which reads the other operand where it
// lies. A single row stays one.
TEST(TurnProduct, OfASingleColumn) {
  for (const bool adj_x : {false, true}) {
    for (const bool adj_y : {false, true}) {
      GraphBuilder b;
      const ValueId x = b.Input(adj_x ? Shape({3, 20, 17}) : Shape({3, 17, 20}));
      const ValueId y = b.Input(adj_y ? Shape({3, 1, 20}) : Shape({3, 20, 1}));
      b.Output(b.Op("BATCH_MATMUL", {x, y}, {{"adj_x", adj_x}, {"adj_y", adj_y}}));
      const ValueId row = b.Input({3, 1, 17}), square = b.Input({3, 17, 19});
      const ValueId z = b.Op("BATCH_MATMUL", {row, square});
      b.Output(b.Transpose(z, {0, 2, 1}));
      EXPECT_EQ(Turned(b.graph()), 1);
      ExpectFusedEqualsUnfused(b.graph(), kTolerance);
    }
  }
}

TEST(TurnProduct, OfIntegers) {
  Int8Builder b;
  const ValueId x = b.In({2, 7, 5}), y = b.In({2, 6, 5}, 0.02f, 4);
  const ValueId z = b.Int8Op("BATCH_MATMUL", {x, y}, 0.05f, -7, {{"adj_y", 1}});
  b.Out(b.Int8Op("TRANSPOSE", {z, b.Ints({0, 2, 1})}, 0.05f, -7));
  EXPECT_EQ(Turned(b.graph()), 1);
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(), Not(Contains(StartsWith("TRANSPOSE"))));
}

// Packed ahead, read by others as it is, or not read by columns at all.
TEST(TurnProduct, NotWhereItWouldNotHelp) {
  for (const int wrong : {0, 1, 2}) {
    SCOPED_TRACE(wrong);
    GraphBuilder b;
    const ValueId x = b.Op("NEG", {b.Input({2, 7, 5})});
    const ValueId y = wrong == 0 ? b.Constant({2, 6, 5}) : b.Op("NEG", {b.Input({2, 6, 5})});
    const ValueId z = b.Op("BATCH_MATMUL", {x, y}, {{"adj_y", 1}});
    if (wrong == 1) b.Output(z);
    std::vector<int32_t> order = {0, 2, 1};
    if (wrong == 2) order = {1, 0, 2};
    b.Output(b.Op("TANH", {b.Transpose(z, order)}));
    EXPECT_EQ(Turned(b.graph()), 0);
    ExpectFusedEqualsUnfused(b.graph(), kTolerance);
  }
}

}  // namespace
}  // namespace fuselite::fusion::testing
