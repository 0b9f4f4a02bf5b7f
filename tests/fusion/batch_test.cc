// Which graphs compute each sample of a batch on its own, and what they compute in parts.
#include "fusion/batch.h"

#include "fusion/graph/cost.h"
#include "fusion/rewrites/replace.h"
#include "kernels/reshape/reshape.h"
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

constexpr BatchLimits kOneByOne{.most_bytes = 1, .least_work = 0};

// 1: it is computed whole.
int PartsOf(const Graph& graph, const BatchLimits& limits = kOneByOne) {
  const auto part = PartOfBatch(graph, limits);
  EXPECT_TRUE(!part || part->count > 1);
  return part ? part->count : 1;
}

// Layers of an image network on `samples` images of 8 x 8 x 4.
GraphBuilder ImageNetwork(int32_t samples) {
  GraphBuilder b;
  const ValueId x = b.Conv(b.Input({samples, 8, 8, 4}), 8, 3, {{"padding", kSame}});
  const ValueId sum = b.Op("ADD", {b.Depthwise(x, 3, {{"padding", kSame}}), x});
  const ValueId joined = b.Op("CONCATENATION", {sum, x}, {{"axis", 3}});
  const ValueId mean = b.Op("MEAN", {joined, b.Ints({1, 2})}, {{"keep_dims", 0}});
  const ValueId scale = b.Op("LOGISTIC", {b.Op("RESHAPE", {mean, b.Ints({samples, 1, 1, 16})})});
  const ValueId scaled = b.Op("MUL", {joined, scale});
  const ValueId pooled = b.Op("MAX_POOL_2D", {scaled},
                              {{"filter_width", 8},
                               {"filter_height", 8},
                               {"stride_w", 1},
                               {"stride_h", 1},
                               {"padding", kValid}});
  b.Output(
      b.Op("SOFTMAX", {b.Dense(b.Op("RESHAPE", {pooled, b.Ints({-1, 16})}), 10)}, {{"beta", 1}}));
  return b;
}

TEST(Batch, OfImagesIsComputedInParts) {
  const GraphBuilder b = ImageNetwork(6);
  const auto part = PartOfBatch(b.graph(), kOneByOne);
  ASSERT_TRUE(part.has_value());
  EXPECT_EQ(part->count, 6);
  EXPECT_TRUE(Validate(part->graph).ok());
  EXPECT_EQ(part->graph.value(part->graph.inputs[0]).info.shape, Shape({1, 8, 8, 4}));
  EXPECT_EQ(part->graph.value(part->graph.outputs[0]).info.shape, Shape({1, 10}));
}

TEST(Batch, InPartsGivesWhatTheWholeGives) {
  const GraphBuilder b = ImageNetwork(6);
  const Outcome expected = RunGraph(b.graph(), Unfused());
  // MUL reads and writes two values of 8 x 8 x 16 floats, 4 KiB each, and 16 scales of each sample.
  constexpr int64_t kOfSample = 2 * 4096 + 64;
  for (const auto& [samples, parts] : {std::pair(1, 6), {2, 3}, {3, 2}, {5, 2}}) {
    for (const int threads : {1, 2, 4}) {
      CompileOptions options = Fused();
      options.threads = threads;
      options.batch = {.most_bytes = samples * kOfSample, .least_work = 0};
      const Outcome actual = RunGraph(b.graph(), options);
      ASSERT_TRUE(actual.status.ok()) << actual.status.ToString();
      EXPECT_EQ(actual.report.batch_parts, parts);
      ExpectClose(expected.outputs, actual.outputs, 1e-5f);
    }
  }
}

TEST(Batch, IsWholeWhereItFitsOrHasLittleToCompute) {
  const GraphBuilder b = ImageNetwork(4);
  EXPECT_EQ(PartsOf(b.graph(), {.most_bytes = 1 << 20, .least_work = 0}), 1);
  EXPECT_EQ(PartsOf(b.graph(), {.most_bytes = 0, .least_work = 0}), 1);
  EXPECT_EQ(PartsOf(b.graph(), {.most_bytes = 1, .least_work = 1e6}), 1);
  EXPECT_EQ(PartsOf(ImageNetwork(1).graph()), 1);
}

