// What several threads compute in strips of rows.
#include "fusion/plan/strips.h"

#include <algorithm>

#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// However little there is to compute.
CompileOptions InStrips(int threads) {
  CompileOptions options = Fused();
  options.threads = threads;
  options.strips.least_of_strip = 1;
  return options;
}

// The steps that make strips, in order: how many each strip takes.
std::vector<size_t> StripsOf(const Outcome& outcome) {
  std::vector<size_t> steps;
  for (const StepReport& step : outcome.report.steps) {
    if (!step.steps.empty()) steps.push_back(step.steps.size());
  }
  return steps;
}

// Runs the graph in strips for several numbers of threads, which all give the bits of the unfused
// one. Returns the outcome for two threads.
Outcome ExpectSameInStrips(const Graph& graph) {
  const Outcome expected = RunGraph(graph, Unfused());
  for (const int threads : {5, 4, 3}) {
    ExpectClose(expected.outputs, RunGraph(graph, InStrips(threads)).outputs, 0);
  }
  Outcome outcome = RunGraph(graph, InStrips(2));
  ExpectClose(expected.outputs, outcome.outputs, 0);
  return outcome;
}

// Layer normalization as converters write it for bytes.
ValueId Normalized(Int8Builder& b, ValueId x) {
  const int32_t width = b.shape(x).dim(-1);
  const ValueId axis = b.Ints({-1});
  const ValueId mean = b.Int8Op("MEAN", {x, axis}, 0.02f, 4, {{"keep_dims", 1}});
  const ValueId squares = b.Int8Op("SQUARED_DIFFERENCE", {x, mean}, 0.05f, -128);
  const ValueId variance = b.Int8Op("MEAN", {squares, axis}, 0.04f, -128, {{"keep_dims", 1}});
  const ValueId deviation = b.Int8Op("RSQRT", {variance}, 0.05f, -128);
  const ValueId gamma = b.Int8Constant({width}, 0.02f);
  const ValueId scaled = b.Int8Op("MUL", {deviation, gamma}, 0.03f, 1);
  return b.Int8Op("ADD", {b.Int8Op("MUL", {x, scaled}, 0.05f, 2), b.Int8Constant({width}, 0.02f)},
                  0.06f, 3);
}

TEST(Strips, TakeALayerNormalizationOfBytes) {
  for (const Shape& shape : {Shape({1, 196, 24}), Shape({7, 9}), Shape({2, 3, 5, 16})}) {
    SCOPED_TRACE(shape);
    Int8Builder b;
    b.Out(Normalized(b, b.In(shape)));
    const Outcome outcome = ExpectSameInStrips(b.graph());
    // With QUANTIZE and DEQUANTIZE.
    EXPECT_THAT(StripsOf(outcome), ElementsAre(9));
    EXPECT_EQ(outcome.report.steps.size(), 1u);
  }
}

TEST(Strips, TakeProductsWithTheirResiduals) {
  Int8Builder b;
  const ValueId x = b.In({1, 37, 24});
  const ValueId wide = b.Dense8(Normalized(b, x), 40, 0.04f, -5);
  const ValueId act = b.Int8Op("LOGISTIC", {wide}, 1.0f / 256, -128);
  const ValueId sum = b.Int8Op("ADD", {b.Dense8(act, 24, 0.02f, 6), x}, 0.05f, 0);
  b.Out(b.Dense8(sum, 10, 0.07f, 1));
  b.Out(sum);
  const Outcome outcome = ExpectSameInStrips(b.graph());
  ASSERT_EQ(outcome.report.steps.size(), 1u);
  const StepReport& step = outcome.report.steps[0];
  EXPECT_EQ(step.kernel, "strips of 19 rows");
  EXPECT_THAT(step.ops, HasSubstr("FUSELITE_STRIPS of "));
  EXPECT_EQ(step.weight_bytes, 24 + 24 + 40 * 24 + 24 * 40 + 10 * 24 + 4 + 4 + 0u);
  double multiply_adds = 0;
  for (const StepReport& part : step.steps) multiply_adds += part.multiply_adds;
  EXPECT_EQ(step.multiply_adds, multiply_adds);
  EXPECT_GE(multiply_adds, 37 * (24 * 40 * 2 + 24 * 10));
}

