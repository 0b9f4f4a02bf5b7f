// Queries, keys and values that one layer gives, moved to the outside and taken apart there.
#include <algorithm>

#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::ElementsAre;

constexpr int32_t kRows = 9, kHeads = 3, kDepth = 8;

enum class Taken { kBySlices, kByStridedSlices, kBySplit, kByUnpack };

// The parts of `x` [3, ...] under the shape of one of them.
std::vector<ValueId> Parts(GraphBuilder& b, ValueId x, Taken taken) {
  const Shape whole = b.shape(x);
  std::vector<int32_t> part(whole.dims().begin() + 1, whole.dims().end());
  std::vector<int32_t> size(whole.dims().begin(), whole.dims().end());
  size[0] = 1;
  std::vector<ValueId> parts;
  if (taken == Taken::kByUnpack) return b.Op("UNPACK", {x}, {{"num", 3}, {"axis", 0}}, 3);
  if (taken == Taken::kBySplit) {
    parts = b.Op("SPLIT", {b.Ints(Shape(), {0}), x}, {{"num_splits", 3}}, 3);
  }
  for (int32_t i = 0; i < 3; ++i) {
    std::vector<int32_t> begin(size.size(), 0), end = size, steps(size.size(), 1);
    begin[0] = i;
    end[0] = i + 1;
    if (taken == Taken::kBySlices) {
      parts.push_back(b.Op("SLICE", {x, b.Ints(begin), b.Ints(size)}));
    } else if (taken == Taken::kByStridedSlices) {
      parts.push_back(b.Op("STRIDED_SLICE", {x, b.Ints(begin), b.Ints(end), b.Ints(steps)}));
    }
  }
  for (ValueId& v : parts) v = b.Op("RESHAPE", {v, b.Ints(part)});
  return parts;
}

// [3, batches, heads, rows, depth] of one layer.
ValueId Packed(GraphBuilder& b, int32_t batches) {
  const ValueId x = b.Dense(b.Input({batches, kRows, 16}), 3 * kHeads * kDepth,  //
                            {{"keep_num_dims", 1}});
  const ValueId apart = b.Op("RESHAPE", {x, b.Ints({batches, kRows, 3, kHeads, kDepth})});
  return b.Op("TRANSPOSE", {apart, b.Ints({2, 0, 3, 1, 4})});
}

ValueId Attention(GraphBuilder& b, const std::vector<ValueId>& qkv) {
  const ValueId scores = b.Op("BATCH_MATMUL", {qkv[0], qkv[1]}, {{"adj_y", 1}});
  const ValueId weights = b.Op("SOFTMAX", {scores}, {{"beta", 0.35}});
  const ValueId y = b.Op("BATCH_MATMUL", {weights, qkv[2]});
  return b.Op("TRANSPOSE", {y, b.Ints({0, 2, 1, 3})});
}

TEST(PackedOperands, OfAttentionAreReadWhereTheyLie) {
  for (const Taken taken :
       {Taken::kBySlices, Taken::kByStridedSlices, Taken::kBySplit, Taken::kByUnpack}) {
    for (const int32_t batches : {1, 2}) {
      GraphBuilder b;
      b.Output(b.Op("NEG", {Attention(b, Parts(b, Packed(b, batches), taken))}));
      EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops(),
                  ElementsAre("FULLY_CONNECTED", "FUSELITE_ATTENTION + neg"));
    }
  }
}