TEST(Batch, IsWholeWithoutFusion) {
  CompileOptions options = Unfused();
  options.batch = kOneByOne;
  EXPECT_EQ(RunGraph(ImageNetwork(3).graph(), options).report.batch_parts, 1);
}

// Each of them gives another result where samples are computed on their own.
TEST(Batch, IsWholeWhereANodeLooksBeyondItsSample) {
  const auto parts = [](auto add) {
    GraphBuilder b;
    b.Output(add(b, b.Op("RELU", {b.Input({4, 4, 4, 4})})));
    return PartsOf(b.graph());
  };
  using B = GraphBuilder;
  EXPECT_EQ(parts([](B& b, ValueId x) { return b.Op("CONCATENATION", {x, x}, {{"axis", 0}}); }), 1);
  EXPECT_EQ(parts([](B& b, ValueId x) {
              return b.Op("CONCATENATION", {x, x}, {{"axis", -4}});
            }),
            1);
  EXPECT_EQ(parts([](B& b, ValueId x) {
              return b.Op("MEAN", {x, b.Ints({0})}, {{"keep_dims", 1}});
            }),
            1);
  EXPECT_EQ(parts([](B& b, ValueId x) {
              return b.Op("MEAN", {x, b.Ints({0})}, {{"keep_dims", 0}});
            }),
            1);
  EXPECT_EQ(parts([](B& b, ValueId x) { return b.Op("REVERSE_V2", {x, b.Ints({0})}); }), 1);
  EXPECT_EQ(parts([](B& b, ValueId x) { return b.Op("CUMSUM", {x, b.Ints(Shape(), {0})}); }), 1);
  EXPECT_EQ(parts([](B& b, ValueId x) { return b.Op("TRANSPOSE", {x, b.Ints({1, 0, 2, 3})}); }), 1);
  EXPECT_EQ(parts([](B& b, ValueId x) { return b.Op("RESHAPE", {x, b.Ints({1, 256})}); }), 1);
  EXPECT_EQ(parts([](B& b, ValueId x) {
              return b.Op("PAD", {x, b.Ints({4, 2}, {4, 4, 0, 0, 0, 0, 0, 0})});
            }),
            1);
  EXPECT_EQ(parts([](B& b, ValueId x) { return b.Op("ADD", {x, b.Constant({4, 4, 4, 4})}); }), 1);
  EXPECT_EQ(parts([](B& b, ValueId x) {
              return b.Op("EXPAND_DIMS", {x, b.Ints(Shape(), {0})});
            }),
            1);
  EXPECT_EQ(parts([](B& b, ValueId x) {
              return b.Op("SPACE_TO_BATCH_ND", {x, b.Ints({2, 2}), b.Ints({2, 2}, {0, 0, 0, 0})});
            }),
            1);
  EXPECT_EQ(parts([](B& b, ValueId x) {
              return b.Op("SPLIT", {b.Ints(Shape(), {0}), x}, {{"num_splits", 2}}, 2)[0];
            }),
            1);
  EXPECT_EQ(parts([](B& b, ValueId x) {
              return b.Op("SLICE", {x, b.Ints({2, 0, 0, 0}), b.Ints({2, 4, 4, 4})});
            }),
            1);
  EXPECT_EQ(parts([](B& b, ValueId x) {
              return b.Op("STRIDED_SLICE",
                          {x, b.Ints({3, 0, 0, 0}), b.Ints({-5, 4, 4, 4}), b.Ints({-1, 1, 1, 1})});
            }),
            1);
  EXPECT_EQ(parts([](B& b, ValueId x) {
              return b.Op("GATHER", {x, b.Ints({3, 2, 1, 0})}, {{"axis", 0}});
            }),
            1);
  // Beside these the same operators on other dimensions.
  EXPECT_EQ(parts([](B& b, ValueId x) { return b.Op("CONCATENATION", {x, x}, {{"axis", 1}}); }), 4);
  EXPECT_EQ(parts([](B& b, ValueId x) {
              return b.Op("MEAN", {x, b.Ints({1})}, {{"keep_dims", 0}});
            }),
            4);
  EXPECT_EQ(parts([](B& b, ValueId x) { return b.Op("TRANSPOSE", {x, b.Ints({0, 2, 1, 3})}); }), 4);
  EXPECT_EQ(parts([](B& b, ValueId x) { return b.Op("RESHAPE", {x, b.Ints({16, 16})}); }), 4);
  EXPECT_EQ(parts([](B& b, ValueId x) { return b.Op("ADD", {x, b.Constant({4, 4, 4})}); }), 4);
  EXPECT_EQ(parts([](B& b, ValueId x) {
              return b.Op("SPLIT", {b.Ints(Shape(), {1}), x}, {{"num_splits", 2}}, 2)[0];
            }),
            4);
  EXPECT_EQ(parts([](B& b, ValueId x) {
              return b.Op("SLICE", {x, b.Ints({0, 1, 0, 0}), b.Ints({4, 2, 4, 4})});
            }),
            4);
  EXPECT_EQ(parts([](B& b, ValueId x) {
              return b.Op("STRIDED_SLICE",
                          {x, b.Ints({0, 3, 0, 0}), b.Ints({4, -5, 4, 4}), b.Ints({1, -1, 1, 1})});
            }),
            4);
  EXPECT_EQ(parts([](B& b, ValueId x) {
              return b.Op("GATHER", {x, b.Ints({3, 2, 1, 0})}, {{"axis", 1}});
            }),
            4);
}