TEST(Strips, TakePixelsOfConvolutionsOfOneTap) {
  Int8Builder b;
  const Attributes same = {{"padding", kSame}};
  ValueId x = b.Conv8(b.In({1, 9, 7, 8}), 16, 3, 0.04f, 2, same);
  x = b.Conv8(b.Conv8(x, 8, 1, 0.03f, -1), 24, 1, 0.05f, 4);
  x = b.Depthwise8(x, 3, 0.02f, 0, same);
  b.Out(b.Conv8(b.Conv8(x, 8, 1, 0.03f, -1, {{"stride_w", 2}, {"stride_h", 2}}), 8, 1, 0.04f, 1));
  const Outcome outcome = ExpectSameInStrips(b.graph());
  EXPECT_THAT(StripsOf(outcome), ElementsAre(2, 3)) << "DEQUANTIZE and what strides take apart";
}

TEST(Strips, ReachAcrossReshapes) {
  Int8Builder b;
  const ValueId x = b.In({4, 6, 16});
  const ValueId flat = b.Int8Op("RESHAPE", {x, b.Ints({24, 16})}, 0.03f, -3);
  const ValueId y = b.Dense8(flat, 12, 0.04f, -5);
  const ValueId heads = b.Int8Op("RESHAPE", {y, b.Ints({1, 24, 3, 4})}, 0.04f, -5);
  b.Out(b.Int8Op("MUL", {heads, heads}, 0.05f, 1));
  const Outcome outcome = ExpectSameInStrips(b.graph());
  EXPECT_EQ(outcome.report.steps.size(), 1u);
}

TEST(Strips, ReadWholeWhatIsTheSameForAllRows) {
  Int8Builder b;
  const ValueId x = b.In({1, 20, 16}), same = b.In({1, 1, 16}), mask = b.In({20, 1});
  const ValueId scaled = b.Int8Op("MUL", {x, same}, 0.05f, 1);
  b.Out(b.Int8Op("ADD", {b.Int8Op("MUL", {scaled, mask}, 0.04f, 2), same}, 0.05f, 3));
  ExpectSameInStrips(b.graph());
}

// Rows of concatenations and splits lie apart.
TEST(Strips, ReadAndWriteRowsInsideOfWiderOnes) {
  Int8Builder b;
  const ValueId x = b.In({24, 32});
  const std::vector<ValueId> parts =
      b.Op("SPLIT", {b.Ints(Shape(), {1}), x}, {{"num_splits", 2}}, 2,
           {.type = DataType::kInt8, .quantization = b.graph().value(x).info.quantization});
  const ValueId y = b.Dense8(b.Int8Op("MUL", {parts[0], parts[1]}, 0.04f, 2), 16, 0.03f, -3);
  const ValueId z = b.Int8Op("MUL", {y, y}, 0.03f, -3);
  b.Out(b.Int8Op("CONCATENATION", {z, y}, 0.03f, -3, {{"axis", 1}}));
  const Outcome outcome = ExpectSameInStrips(b.graph());
  EXPECT_FALSE(StripsOf(outcome).empty());
}

// The three products are one step, as none needs what stands between them.
TEST(Strips, TakeWhatReadsTheSameBehindOtherNodes) {
  Int8Builder b;
  const ValueId x = b.In({1, 18, 16});
  std::vector<ValueId> turned;
  for (int i = 0; i < 3; ++i) {
    const ValueId y = b.Dense8(x, 12, 0.04f, -5 + i);
    turned.push_back(b.Int8Op("TRANSPOSE", {y, b.Ints({1, 0})}, 0.04f, -5 + i));
  }
  for (ValueId v : turned) b.Out(v);
  const Outcome outcome = ExpectSameInStrips(b.graph());
  EXPECT_THAT(StripsOf(outcome), ElementsAre(4, 3)) << "QUANTIZE too; and the DEQUANTIZEs";
}

