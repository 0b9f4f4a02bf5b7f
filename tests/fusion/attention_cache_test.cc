// Attention over caches of 8 bits.
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

// Attention of `queries` to caches [1, positions, heads, channels], as the converter writes it.
ValueId Attend(GraphBuilder& b, ValueId q, ValueId k, ValueId v, int32_t positions) {
  const ValueId mask = b.Constant({1, 1, 1, positions}, -1, 1);
  const auto outside = [&](ValueId x) { return b.Op("TRANSPOSE", {x, b.Ints({0, 2, 1, 3})}); };
  ValueId scores = b.Op("BATCH_MATMUL", {outside(q), outside(k)}, {{"adj_y", 1}});
  scores = b.Op("ADD", {b.Op("MUL", {scores, b.Scalar(0.3f)}), mask});
  const ValueId weights = b.Op("SOFTMAX", {scores}, {{"beta", 1}});
  return outside(b.Op("BATCH_MATMUL", {weights, outside(v)}));
}

// The update of this run's rows, in bytes, and the cache in floats.
ValueId Cache(Int8Builder& b, ValueId rows, int32_t positions) {
  const ValueId cache = b.In({1, positions, 3, 8}, 0.02f, 5);
  const ValueId bytes = b.Int8Op("QUANTIZE", {rows}, 0.02f, 5);
  const ValueId updated =
      b.Int8Op("DYNAMIC_UPDATE_SLICE", {cache, bytes, b.Ints({0, 2, 0, 0})}, 0.02f, 5);
  b.Output(b.Op("DEQUANTIZE", {updated}));
  return b.Op("DEQUANTIZE", {updated});
}

TEST(AttentionCaches, AreReadAsBytes) {
  for (const int32_t queries : {1, 12}) {
    SCOPED_TRACE(queries);
    Int8Builder b;
    const ValueId rows = b.Op("NEG", {b.Input({1, queries, 3, 8})});
    const ValueId k = Cache(b, rows, 20), v = Cache(b, rows, 20);
    b.Output(Attend(b, b.Input({1, queries, 3, 8}), k, v, 20));
    const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 5e-5f);
    // What is dequantized is only for the outputs.
    EXPECT_EQ(std::ranges::count(outcome.ops(), "DEQUANTIZE"), 2);
    EXPECT_EQ(std::ranges::count(outcome.ops(), "TRANSPOSE"), 0);
    EXPECT_EQ(std::ranges::count(outcome.ops(), "FUSELITE_ATTENTION"), 1);
  }
}

TEST(AttentionCaches, OfFloatKeysStayFloats) {
  Int8Builder b;
  const ValueId q = b.Input({1, 1, 3, 8}), k = b.Input({1, 20, 3, 8});
  b.Output(Attend(b, q, k, Cache(b, b.Op("NEG", {q}), 20), 20));
  EXPECT_EQ(
      std::ranges::count(ExpectFusedEqualsUnfused(b.graph(), 5e-5f).ops(), "FUSELITE_ATTENTION"),
      1);
}

}  // namespace
}  // namespace fuselite::fusion::testing
