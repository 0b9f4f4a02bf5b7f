// Filters in the order in which a pixel shuffle wants their channels, and TRANSPOSEs done once.
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// As the PyTorch converter writes it: [1, H, W, C * r * r] to [1, C, H * r, W * r].
ValueId PixelShuffle(GraphBuilder& b, ValueId v, int32_t r) {
  const Shape in = b.shape(v);
  const int32_t h = in[1], w = in[2], c = in[3] / (r * r);
  v = b.Op("TRANSPOSE", {v, b.Ints({0, 3, 1, 2})});
  v = b.Op("RESHAPE", {v, b.Ints({c, r, r, h, w})});
  v = b.Op("TRANSPOSE", {v, b.Ints({0, 3, 1, 4, 2})});
  return b.Op("RESHAPE", {v, b.Ints({1, c, h * r, w * r})});
}

ValueId ToNhwc(GraphBuilder& b, ValueId v) { return b.Op("TRANSPOSE", {v, b.Ints({0, 2, 3, 1})}); }

bool Reordered(const Outcome& outcome) {
  for (const RewriteRecord& record : outcome.report.rewrites) {
    if (record.what.find("order filters") != std::string::npos) return true;
  }
  return false;
}

TEST(OrderFilters, LeavesRunsOfChannelsToMove) {
  GraphBuilder b;
  const ValueId v = b.Conv(b.Input({1, 4, 5, 3}), 5 * 4, 1);
  b.Output(b.Conv(ToNhwc(b, PixelShuffle(b, v, 2)), 3, 1));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 1e-5f);
  EXPECT_THAT(outcome.ops(), ElementsAre("CONV_2D", "TRANSPOSE", "CONV_2D"));
  EXPECT_TRUE(Reordered(outcome));
  // Two pixels of a row lie side by side.
  EXPECT_EQ(outcome.report.steps[1].output_shape, "[4,2,5,10]");
}

// A channel shuffle behind a layer moves nothing at all.
TEST(OrderFilters, OfAChannelShuffle) {
  GraphBuilder b;
  ValueId v = b.Dense(b.Input({7, 4}), 12);
  v = b.Op("RESHAPE", {v, b.Ints({7, 3, 4})});
  v = b.Op("TRANSPOSE", {v, b.Ints({0, 2, 1})});
  b.Output(b.Dense(b.Op("RESHAPE", {v, b.Ints({7, 12})}), 5));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(),
              ElementsAre("FULLY_CONNECTED", "FULLY_CONNECTED"));
}

// Filters without a bias, and a layer with one channel and one element.
TEST(OrderFilters, OfLayersWithoutABias) {
  GraphBuilder b;
  ValueId v = b.Op("FULLY_CONNECTED", {b.Input({7, 4}), b.Constant({12, 4}), kNone});
  v = b.Op("RESHAPE", {v, b.Ints({7, 3, 4})});
  v = b.Op("TRANSPOSE", {v, b.Ints({0, 2, 1})});
  b.Output(b.Dense(b.Op("RESHAPE", {v, b.Ints({7, 12})}), 5));
  EXPECT_TRUE(Reordered(ExpectFusedEqualsUnfused(b.graph(), 1e-5f)));
  GraphBuilder one;
  one.Output(one.Op("TRANSPOSE", {one.Dense(one.Input({1, 4}), 1), one.Ints({1, 0})}));
  ExpectFusedEqualsUnfused(one.graph(), 1e-5f);
}