// The three moved to the inside of the heads, as MaxViT writes it.
TEST(PackedOperands, AreTakenApartAlongAnyDimension) {
  GraphBuilder b;
  const ValueId x = b.Dense(b.Input({2, kRows, 16}), 3 * kHeads * kDepth, {{"keep_num_dims", 1}});
  const ValueId apart = b.Op("RESHAPE", {x, b.Ints({2, kRows, 3, kHeads, kDepth})});
  const ValueId moved = b.Op("TRANSPOSE", {apart, b.Ints({0, 3, 2, 1, 4})});
  std::vector<ValueId> qkv;
  for (int32_t i = 0; i < 3; ++i) {
    const ValueId part =
        b.Op("SLICE", {moved, b.Ints({0, 0, i, 0, 0}), b.Ints({2, kHeads, 1, kRows, kDepth})});
    qkv.push_back(b.Op("RESHAPE", {part, b.Ints({2, kHeads, kRows, kDepth})}));
  }
  qkv[0] = b.Op("MUL", {qkv[0], b.Scalar(0.5f)});
  b.Output(b.Op("NEG", {Attention(b, qkv)}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops(),
              ElementsAre("FULLY_CONNECTED", "FUSELITE_ATTENTION + neg"));
}

// Queries, keys and values of one head after the other, as CoAtNet and GPT-NeoX have them.
TEST(PackedOperands, OfEachHeadAreReadWhereTheyLie) {
  for (const int32_t batches : {1, 2}) {
    GraphBuilder b;
    const ValueId x = b.Dense(b.Input({batches, kRows, 16}), 3 * kHeads * kDepth,  //
                              {{"keep_num_dims", 1}});
    const ValueId apart = b.Op("RESHAPE", {x, b.Ints({batches, kRows, kHeads, 3, kDepth})});
    const ValueId packed = b.Op("TRANSPOSE", {apart, b.Ints({3, 0, 2, 1, 4})});
    b.Output(b.Op("NEG", {Attention(b, Parts(b, packed, Taken::kBySlices))}));
    EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops(),
                ElementsAre("FULLY_CONNECTED", "FUSELITE_ATTENTION + neg"));
  }
}

// Parts that others read would be copied before they are moved.
TEST(PackedOperands, StayWhereOthersReadThem) {
  GraphBuilder b;
  for (const ValueId part : Parts(b, Packed(b, 1), Taken::kBySlices)) {
    b.Output(b.Op("NEG", {part}));
  }
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 1e-5f);
  EXPECT_THAT(outcome.ops(), ElementsAre("FULLY_CONNECTED", "TRANSPOSE", "NEG", "NEG", "NEG"));
}

// Parts of unlike sizes for each head, as LeViT has them, and those that begin anywhere: between
// the parts of others, and within a head.
TEST(PackedOperands, AreColumnsOfAnySize) {
  for (const int32_t values : {8, 13, 16}) {
    const int32_t width = 2 * kDepth + values;
    GraphBuilder b;
    const ValueId x = b.Dense(b.Input({1, kRows, 16}), kHeads * width, {{"keep_num_dims", 1}});
    const ValueId apart = b.Op("RESHAPE", {x, b.Ints({1, kRows, kHeads, width})});
    const ValueId moved = b.Op("TRANSPOSE", {apart, b.Ints({0, 2, 1, 3})});
    const std::vector<ValueId> qkv =
        b.Op("SPLIT_V", {moved, b.Ints({kDepth, kDepth, values}), b.Ints(Shape(), {3})},
             {{"num_splits", 3}}, 3);
    b.Output(b.Op("NEG", {Attention(b, qkv)}));
    EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops(),
                ElementsAre("FULLY_CONNECTED", "FUSELITE_ATTENTION + neg"));
  }
  for (const int32_t begin : {0, 1, 3}) {
    GraphBuilder b;
    const ValueId packed = b.Op("RESHAPE", {Packed(b, 1), b.Ints({3 * kHeads, kRows, kDepth})});
    const auto part = [&](int32_t from) {
      const ValueId x = b.Op("SLICE", {packed, b.Ints({from, 0, 0}), b.Ints({3, kRows, kDepth})});
      return b.Op("RESHAPE", {x, b.Ints({1, kHeads, kRows, kDepth})});
    };
    b.Output(b.Op("NEG", {Attention(b, {part(begin), part(3), part(6)})}));
    EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops(),
                ElementsAre("FULLY_CONNECTED", "FUSELITE_ATTENTION + neg"));
  }
}

// Two values of int4 share a byte.
TEST(PackedOperands, OfHalfBytesStay) {
  GraphBuilder b;
  const TensorInfo int4{.type = DataType::kInt4};
  ValueId x = b.Op("CAST", {b.Input({2, 4, 3})}, {}, 1, int4)[0];
  x = b.Op("SLICE", {x, b.Ints({1, 0, 0}), b.Ints({1, 4, 3})}, {}, 1, int4)[0];
  b.Output(b.Op("CAST", {x}, {}, 1, {.type = DataType::kFloat32})[0]);
  ExpectSameFused(b.graph(), 0);
}

TEST(PackedOperands, MayBeEmpty) {
  GraphBuilder b;
  const ValueId x = b.Op("TRANSPOSE", {b.Input({2, 0, 3}), b.Ints({2, 0, 1})});
  for (const ValueId part : Parts(b, x, Taken::kBySplit)) b.Output(part);
  EXPECT_TRUE(RunGraph(b.graph(), Fused()).status.ok());
}