// Two rows of each sample: what is cut between them, or across samples, is cut elsewhere in a part,
// of the same shape.
TEST(Batch, IsWholeWhereRowsOfSamplesAreChosen) {
  const auto parts = [](auto add) {
    GraphBuilder b;
    const ValueId x = b.Op("RELU", {b.Input({4, 6})});
    b.Output(add(b, b.Op("RESHAPE", {x, b.Ints({8, 3})})));
    return PartsOf(b.graph());
  };
  using B = GraphBuilder;
  const auto slice = [](B& b, ValueId x, int32_t begin, int32_t size) {
    return b.Op("SLICE", {x, b.Ints({begin, 0}), b.Ints({size, 3})});
  };
  EXPECT_EQ(parts([&](B& b, ValueId x) { return slice(b, x, 0, 4); }), 1);
  EXPECT_EQ(parts([&](B& b, ValueId x) { return slice(b, x, 1, 4); }), 1);
  EXPECT_EQ(parts([&](B& b, ValueId x) { return slice(b, x, 0, 8); }), 4);
  EXPECT_EQ(parts([&](B& b, ValueId x) { return slice(b, x, 0, -1); }), 4);
  const auto strided = [](B& b, ValueId x, int32_t begin, int32_t end, int32_t stride) {
    return b.Op("STRIDED_SLICE", {x, b.Ints({begin, 0}), b.Ints({end, 3}), b.Ints({stride, 1})});
  };
  EXPECT_EQ(parts([&](B& b, ValueId x) { return strided(b, x, 1, 5, 1); }), 1);
  EXPECT_EQ(parts([&](B& b, ValueId x) { return strided(b, x, 1, 8, 2); }), 1);
  EXPECT_EQ(parts([&](B& b, ValueId x) { return strided(b, x, 0, 9, 1); }), 4);
  EXPECT_EQ(parts([](B& b, ValueId x) {
              return b.Op("SPLIT", {b.Ints(Shape(), {0}), x}, {{"num_splits", 2}}, 2)[0];
            }),
            1);
}

TEST(Batch, SlicedByNoEntriesIsWhole) {
  GraphBuilder b;
  const ValueId none = b.Ints(Shape({0}), {});
  b.Output(b.Op("STRIDED_SLICE", {b.Input({4, 3}), none, none, none}));
  EXPECT_EQ(PartsOf(b.graph()), 1);
}

TEST(Batch, OfChosenSamplesIsWhole) {
  GraphBuilder b;
  const ValueId x = b.Input({4});
  b.Output(b.Op("GATHER", {x, b.Input({4}, DataType::kInt32)}));
  EXPECT_EQ(PartsOf(b.graph()), 1);
}

// What is the same in all parts has no samples, whatever its shape.
TEST(Batch, IsWholeWhereConstantsHaveItsDimension) {
  const auto parts = [](auto add) {
    GraphBuilder b;
    const ValueId x = b.Input({4, 3});
    b.Output(b.Op("NEG", {x}));
    b.Output(add(b));
    return PartsOf(b.graph());
  };
  EXPECT_EQ(parts([](GraphBuilder& b) { return b.Constant({4, 3}); }), 1);
  EXPECT_EQ(parts([](GraphBuilder& b) {
              return b.Op("SLICE", {b.Constant({4, 3}), b.Ints({0, 0}), b.Ints({4, 3})});
            }),
            1);
}

