// Attention of bytes: products of heads that lie side by side.
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Sizes {
  int32_t batches = 1, rows = 20, heads = 3, width = 8, keys = 24, values = 5;
};

// Attention as Keras' converter writes it, and what may stand in it.
class Attention {
 public:
  explicit Attention(const Sizes& sizes) : s_(sizes) {}

  bool adj_y = false;           // keys as [head, key, channel]
  bool scaled = true;           // scores, by a number
  bool four_dimensions = true;  // else [head, row, channel]
  Shape mask{};                 // added to the scores, of bytes

  Int8Builder& Build() {
    const ValueId queries = Heads(s_.rows, s_.width, {0, 2, 1, 3});
    const ValueId keys =
        Heads(s_.keys, s_.width, adj_y ? std::vector{0, 2, 1, 3} : std::vector{0, 2, 3, 1});
    scores = b_.Int8Op("BATCH_MATMUL", {queries, keys}, 0.1f, 3, {{"adj_y", adj_y}});
    ValueId x = scores;
    if (scaled) x = b_.Int8Op("MUL", {x, b_.Int8Constant({}, 0.01f)}, 0.05f, 1);
    if (mask.rank() > 0) x = b_.Int8Op("ADD", {x, b_.In(mask)}, 0.1f, -4);
    const ValueId weights = b_.Int8Op("SOFTMAX", {x}, 1.0f / 256, -128, {{"beta", 1}});
    const ValueId y =
        b_.Int8Op("BATCH_MATMUL", {weights, Heads(s_.keys, s_.values, {0, 2, 1, 3})}, 0.02f, -1);
    b_.Out(Transposed(y, {0, 2, 1, 3}, 0.02f, -1));
    return b_;
  }

  ValueId scores = kNone;

 private:
  ValueId Transposed(ValueId x, std::vector<int32_t> permutation, float scale, int32_t zero_point) {
    if (!four_dimensions) {
      permutation.erase(permutation.begin());
      for (int32_t& i : permutation) --i;
    }
    return b_.Int8Op("TRANSPOSE", {x, b_.Ints(permutation)}, scale, zero_point);
  }

  ValueId Heads(int32_t rows, int32_t width, const std::vector<int32_t>& permutation) {
    const Shape shape =
        four_dimensions ? Shape{s_.batches, rows, s_.heads, width} : Shape{rows, s_.heads, width};
    const Shape side_by_side = {s_.batches * rows, s_.heads * width};
    const ValueId x = b_.Dense8(b_.In({s_.batches * rows, 16}), side_by_side[1], 0.03f, 2);
    return Transposed(
        b_.Int8Op("RESHAPE", {x, b_.Ints({shape.dims().begin(), shape.dims().end()})}, 0.03f, 2),
        permutation, 0.03f, 2);
  }

  const Sizes s_;
  Int8Builder b_;
};

// Whether the products take the heads where they lie; the bits stay as they are.
bool TakesHeads(const Graph& graph) {
  const std::vector<std::string> ops = ExpectSameFused(graph, 0).ops();
  const bool takes = std::ranges::any_of(
      ops, [](const std::string& op) { return op.starts_with("FUSELITE_HEADS_MATMUL"); });
  if (takes) {
    EXPECT_THAT(ops, Not(Contains("TRANSPOSE")));
    EXPECT_THAT(ops, Not(Contains(HasSubstr("BATCH_MATMUL"))));
  }
  return takes;
}

TEST(HeadsIntoProducts, WhateverTheFormOfKeysAndScores) {
  for (const bool adj_y : {false, true}) {
    for (const bool scaled : {false, true}) {
      for (const bool four_dimensions : {false, true}) {
        SCOPED_TRACE(::testing::Message() << adj_y << scaled << four_dimensions);
        Attention attention({});
        attention.adj_y = adj_y;
        attention.scaled = scaled;
        attention.four_dimensions = four_dimensions;
        EXPECT_TRUE(TakesHeads(attention.Build().graph()));
      }
    }
  }
}

TEST(HeadsIntoProducts, OfManySizes) {
  EXPECT_TRUE(
      TakesHeads(Attention({.rows = 16, .heads = 2, .width = 64, .keys = 16}).Build().graph()));
  EXPECT_TRUE(
      TakesHeads(Attention({.rows = 197, .heads = 3, .width = 7, .keys = 197}).Build().graph()));
  EXPECT_TRUE(TakesHeads(Attention({.rows = 33, .keys = 5, .values = 2}).Build().graph()));
}

TEST(HeadsIntoProducts, MasksAreTheSameForAllHeads) {
  for (const Shape& mask : {Shape{24}, Shape{1, 1, 1, 24}, Shape{20, 24}, Shape{1, 1, 20, 24}}) {
    SCOPED_TRACE(mask);
    Attention attention({});
    attention.mask = mask;
    EXPECT_TRUE(TakesHeads(attention.Build().graph()));
  }
  Attention by_head({});
  by_head.mask = {1, 3, 1, 24};
  EXPECT_FALSE(TakesHeads(by_head.Build().graph()));
}

TEST(HeadsIntoProducts, LeavesWhatDoesNotFit) {
  EXPECT_FALSE(TakesHeads(Attention({.batches = 2}).Build().graph()));
  EXPECT_FALSE(TakesHeads(Attention({.heads = 1}).Build().graph()));
  EXPECT_FALSE(TakesHeads(Attention({.rows = 4}).Build().graph())) << "few rows";
  Attention observed({});
  Int8Builder& b = observed.Build();
  b.Out(observed.scores);
  EXPECT_FALSE(TakesHeads(b.graph())) << "somebody else reads the scores";
}

TEST(HeadsIntoProducts, AndIntoStrips) {
  Attention attention({});
  const Graph& graph = attention.Build().graph();
  CompileOptions options = Fused();
  const Outcome whole = RunGraph(graph, options);
  options.threads = 2;
  options.strips.least_of_strip = 1;
  const Outcome strips = RunGraph(graph, options);
  ExpectClose(whole.outputs, strips.outputs, 0);
  const StepReport& last = strips.report.steps.back();
  std::vector<std::string> ops;
  for (const StepReport& step : last.steps) ops.push_back(step.ops.substr(0, step.ops.find(' ')));
  EXPECT_THAT(
      ops, ElementsAre("FUSELITE_HEADS_MATMUL", "SOFTMAX", "FUSELITE_HEADS_MATMUL", "DEQUANTIZE"));
}

}  // namespace
}  // namespace fuselite::fusion::testing