// A layer of int8 rows by `depth` columns of weights of half a byte each, for a channel shuffle.
std::vector<RewriteRecord> RecordsOfShuffle(int32_t depth, DataType type, double max_memory) {
  GraphBuilder b;
  std::vector<std::byte> bytes(static_cast<size_t>(12 * depth) * BitWidth(type) / 8);
  const TensorInfo info{
      .type = type, .shape = {12, depth}, .quantization = {.scales = {0.1f}, .zero_points = {0}}};
  const ValueId weights = b.graph().AddConstant(info, bytes, "weights");
  ValueId v = b.Op("FULLY_CONNECTED", {b.Input({7, depth}), weights, kNone});
  v = b.Op("RESHAPE", {v, b.Ints({7, 3, 4})});
  v = b.Op("TRANSPOSE", {v, b.Ints({0, 2, 1})});
  b.Output(b.Op("RESHAPE", {v, b.Ints({7, 12})}));
  CompileOptions options = Fused();
  options.budget.max_memory = max_memory;
  return RecordsOf(b.graph(), options);
}

// Filters are ordered in whole bytes, and as far as there may be copies of them.
TEST(OrderFilters, OfWholeBytesWithinTheBudget) {
  const auto ordered = Contains(::testing::Field(&RewriteRecord::what, HasSubstr("order filters")));
  EXPECT_THAT(RecordsOfShuffle(64, DataType::kInt8, 4096), ordered);
  EXPECT_THAT(RecordsOfShuffle(64, DataType::kInt8, 700), ::testing::Not(ordered));
  EXPECT_THAT(RecordsOfShuffle(64, DataType::kInt4, 4096), ordered);
  EXPECT_THAT(RecordsOfShuffle(63, DataType::kInt4, 4096), ::testing::Not(ordered));
}

TEST(OrderFilters, BehindFunctionsOfOneOperand) {
  GraphBuilder b;
  ValueId v = b.Conv(b.Input({1, 4, 5, 3}), 3 * 9, 3, {{"fused_activation_function", kRelu}});
  v = b.Op("TANH", {b.Op("NEG", {v})});
  b.Output(b.Conv(ToNhwc(b, PixelShuffle(b, v, 3)), 3, 1));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 1e-5f);
  EXPECT_TRUE(Reordered(outcome));
}

// Scales and biases of channels go with their filters.
TEST(OrderFilters, OfBytes) {
  Int8Builder b;
  const ValueId filters = b.Int8Constant({12, 1, 1, 3}, 0.01f);
  std::vector<float> scales;
  for (int c = 0; c < 12; ++c) scales.push_back(0.01f + 0.002f * static_cast<float>(c));
  b.graph().value(filters).info.quantization = {
      .scales = std::move(scales), .zero_points = ChannelValues<int32_t>::Repeated(12, 0)};
  ValueId v = b.Int8Op("CONV_2D", {b.In({1, 4, 5, 3}), filters}, 0.04f, 3,
                       {{"stride_w", 1}, {"stride_h", 1}, {"padding", kValid}});
  v = b.Int8Op("RESHAPE", {v, b.Ints({4, 5, 3, 2, 2})}, 0.04f, 3);
  v = b.Int8Op("TRANSPOSE", {v, b.Ints({0, 3, 1, 4, 2})}, 0.04f, 3);
  v = b.Int8Op("RESHAPE", {v, b.Ints({1, 8, 10, 3})}, 0.04f, 3);
  b.Out(b.Conv8(v, 3, 1, 0.06f, 0));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 0);
  EXPECT_TRUE(Reordered(outcome));
}

TEST(OrderFilters, NotWhereOthersReadTheLayer) {
  GraphBuilder b;
  const ValueId v = b.Conv(b.Input({1, 4, 5, 3}), 5 * 4, 1);
  b.Output(b.Op("ABS", {v}));
  b.Output(b.Conv(ToNhwc(b, PixelShuffle(b, v, 2)), 3, 1));
  EXPECT_FALSE(Reordered(ExpectFusedEqualsUnfused(b.graph(), 1e-5f)));
}

// The result's innermost elements are those of a row of the image, not channels.
TEST(OrderFilters, NotWhereTheImageStaysInPlanes) {
  GraphBuilder b;
  const ValueId v = b.Conv(b.Input({1, 4, 5, 3}), 5 * 4, 1);
  b.Output(b.Op("ABS", {b.Op("TRANSPOSE", {v, b.Ints({0, 3, 1, 2})})}));
  EXPECT_FALSE(Reordered(ExpectFusedEqualsUnfused(b.graph(), 1e-5f)));
}

