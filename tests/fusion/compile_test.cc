#include "fusion/compile.h"

#include <cstring>
#include <filesystem>
#include <functional>
#include <string_view>

#include "fusion/graph/cost.h"
#include "fusion/graph/evaluate.h"
#include "tests/fusion/graph_builder.h"
#include "tests/runtime/counting_store.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Compile, RunsAChainInOrder) {
  GraphBuilder b;
  const ValueId x = b.Input({1, 9, 7, 3});
  const ValueId c = b.Conv(x, 8, 3, {{"fused_activation_function", kRelu6}});
  b.Output(b.Op("SOFTMAX", {b.Depthwise(c, 3)}, {{"beta", 1}}));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 1e-5f);
  EXPECT_THAT(outcome.ops(), ElementsAre("CONV_2D + relu6", "DEPTHWISE_CONV_2D", "SOFTMAX"));
  EXPECT_THAT(outcome.report.steps[0].host_nodes, ElementsAre(0));
  EXPECT_EQ(outcome.report.steps[0].output_shape, "[1,9,7,8]");
  EXPECT_EQ(outcome.report.steps[0].multiply_adds, 9 * 7 * 8 * 27);
  EXPECT_EQ(outcome.report.steps[2].placement, "output 0");
  EXPECT_GT(outcome.report.arena_bytes, 0u);
}

// What a report says of a step is of its own operands: of those that vary, and of weights.
TEST(Compile, ReportsWhatEachStepReadsAndWrites) {
  Int8Builder b;
  const ValueId x = b.In({2, 16});
  b.Out(b.Dense8(x, 8, 0.5f, 3));
  b.Output(b.Op("SOFTMAX", {b.Input({3, 5})}, {{"beta", 1}}));
  const CompileReport report = RunGraph(b.graph(), Fused()).report;
  ASSERT_EQ(report.steps.size(), 4u);
  const StepReport &quantize = report.steps[0], &dense = report.steps[1],
                   &dequantize = report.steps[2], &softmax = report.steps[3];
  EXPECT_EQ(quantize.input_bytes, 2 * 16 * 4);
  EXPECT_EQ(quantize.output_bytes, 2 * 16);
  EXPECT_EQ(quantize.weight_bytes, 0);
  EXPECT_EQ(quantize.placement, "arena");
  EXPECT_EQ(dense.input_bytes, 2 * 16);
  EXPECT_EQ(dense.output_bytes, 2 * 8);
  EXPECT_EQ(dense.weight_bytes, 8 * 16);
  EXPECT_THAT(dense.input_types, ElementsAre(DataType::kInt8, DataType::kInt8));
  EXPECT_NE(dense.arena_offset, quantize.arena_offset);
  EXPECT_EQ(dequantize.placement, "output 0");
  EXPECT_EQ(softmax.placement, "output 1");
  EXPECT_EQ(softmax.arena_offset, StepReport().arena_offset) << "it is in no arena";
  EXPECT_EQ(dense.multiply_adds, 2 * 8 * 16);
}

TEST(Compile, RunsOnTheReferenceAtTheScalarLevel) {
  GraphBuilder b;
  b.Output(b.Conv(b.Input({2, 5, 5, 4}), 6, 3));
  CompileOptions options = Fused();
  options.isa = Isa::kScalar;
  const Outcome outcome = RunGraph(b.graph(), options);
  EXPECT_EQ(outcome.report.steps[0].candidate, "reference");
}

TEST(Compile, WhatHasNoElementsIsTheReferences) {
  GraphBuilder b;
  const ValueId x = b.Input({0, 9, 7, 8});
  const ValueId filters = b.Int8Constant({1, 2, 2, 8}, 0.5f);
  Quantization& scales = b.graph().value(filters).info.quantization;
  scales = {
      .scales = std::vector<float>(8, 0.5f), .zero_points = std::vector<int32_t>(8), .axis = 3};
  b.Output(b.Op("DEPTHWISE_CONV_2D", {x, filters},
                {{"stride_w", 1}, {"stride_h", 1}, {"depth_multiplier", 1}}));
  b.Output(b.Conv(b.Input({1, 2, 5, 8}), 4, 3, {{"padding", kValid}}));
  b.Output(b.Dense(b.Input({0, 16}), 8));
  b.Output(b.Op("EXP", {b.Input({3, 0})}));
  CompileReport report;
  ASSERT_TRUE(Compile(b.graph(), Fused(), &report).ok());
  for (const StepReport& step : report.steps) {
    EXPECT_EQ(step.candidate, "reference") << step.ops;
  }
}