// A layer of 32 units over rows of 64 whose weights are in blocks of 32, or small.
ValueId SmallLayer(GraphBuilder& b, std::string_view op, ValueId x, bool biased) {
  const bool blocks = op == "FUSELITE_BLOCKWISE_FULLY_CONNECTED";
  std::vector<ValueId> inputs = {x, b.Int8Constant({32, 64}, blocks ? 1.0f : 0.01f)};
  if (biased || blocks) inputs.push_back(biased ? b.Constant({32}) : kNone);
  if (blocks) inputs.push_back(b.Constant({32, 2}, 0.005f, 0.01f));
  return b.Op(op, inputs, {{"keep_num_dims", 1}});
}

TEST(JoinProjections, OfAGateAndWhatItScales) {
  for (const std::string_view op : {std::string_view("FUSELITE_BLOCKWISE_FULLY_CONNECTED"),
                                    std::string_view("FUSELITE_WEIGHT_ONLY_FULLY_CONNECTED")}) {
    for (const bool biased : {false, true}) {
      SCOPED_TRACE(op);
      GraphBuilder b;
      const ValueId x = b.Op("NEG", {b.Input({1, 1, 64})});
      const ValueId gate = b.Op("TANH", {SmallLayer(b, op, x, biased)});
      b.Output(b.Op("MUL", {gate, SmallLayer(b, op, x, biased)}));
      EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops(),
                  ElementsAre("NEG", std::string(op), "TANH + mul"));
    }
  }
}

TEST(JoinProjections, NotOfWhatOthersReadOrOtherRows) {
  constexpr std::string_view kOp = "FUSELITE_BLOCKWISE_FULLY_CONNECTED";
  for (const int wrong : {0, 1, 2}) {
    SCOPED_TRACE(wrong);
    GraphBuilder b;
    const ValueId x = b.Op("NEG", {b.Input({1, 1, 64})});
    const ValueId other = wrong == 0 ? b.Op("ABS", {x}) : x;
    const ValueId up = SmallLayer(b, kOp, other, wrong == 2);
    b.Output(b.Op("MUL", {b.Op("TANH", {SmallLayer(b, kOp, x, false)}), up}));
    if (wrong == 1) b.Output(b.Op("NEG", {up}));
    const std::vector<std::string> ops = ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops();
    const auto layers =
        std::ranges::count_if(ops, [&](const auto& o) { return o.starts_with(kOp); });
    EXPECT_EQ(layers, 2);
  }
}

// Two layers of one row, the second of which differs from the first, lead to one product.
TEST(JoinProjections, OnlyOfLayersThatAreAlike) {
  constexpr std::string_view kBlocks = "FUSELITE_BLOCKWISE_FULLY_CONNECTED",
                             kSmall = "FUSELITE_WEIGHT_ONLY_FULLY_CONNECTED";
  struct Layer {
    std::string_view op;
    int32_t blocks = 2;
    bool biased = false, quantized = true, zero_points = true;
    Attributes attributes{};
  };
  const auto add = [=](GraphBuilder& b, ValueId x, const Layer& layer) {
    const ValueId weights = b.Int8Constant({32, 64}, 0.01f);
    Quantization& q = b.graph().value(weights).info.quantization;
    if (!layer.zero_points) q.zero_points = std::vector<int32_t>();
    if (!layer.quantized) q = {};
    std::vector<ValueId> inputs = {x, weights};
    if (layer.biased || layer.op == kBlocks)
      inputs.push_back(layer.biased ? b.Constant({32}) : kNone);
    if (layer.op == kBlocks) inputs.push_back(b.Constant({32, layer.blocks}, 0.005f, 0.01f));
    Attributes attributes = layer.attributes;
    attributes.emplace_back("keep_num_dims", 1);
    return b.Op(layer.op, inputs, attributes);
  };
  struct Case {
    Layer first, second;
    bool joined;
  };
  for (const Case& c : std::initializer_list<Case>{
           {{kBlocks}, {kBlocks}, true},
           {{kSmall}, {kSmall}, true},
           {{kSmall}, {.op = kSmall, .zero_points = false}, true},
           {{.op = kSmall, .zero_points = false}, {kSmall}, true},
           {{kBlocks}, {.op = kBlocks, .blocks = 1}, false},
           {{kBlocks}, {.op = kBlocks, .quantized = false}, false},
           {{kBlocks}, {.op = kBlocks, .biased = true}, false},
           {{kSmall}, {.op = kSmall, .biased = true}, false},
           {{kBlocks}, {kSmall}, false},
           {{kSmall}, {"FULLY_CONNECTED"}, false},
           {{"FULLY_CONNECTED"}, {"FULLY_CONNECTED"}, false},
           {{kSmall}, {.op = kSmall, .attributes = {{"fused_activation_function", kRelu}}}, false},
       }) {
    GraphBuilder b;
    const ValueId x = b.Op("NEG", {b.Input({1, 1, 64})});
    const ValueId gate = b.Op("TANH", {add(b, x, c.first)});
    b.Output(b.Op("MUL", {gate, add(b, x, c.second)}));
    const std::vector<std::string> ops = ExpectSameFused(b.graph(), 5e-4f).ops();
    const auto layers = std::ranges::count_if(
        ops, [&](const auto& o) { return o.find("FULLY_CONNECTED") != std::string::npos; });
    EXPECT_EQ(layers, c.joined ? 1 : 2) << c.first.op << ", " << c.second.op;
  }
}