// Each sample has its part of each input.
TEST(Batch, IsWholeWhereAnInputHasNoPartForEachSample) {
  for (const Shape& shape : {Shape(), Shape({3}), Shape({6, 3}), Shape({1, 3})}) {
    GraphBuilder b;
    b.Output(b.Op("NEG", {b.Input({4, 3})}));
    b.Output(b.Op("NEG", {b.Input(shape)}));
    EXPECT_EQ(PartsOf(b.graph()), 1) << shape.ToString();
  }
  GraphBuilder b;
  b.Output(b.Op("NEG", {b.Input({4, 3})}));
  b.Output(b.Op("NEG", {b.Input({8})}));
  EXPECT_EQ(PartsOf(b.graph()), 4);
}

TEST(Batch, OfNoSamplesIsWhole) {
  GraphBuilder none;
  none.Output(none.Constant({4, 3}));
  EXPECT_EQ(PartsOf(none.graph()), 1);
  for (const Shape& shape : {Shape(), Shape({0, 3})}) {
    GraphBuilder b;
    b.Output(b.Op("NEG", {b.Input(shape)}));
    EXPECT_EQ(PartsOf(b.graph()), 1) << shape.ToString();
  }
}

// Integers are a shape only where an operator takes them for one.
TEST(Batch, LeavesOtherIntegersAsTheyAre) {
  GraphBuilder b;
  b.Output(b.Op("ADD", {b.Ints({5, 6, 7}), b.Input({4, 3}, DataType::kInt32)}));
  const auto part = PartOfBatch(b.graph(), kOneByOne);
  ASSERT_TRUE(part.has_value());
  EXPECT_EQ(part->graph.node(0).inputs, b.graph().node(0).inputs);
}

TEST(Batch, OfTransposedConvolutionsIsComputedInParts) {
  GraphBuilder b;
  b.Output(b.Op("TRANSPOSE_CONV",
                {b.Ints({4, 6, 6, 2}), b.Constant({2, 2, 2, 3}), b.Input({4, 3, 3, 3})},
                {{"stride_w", 2}, {"stride_h", 2}, {"padding", kValid}}));
  EXPECT_EQ(PartsOf(b.graph()), 4);
}

// The shape is one of the node's parameters, in old files: it is that of the whole.
TEST(Batch, WithoutTheOperandOfAShapeIsWhole) {
  for (const int operands : {1, 2}) {
    GraphBuilder b;
    const ValueId x = b.Input({4, 6});
    Node node = MakeNode("RESHAPE", {x, kNone});
    node.inputs.resize(static_cast<size_t>(operands));
    node.params.as<kernels::ReshapeParams>().new_shape = {.values = {4, 6}, .count = 2};
    Value reshaped;
    reshaped.info = b.graph().value(x).info;
    node.outputs = {b.graph().AddValue(std::move(reshaped))};
    b.graph().AddNode(node);
    b.Output(node.outputs[0]);
    EXPECT_EQ(PartsOf(b.graph()), 1);
  }
}

// Values count, weights do not; work counts for each byte of weights that something reads.
TEST(Batch, HasPartsOfWhatItsLayersReadAndWrite) {
  GraphBuilder b;
  b.Constant({100, 100});  // which nobody reads
  b.Output(b.Op("FULLY_CONNECTED", {b.Input({6, 16}), b.Constant({8, 16}), kNone}));
  constexpr int64_t kOfSample = (16 + 8) * 4, kWeights = 8 * 16 * 4;
  EXPECT_EQ(PartsOf(b.graph(), {.most_bytes = 2 * kOfSample, .least_work = 0}), 3);
  EXPECT_EQ(PartsOf(b.graph(), {.most_bytes = 2 * kOfSample - 1, .least_work = 0}), 6);
  const double work = GraphCost(b.graph()) / 6 / kWeights;
  EXPECT_EQ(PartsOf(b.graph(), {.most_bytes = 1, .least_work = 0.99 * work}), 6);
  EXPECT_EQ(PartsOf(b.graph(), {.most_bytes = 1, .least_work = 1.01 * work}), 1);
}