TEST(Compile, RefusesAGraphThatReadsWhatNobodyMakes) {
  GraphBuilder b;
  Value value;
  value.info = {.type = DataType::kFloat32, .shape = {1, 4}};
  const ValueId nobody = b.graph().AddValue(value);
  b.Output(b.Dense(nobody, 3));
  const auto executable = Compile(b.graph(), Fused(), nullptr);
  ASSERT_FALSE(executable.ok());
  EXPECT_THAT(executable.status().ToString(), HasSubstr("reads value 0 before it is made"));
}

TEST(Compile, RefusesOutputsThatTheGraphDoesNotHave) {
  for (const ValueId output : {-1, 1 << 28}) {
    GraphBuilder b;
    b.Output(b.Op("NEG", {b.Input({1, 4})}));
    b.graph().outputs.push_back(output);
    EXPECT_FALSE(Compile(b.graph(), Fused(), nullptr).ok()) << output;
  }
}

TEST(Compile, RefusesAGraphThatMakesAValueTwice) {
  GraphBuilder b;
  const ValueId x = b.Input({1, 4}), y = b.Op("NEG", {x});
  b.Op("ABS", {x});
  b.Output(y);
  Node again = b.graph().node(b.graph().order().back());
  again.outputs = {y};
  b.graph().Replace(b.graph().order().back(), std::move(again));
  const auto executable = Compile(b.graph(), Fused(), nullptr);
  ASSERT_FALSE(executable.ok());
  EXPECT_THAT(executable.status().ToString(), HasSubstr("a second time"));
}

// Each makes an invalid graph of a valid one, and what is said of it.
TEST(Compile, RefusesInvalidGraphs) {
  struct Case {
    std::function<void(Graph&)> change;
    std::string_view message;
  };
  const auto node = [](auto change) {
    return [change](Graph& graph) {
      Node changed = graph.node(0);
      change(graph, changed);
      graph.Replace(0, std::move(changed));
    };
  };
  const Case cases[] = {
      {[](Graph& g) { g.inputs[0] = -1; }, "input -1 is not a value"},
      {[](Graph& g) { g.inputs[0] = 99; }, "input 99 is not a value"},
      {[](Graph& g) { g.value(g.inputs[0]).input = false; }, "is not marked as one"},
      {node([](Graph&, Node& n) { n.outputs[0] = -1; }), "output -1 is not a value"},
      {node([](Graph& g, Node& n) { n.outputs[0] = g.inputs[0]; }), "which is given"},
      {node([](Graph&, Node& n) { n.outputs[0] = n.inputs[1]; }), "which is given"},
      {[](Graph& g) { g.outputs[0] = 99; }, "output 99 is not a value"},
      {[](Graph& g) { g.Remove(0); }, "nobody makes output"},
      {[](Graph& g) { g.value(g.outputs[0]).observed = false; }, "is not marked as observed"},
      {[](Graph& g) { g.outputs.push_back(g.outputs[0]); }, "is an output twice"},
      {node([](Graph&, Node& n) {
         n.op = kernels::FindOperator("PAD");
         n.tail.stages.emplace_back();
       }),
       "has a tail, which its operator does not take"},
  };
  for (const auto& [change, message] : cases) {
    GraphBuilder b;
    b.Output(b.Op("ADD", {b.Input({1, 4}), b.Constant({4})}));
    ASSERT_TRUE(Validate(b.graph()).ok());
    change(b.graph());
    EXPECT_THAT(Validate(b.graph()).ToString(), HasSubstr(std::string(message)));
  }
}

// Nobody marks the same value as an input of the graph and of the host's state.
TEST(Compile, TakesStateAsAnInput) {
  GraphBuilder b;
  b.Output(b.Rnn(b.Input({1, 4}), b.Variable({1, 3})));
  EXPECT_TRUE(Validate(b.graph()).ok());
}

TEST(Compile, HoldsTheGraphToItsBudgetOfWork) {
  GraphBuilder b;
  b.Output(b.Dense(b.Input({2, 16}), 8));
  CompileOptions options = Fused();
  options.budget.max_multiply_adds = 2 * 16 * 8;
  EXPECT_TRUE(Compile(b.graph(), options, nullptr).ok());
  options.budget.max_multiply_adds -= 1;
  EXPECT_FALSE(Compile(b.graph(), options, nullptr).ok());
}

TEST(Compile, AsksThePlannerThatItIsGiven) {
  GraphBuilder b;
  b.Output(b.Dense(b.Input({2, 16}), 8));
  CompileOptions without = Fused();
  without.jit = false;
  Planner planner = PlannerFor(without);
  CompileReport report;
  ASSERT_TRUE(Compile(b.graph(), Fused(), &report, &planner).ok());
  EXPECT_EQ(report.steps[0].candidate, RunGraph(b.graph(), without).report.steps[0].candidate);
}