TEST(Strips, TakeRowsOfFloats) {
  GraphBuilder b;
  const ValueId x = b.Input({1, 26, 32});
  const ValueId hidden =
      b.Op("FULLY_CONNECTED", {x, b.Int8Constant({20, 32}, 0.02f)}, {{"keep_num_dims", 1}});
  b.Output(b.Softmax(b.Op("TANH", {b.Op("MUL", {hidden, b.Input({1, 26, 1})})})));
  const CompileOptions options = Fused();
  const Outcome whole = RunGraph(b.graph(), options), strips = RunGraph(b.graph(), InStrips(3));
  EXPECT_FALSE(StripsOf(strips).empty());
  ExpectClose(whole.outputs, strips.outputs, 0);
}

// Kernels compute an only row in another order (FUSELITE_LAYER_NORM).
TEST(Strips, HaveTwoRowsAtLeast) {
  const auto strips_of = [](int32_t rows) {
    Int8Builder b;
    b.Out(Normalized(b, b.In({rows, 8})));
    const Outcome outcome = RunGraph(b.graph(), InStrips(3));
    const StepReport& step = outcome.report.steps[0];
    return step.steps.empty() ? std::string("none") : step.kernel;
  };
  EXPECT_EQ(strips_of(3), "none");
  EXPECT_EQ(strips_of(4), "strips of 2 rows");
  EXPECT_EQ(strips_of(5), "strips of 2 rows");
  EXPECT_EQ(strips_of(7), "strips of 3 rows");
}

// Each of these graphs stays as it is.
void ExpectNoStrips(const Graph& graph, const CompileOptions& options = InStrips(2)) {
  EXPECT_THAT(StripsOf(RunGraph(graph, options)), ElementsAre());
}

TEST(Strips, LeaveWhatMixesRows) {
  GraphBuilder floats;  // each product is of floats
  floats.Output(floats.Dense(floats.Dense(floats.Input({40, 16}), 16), 16));
  ExpectNoStrips(floats.graph());

  GraphBuilder sums;  // of floats, too
  const ValueId mean =
      sums.Op("MEAN", {sums.Input({40, 5, 3}), sums.Ints({1})}, {{"keep_dims", 1}});
  sums.Output(sums.Op("SUM", {mean, sums.Ints({1})}, {{"keep_dims", 1}}));
  ExpectNoStrips(sums.graph());

  GraphBuilder images;  // the range of an image, not of a row
  const auto conv = [&](ValueId x) {
    return images.ConvBy(x, images.Int8Constant({8, 1, 1, 8}, 0.02f));
  };
  images.Output(conv(conv(images.Input({1, 6, 6, 8}))));
  ExpectNoStrips(images.graph());

  Int8Builder across;  // a mean of all rows
  const ValueId x = across.In({1, 20, 8});
  const ValueId all = across.Int8Op("MEAN", {x, across.Ints({1})}, 0.02f, 0, {{"keep_dims", 1}});
  across.Out(across.Int8Op(
      "MUL", {all, across.Int8Op("MEAN", {x, across.Ints({1})}, 0.03f, 1, {{"keep_dims", 1}})},
      0.04f, 1));
  ExpectNoStrips(across.graph());
}

TEST(Strips, AreForThreadsAndForWhatTakesTime) {
  Int8Builder b;
  b.Out(Normalized(b, b.In({1, 64, 48})));
  ExpectNoStrips(b.graph(), InStrips(1));
  CompileOptions options = InStrips(2);
  options.strips = StripLimits();
  ExpectNoStrips(b.graph(), options);  // 3 KB a step are one thread's
  options.strips.least_of_strip = 1;
  options.strips.most_of_step = 1 << 10;
  ExpectNoStrips(b.graph(), options);
  options.fusion = false;
  ExpectNoStrips(b.graph(), options);
}

TEST(Strips, ReadAsManyWeightsAsStayInTheCache) {
  Int8Builder b;
  b.Out(b.Dense8(b.Dense8(b.In({1, 32, 64}), 64, 0.04f, 1), 64, 0.05f, 2));
  CompileOptions options = InStrips(2);
  options.strips.most_weights = 2 * 64 * 64 - 1;
  EXPECT_THAT(StripsOf(RunGraph(b.graph(), options)), ElementsAre(2, 2));
  options.strips.most_weights = 2 * 64 * 64;
  EXPECT_THAT(StripsOf(RunGraph(b.graph(), options)), ElementsAre(4));
}

}  // namespace
}  // namespace fuselite::fusion::testing