TEST(OrderFilters, NotOfGroups) {
  GraphBuilder b;
  const ValueId filters = b.Constant({12, 1, 1, 2}), bias = b.Constant(Shape{12});
  ValueId v = b.Op("CONV_2D", {b.Input({1, 4, 5, 4}), filters, bias},
                   {{"stride_w", 1}, {"stride_h", 1}, {"padding", kValid}});
  v = b.Op("RESHAPE", {v, b.Ints({20, 3, 4})});
  b.Output(b.Op("ABS", {b.Op("TRANSPOSE", {v, b.Ints({0, 2, 1})})}));
  EXPECT_FALSE(Reordered(ExpectFusedEqualsUnfused(b.graph(), 1e-5f)));
}

// A pixel shuffle whose image the next layer reads, and a sum in planes behind that: the sum moves
// to where the layers' rows lie, and both read what is transposed once.
TEST(ShareTransposes, OfASkippedLayer) {
  GraphBuilder b;
  const ValueId planes = PixelShuffle(b, b.Conv(b.Input({1, 4, 5, 3}), 5 * 4, 1), 2);
  const ValueId layer = b.Conv(ToNhwc(b, planes), 5, 1);
  const ValueId sum = b.Op("ADD", {b.Op("TRANSPOSE", {layer, b.Ints({0, 3, 1, 2})}), planes});
  b.Output(b.Conv(ToNhwc(b, sum), 3, 1));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 1e-5f);
  EXPECT_THAT(outcome.ops(), ElementsAre("CONV_2D", "TRANSPOSE", "CONV_2D + add", "CONV_2D"));
}

TEST(ShareTransposes, NotOfOtherOrders) {
  GraphBuilder b;
  const ValueId v = b.Op("NEG", {b.Input({3, 4, 5})});
  b.Output(b.Op("ABS", {b.Op("TRANSPOSE", {v, b.Ints({2, 1, 0})})}));
  b.Output(b.Op("ABS", {b.Op("TRANSPOSE", {v, b.Ints({2, 0, 1})})}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              Contains(HasSubstr("TRANSPOSE")).Times(2));
}

TEST(ShareTransposes, ThroughReshapes) {
  GraphBuilder b;
  const ValueId v = b.Op("NEG", {b.Input({3, 4, 5})});
  b.Output(b.Op("ABS", {b.Op("TRANSPOSE", {v, b.Ints({1, 2, 0})})}));
  const ValueId flat = b.Op("RESHAPE", {v, b.Ints({3, 20})});
  b.Output(b.Op("EXP", {b.Op("TRANSPOSE", {flat, b.Ints({1, 0})})}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops(),
              Contains(HasSubstr("TRANSPOSE")).Times(1));
}

TEST(OrderFilters, ComputesTheSameForRandomOrders) {
  for (int seed = 1; seed <= 40; ++seed) {
    GraphBuilder b(seed);
    SCOPED_TRACE(b.random().Trace());
    ValueId v = b.Dense(b.Input({6, 3}), 24);
    v = b.Op("RESHAPE", {v, b.Ints({2, 3, 2, 3, 4})});
    std::vector<int32_t> permutation = {0, 1, 2, 3, 4};
    for (int i = 4; i > 0; --i) {
      std::swap(permutation[static_cast<size_t>(i)],
                permutation[static_cast<size_t>(b.random().Int(0, i))]);
    }
    v = b.Op("TRANSPOSE", {v, b.Ints(permutation)});
    b.Output(b.Op("ABS", {v}));
    ExpectFusedEqualsUnfused(b.graph(), 1e-5f);
  }
}

}  // namespace
}  // namespace fuselite::fusion::testing