// Emitted kernels come first, where there are any for the instruction set.
TEST(Compile, TakesEmittedKernelsFirst) {
  GraphBuilder b;
  b.Output(b.Op("TANH", {b.Dense(b.Input({2, 16}), 8)}));
  b.Output(b.Op("SOFTMAX", {b.Input({0, 16})}, {{"beta", 1}}));
  for (const bool jit : {false, true}) {
    CompileOptions options = Fused();
    options.jit = jit;
    const CompileReport report = RunGraph(b.graph(), options).report;
    ASSERT_EQ(report.steps.size(), 2u);
    const StepReport &dense = report.steps[0], &empty = report.steps[1];
    const bool emits = jit && FUSELITE_JIT != 0 && options.isa.has(Feature::kAvx2);
    EXPECT_EQ(dense.candidate.starts_with("jit"), emits) << dense.candidate;
    EXPECT_TRUE(!emits || dense.refusals.empty());
    EXPECT_EQ(empty.candidate, "reference");
    EXPECT_THAT(empty.refusals, ::testing::IsEmpty());
  }
}

// Whoever asks for bfloat16 is told where floats stay what they are.
TEST(Compile, TellsWhyFloatsAreNotRounded) {
  GraphBuilder b;
  b.Output(b.Dense(b.Input({2, 16}), 8));
  for (const Isa isa : RunnableIsas()) {
    for (const bool fast : {false, true}) {
      CompileOptions options = Fused();
      options.isa = isa;
      options.precision = fast ? kernels::Precision::kFast : kernels::Precision::kDefault;
      const CompileReport report = RunGraph(b.graph(), options).report;
      ASSERT_EQ(report.steps.size(), 1u);
      const StepReport& dense = report.steps[0];
      if (dense.candidate != "jit") continue;  // rounded, or without any emitter
      std::vector<std::string> refused;
      for (const Refusal& refusal : dense.refusals) refused.push_back(refusal.candidate);
      EXPECT_EQ(refused, std::vector<std::string>(fast ? 1 : 0, "jit bf16")) << IsaName(isa);
    }
  }
}

// A step's cost is its own and its tail's; a reshape costs nothing, whatever it moves.
TEST(Compile, CountsTheWorkOfTails) {
  GraphBuilder b;
  b.Output(b.Op("ABS", {b.Op("TANH", {b.Dense(b.Input({2, 16}), 8)})}));
  b.Output(b.Op("RESHAPE", {b.Input({2, 3}), b.Ints({6})}));
  const CompileReport report = RunGraph(b.graph(), Fused()).report;
  ASSERT_EQ(report.steps.size(), 2u);
  EXPECT_EQ(report.steps[0].multiply_adds, 2 * 16 * 8 + 2 * (2 * 8));
  EXPECT_EQ(report.steps[1].multiply_adds, 0);
}

// Whoever adds a stage adds its operand to the node's inputs.
TEST(Compile, RefusesATailThatNamesNoInput) {
  for (const int input : {-1, 2, 3}) {
    GraphBuilder b;
    b.Output(b.Op("FULLY_CONNECTED", {b.Input({3, 4}), b.Constant({5, 4}), kNone}));
    Node node = b.graph().node(0);
    kernels::TailStage stage;
    stage.kind = kernels::TailStage::Kind::kBinary;
    stage.operand.input = input;
    node.tail.stages.push_back(stage);
    b.graph().Replace(0, std::move(node));
    EXPECT_THAT(Validate(b.graph()).ToString(), HasSubstr("names no input of the node")) << input;
  }
}

// Three floats `shift` bytes behind an aligned address.
struct ShiftedConstant {
  explicit ShiftedConstant(size_t by) : shift(by), bytes(sizeof kValues + shift) {
    std::memcpy(bytes.data() + shift, kValues, sizeof kValues);
  }
  const std::byte* data() const { return bytes.data() + shift; }
  Value value() const {
    Value made;
    made.info = {.type = DataType::kFloat32, .shape = {3}, .data = data()};
    return made;
  }
  static constexpr float kValues[] = {1, -2, 3};
  size_t shift;
  std::vector<std::byte> bytes;
};

// Kernels read constants that lie well.
TEST(Evaluate, AlignsConstants) {
  for (const size_t shift : {0, 1, 4}) {
    const ShiftedConstant constant(shift);
    Graph graph;
    const ValueId v = graph.AddValue(constant.value());
    AlignConstants(graph);
    const auto* const data = static_cast<const float*>(graph.value(v).info.data);
    EXPECT_EQ(static_cast<const void*>(data) == constant.data(), shift != 1);
    EXPECT_THAT(std::vector<float>(data, data + 3), ElementsAre(1, -2, 3));
  }
}