TEST(JoinProjections, NotOfThoseThatLeadToTwoProducts) {
  constexpr std::string_view kOp = "FUSELITE_WEIGHT_ONLY_FULLY_CONNECTED";
  GraphBuilder b;
  const ValueId x = b.Op("NEG", {b.Input({1, 1, 64})});
  for (int i = 0; i < 2; ++i) {
    b.Output(b.Op("MUL", {b.Op("TANH", {SmallLayer(b, kOp, x, false)}), b.Input({1, 1, 32})}));
  }
  const std::vector<std::string> ops = ExpectSameFused(b.graph(), 2e-5f).ops();
  EXPECT_EQ(std::ranges::count_if(ops, [&](const auto& o) { return o.starts_with(kOp); }), 2);
}

// Two weights of int4 share a byte: those that end in the middle of one have nothing below them.
TEST(JoinProjections, OfHalfBytesEndInWholeOnes) {
  constexpr std::string_view kOp = "FUSELITE_WEIGHT_ONLY_FULLY_CONNECTED";
  for (const auto& [first, second] :
       {std::pair(4, 4), std::pair(5, 5), std::pair(1, 4), std::pair(4, 1)}) {
    GraphBuilder b;
    const ValueId x = b.Op("NEG", {b.Input({1, 1, 3})});
    const auto layer = [&](int32_t units) {
      std::vector<std::byte> bytes((units * 3 + 1) / 2);
      for (std::byte& two : bytes) two = std::byte(b.random().Int(0, 255));
      const TensorInfo info{.type = DataType::kInt4,
                            .shape = {units, 3},
                            .quantization = {.scales = {0.1f}, .zero_points = {0}}};
      const ValueId weights = b.graph().AddConstant(info, bytes, "int4");
      return b.Op(kOp, {x, weights}, {{"keep_num_dims", 1}});
    };
    const ValueId gate = b.Op("TANH", {layer(first)});
    b.Output(b.Op("MUL", {gate, layer(second)}));
    const std::vector<std::string> ops = ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops();
    const auto layers =
        std::ranges::count_if(ops, [&](const auto& o) { return o.starts_with(kOp); });
    EXPECT_EQ(layers, first == 4 && second == 4 ? 1 : 2);
  }
}

// Queries, keys and values by weights in blocks.
TEST(JoinProjections, OfAttentionByWeightsInBlocks) {
  GraphBuilder b;
  const ValueId x = b.Op("NEG", {b.Input({1, kRows, 64})});
  std::vector<ValueId> qkv;
  for (int i = 0; i < 3; ++i) {
    const ValueId rows = SmallLayer(b, "FUSELITE_BLOCKWISE_FULLY_CONNECTED", x, i > 0);
    const ValueId heads = b.Op("RESHAPE", {rows, b.Ints({1, kRows, 4, kDepth})});
    qkv.push_back(b.Op("TRANSPOSE", {heads, b.Ints({0, 2, 1, 3})}));
  }
  b.Output(b.Op("NEG", {Attention(b, qkv)}));
  // Queries have no bias, keys and values have one.
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops(),
              ElementsAre("NEG", "FUSELITE_BLOCKWISE_FULLY_CONNECTED",
                          "FUSELITE_BLOCKWISE_FULLY_CONNECTED", "FUSELITE_ATTENTION + neg"));
}

}  // namespace
}  // namespace fuselite::fusion::testing