// A prime number of samples has no parts but single ones and the whole.
TEST(Batch, OfFewDivisorsIsNotComputedInTinyParts) {
  constexpr int64_t kOfSample = 2 * 4096 + 64;  // as above
  const GraphBuilder b = ImageNetwork(31);
  const auto parts = [&](int64_t most_bytes) {
    return PartsOf(b.graph(), {.most_bytes = most_bytes, .least_work = 0});
  };
  EXPECT_EQ(parts(31 * kOfSample), 1);
  EXPECT_EQ(parts(30 * kOfSample), 1);
  EXPECT_EQ(parts(9 * kOfSample), 1);   // the whole is less than four times as much
  EXPECT_EQ(parts(7 * kOfSample), 31);  // more
  EXPECT_EQ(parts(kOfSample), 31);
}

// Rows along which an operator looks are the samples themselves where there is one dimension alone.
TEST(Batch, OfNumbersIsWholeWhereRowsAreSamples) {
  GraphBuilder b;
  b.Output(b.Op("SOFTMAX", {b.Op("RELU", {b.Input({8})})}, {{"beta", 1}}));
  EXPECT_EQ(PartsOf(b.graph()), 1);
  GraphBuilder rows;
  rows.Output(rows.Op("SOFTMAX", {rows.Op("RELU", {rows.Input({8, 3})})}, {{"beta", 1}}));
  EXPECT_EQ(PartsOf(rows.graph()), 8);
}

// Broadcast from the right, samples of fewer dimensions would meet another dimension.
TEST(Batch, OfSeveralInputsHasOneDimensionOfSamples) {
  const auto parts = [](Shape x, Shape y) {
    GraphBuilder b;
    const ValueId a = b.Input(x);
    b.Output(b.Op("ADD", {a, b.Input(y)}));
    return PartsOf(b.graph());
  };
  EXPECT_EQ(parts({4, 3}, {4, 1}), 4);
  EXPECT_EQ(parts({4, 4}, {4}), 1);
  EXPECT_EQ(parts({4, 3}, {1, 3}), 1);
}

TEST(Batch, WithStateIsWhole) {
  GraphBuilder b;
  const ValueId x = b.Input({2, 4});
  b.Output(b.Rnn(x, b.Variable({2, 3})));
  EXPECT_EQ(PartsOf(b.graph()), 1);
  GraphBuilder read;
  read.Output(read.Op("ADD", {read.Input({2, 4}), read.Variable({2, 4})}));
  EXPECT_EQ(PartsOf(read.graph()), 1);
}

TEST(Batch, SharesOfTheReportAreTheBatchs) {
  CompileOptions whole = Fused(), parts = Fused();
  whole.batch.most_bytes = 0;
  parts.batch = kOneByOne;
  const Graph graph = ImageNetwork(6).graph();
  const CompileReport of_whole = RunGraph(graph, whole).report;
  const CompileReport of_parts = RunGraph(graph, parts).report;
  ASSERT_EQ(of_parts.steps.size(), of_whole.steps.size());
  for (size_t i = 0; i < of_parts.steps.size(); ++i) {
    EXPECT_EQ(of_parts.steps[i].multiply_adds, of_whole.steps[i].multiply_adds);
    EXPECT_EQ(of_parts.steps[i].output_bytes, of_whole.steps[i].output_bytes);
  }
  EXPECT_LT(of_parts.arena_bytes, of_whole.arena_bytes);
}

TEST(Batch, BeyondTheBudgetIsRefusedInParts) {
  CompileOptions options = Fused();
  options.batch = kOneByOne;
  CompileReport report;
  ASSERT_TRUE(Compile(ImageNetwork(6).graph(), options, &report).ok());
  options.threads = 4;  // each with an arena
  options.budget.max_memory = 3.0 * static_cast<double>(report.arena_bytes);
  EXPECT_EQ(Compile(ImageNetwork(6).graph(), options, nullptr).status().code(),
            StatusCode::kOverBudget);
  options.budget.max_memory *= 3;
  EXPECT_TRUE(Compile(ImageNetwork(6).graph(), options, nullptr).ok());
}

}  // namespace
}  // namespace fuselite::fusion::testing