// What a file has at any address is computed from a copy.
TEST(Evaluate, TakesConstantsAtAnyAddress) {
  for (const size_t shift : {0, 1, 2}) {
    const ShiftedConstant constant(shift);
    GraphBuilder b;
    b.Output(b.Op("NEG", {b.graph().AddValue(constant.value())}));
    const auto made = Evaluate(b.graph(), b.graph().order()[0]);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    const auto* negated = static_cast<const float*>(made->at(0).info.data);
    EXPECT_THAT(std::vector<float>(negated, negated + 3), ElementsAre(-1, 2, -3));
  }
}

// Faster kernels fold what they give the reference's bits for.
TEST(Evaluate, GivesTheBitsOfTheReference) {
  GraphBuilder b;
  const ValueId floats = b.Constant({37, 53});
  const ValueId bytes = b.Int8Constant({37, 53}, 0.03f);
  for (const ValueId v : {b.Transpose(floats, {1, 0}), b.Op("DEQUANTIZE", {bytes}),
                          b.Op("EXP", {floats}), b.Op("GATHER", {floats, b.Ints({36, 0, 7})})}) {
    b.Output(v);
  }
  for (const NodeId id : b.graph().order()) {
    const auto wanted = Evaluate(b.graph(), id), made = Evaluate(b.graph(), id, DetectIsa());
    ASSERT_TRUE(wanted.ok() && made.ok());
    const TensorInfo &left = wanted->at(0).info, &right = made->at(0).info;
    EXPECT_EQ(std::memcmp(left.data, right.data, left.bytes()), 0) << b.graph().node(id).op->name;
  }
}

TEST(Compile, CountsMultiplyAddsOfTheGraph) {
  GraphBuilder b;
  b.Output(b.Dense(b.Dense(b.Input({2, 16}), 8), 4));
  EXPECT_EQ(GraphCost(b.graph()), 2 * 16 * 8 + 2 * 8 * 4);
}

// Four times as many bytes with each node: what is folded does not get around the budget.
TEST(Compile, HoldsFoldedConstantsToTheBudget) {
  GraphBuilder b;
  ValueId big = b.Constant({1, 16});
  for (int i = 0; i < 3; ++i) {
    big = b.Op("CONCATENATION", {big, big, big, big}, {{"axis", 1.0}});
  }
  b.Output(b.Op("ADD", {b.Input({1}), b.Op("MEAN", {big, b.Ints({1})})}));
  CompileOptions options = Fused();
  options.budget.max_memory = 3 * 4096;
  EXPECT_TRUE(Compile(b.graph(), options, nullptr).ok());
  options.budget.max_memory = 4095;
  const auto refused = Compile(b.graph(), options, nullptr);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().message(), HasSubstr("asks for 4.1 kB of memory"));
}

TEST(Compile, PacksTheWeightsOnceForAllExecutablesOfAProcess) {
  GraphBuilder b;
  const ValueId c = b.Conv(b.Input({1, 9, 7, 16}), 32, 3);
  b.Output(b.Dense(b.Depthwise(c, 3), 24));
  CountingStore store;
  CompileOptions options = Fused();
  options.store = &store;
  std::vector<std::shared_ptr<const Executable>> executables;
  for (int i = 0; i < 3; ++i) {
    const size_t before = store.bytes;
    auto executable = Compile(b.graph(), options, nullptr);
    ASSERT_TRUE(executable.ok()) << executable.status().ToString();
    executables.push_back(*executable);
    EXPECT_EQ(store.bytes > before, i == 0) << "executable " << i;
  }
}

// A folder's weights outlive those who packed them; what has few bytes is packed anew.
TEST(Compile, FindsWeightsInTheFolderOfAnother) {
  const std::string folder = ::testing::TempDir() + "fuselite_compile_test";
  for (const int units : {64, 2}) {
    GraphBuilder b;
    b.Output(b.Dense(b.Input({1, 16}), units));
    for (const bool found : {false, true}) {
      CountingStore store;
      CompileOptions options = Fused();
      options.store = &store;
      options.cache.directory = folder;
      CompileReport report;
      const auto executable = Compile(b.graph(), options, &report);
      ASSERT_TRUE(executable.ok()) << executable.status().ToString();
      if (units == 2) {
        EXPECT_THAT(report.caches, ::testing::IsEmpty());
        continue;
      }
      ASSERT_EQ(report.caches.size(), 1u);
      EXPECT_EQ(report.caches[0].problem, "");
      EXPECT_EQ(report.caches[0].found, found ? 1 : 0);
      EXPECT_EQ(report.caches[0].made, found ? 0 : 1);
    }
  }
  // Nothing is told of a constant that no kernel packs.
  GraphBuilder b;
  b.Output(b.Op("ADD", {b.Input({1, 512}), b.Constant({1, 512})}));
  CompileOptions options = Fused();
  options.cache.directory = folder;
  CompileReport report;
  EXPECT_TRUE(Compile(b.graph(), options, &report).ok());
  EXPECT_THAT(report.caches, ::testing::IsEmpty());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace fuselite::fusion::testing
