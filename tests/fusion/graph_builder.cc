#include "tests/fusion/graph_builder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "tests/fusion/neighbours.h"
#include "tests/kernels/guarded_bytes.h"

namespace fuselite::fusion::testing {
namespace {

void SetAttribute(const kernels::OperatorDef& op, std::string_view name, double value,
                  kernels::Params* params) {
  for (const kernels::Field& field : op.fields) {
    if (field.name != name) continue;
    std::byte* at = static_cast<std::byte*>(params->data()) + field.offset;
    switch (field.kind) {
      case kernels::FieldKind::kFloat: {
        const float v = static_cast<float>(value);
        std::memcpy(at, &v, sizeof v);
        return;
      }
      case kernels::FieldKind::kBool: {
        const bool v = value != 0;
        std::memcpy(at, &v, sizeof v);
        return;
      }
      case kernels::FieldKind::kDataType: *at = static_cast<std::byte>(value); return;
      case kernels::FieldKind::kInt64: {
        const int64_t v = static_cast<int64_t>(value);
        std::memcpy(at, &v, sizeof v);
        return;
      }
      case kernels::FieldKind::kIntList:
      case kernels::FieldKind::kLongList:
      case kernels::FieldKind::kLongPairs:
      case kernels::FieldKind::kFloatList: FAIL() << "no lists here";
      default: {
        const int32_t v = static_cast<int32_t>(value);
        std::memcpy(at, &v, sizeof v);
        return;
      }
    }
  }
  FAIL() << op.name << " has no field " << name;
}

const Attributes kConv = {{"stride_w", 1}, {"stride_h", 1}};
const Attributes kDepthwise = {{"stride_w", 1}, {"stride_h", 1}, {"depth_multiplier", 1}};

// Later ones win.
Attributes And(Attributes attributes, const Attributes& more) {
  attributes.insert(attributes.end(), more.begin(), more.end());
  return attributes;
}

TensorInfo FloatInfo(const Shape& shape) { return {.type = DataType::kFloat32, .shape = shape}; }

}  // namespace

ValueId GraphBuilder::Input(Shape shape, DataType type) {
  Value value;
  value.info = {.type = type, .shape = shape};
  value.input = true;
  value.name = "input_" + std::to_string(graph_.inputs.size());
  graph_.inputs.push_back(graph_.AddValue(std::move(value)));
  return graph_.inputs.back();
}

ValueId GraphBuilder::Variable(Shape shape) {
  const ValueId state = Input(shape);
  graph_.value(state).input = false;
  graph_.value(state).variable = true;
  return state;
}

ValueId GraphBuilder::Constant(Shape shape, float low, float high) {
  std::vector<float> values(shape.elements());
  for (float& v : values) v = random_.Float(low, high);
  return Constant(shape, values);
}

ValueId GraphBuilder::Constant(Shape shape, const std::vector<float>& values) {
  EXPECT_EQ(shape.elements(), static_cast<int64_t>(values.size()));
  return graph_.AddConstant(FloatInfo(shape), std::as_bytes(std::span(values)), "constant");
}

ValueId GraphBuilder::Ints(const std::vector<int32_t>& values) {
  return Ints(Shape({static_cast<int32_t>(values.size())}), values);
}

ValueId GraphBuilder::Ints(Shape shape, const std::vector<int32_t>& values) {
  EXPECT_EQ(shape.elements(), static_cast<int64_t>(values.size()));
  return graph_.AddConstant({.type = DataType::kInt32, .shape = shape},
                            std::as_bytes(std::span(values)), "ints");
}

std::vector<ValueId> GraphBuilder::Op(std::string_view name, const std::vector<ValueId>& inputs,
                                      const Attributes& attributes, int outputs,
                                      const TensorInfo& output) {
  Node node;
  node.op = kernels::FindOperator(name);
  if (node.op == nullptr) throw std::runtime_error("no operator " + std::string(name));
  node.version = node.op->max_version;
  kernels::SetDefaults(node.op->fields, node.params.data());
  for (const auto& [field, value] : attributes) SetAttribute(*node.op, field, value, &node.params);
  node.inputs = inputs;
  node.host_nodes = {host_nodes_++};
  for (int i = 0; i < outputs; ++i) {
    Value value;
    value.info = output;
    value.name = std::string(name) + "_" + std::to_string(node.host_nodes[0]);
    node.outputs.push_back(graph_.AddValue(std::move(value)));
  }
  const NodeId id = graph_.AddNode(std::move(node));
  kernels::OpDescription op = graph_.Describe(id);
  const Status status = kernels::Infer(op);
  if (!status.ok()) throw std::runtime_error(std::string(name) + ": " + status.ToString());
  for (int i = 0; i < outputs; ++i) graph_.value(graph_.node(id).outputs[i]).info = op.outputs[i];
  return graph_.node(id).outputs;
}

ValueId GraphBuilder::Int8Constant(Shape shape, float scale) {
  std::vector<int8_t> values(shape.elements());
  for (int8_t& v : values) v = static_cast<int8_t>(random_.Int(-127, 127));
  const TensorInfo info{.type = DataType::kInt8,
                        .shape = shape,
                        .quantization = {.scales = {scale}, .zero_points = {0}}};
  return graph_.AddConstant(info, std::as_bytes(std::span(values)), "int8");
}

ValueId GraphBuilder::Conv(ValueId x, int channels, int filter, const Attributes& attributes) {
  const float range = 1.0f / static_cast<float>(filter * filter);
  const ValueId weights = Constant({channels, filter, filter, shape(x).dim(-1)}, -range, range);
  return Op("CONV_2D", {x, weights, Constant({channels})}, And(kConv, attributes));
}

ValueId GraphBuilder::Depthwise(ValueId x, int filter, const Attributes& attributes) {
  const int channels = shape(x).dim(-1);
  const ValueId weights = Constant({1, filter, filter, channels});
  return Op("DEPTHWISE_CONV_2D", {x, weights, Constant({channels})}, And(kDepthwise, attributes));
}

ValueId GraphBuilder::Dense(ValueId x, int units, const Attributes& attributes) {
  const ValueId weights = Constant({units, shape(x).dim(-1)});
  return Op("FULLY_CONNECTED", {x, weights, Constant({units})}, attributes);
}

ValueId GraphBuilder::Rnn(ValueId x, ValueId state) {
  const int32_t units = shape(state).dim(-1);
  return Op("RNN", {x, Constant({units, shape(x).dim(-1)}), Constant({units, units}),
                    Constant({units}), state});
}

ValueId Int8Builder::Conv8(ValueId x, int channels, int filter, float scale, int32_t zero_point,
                           const Attributes& attributes) {
  const ValueId weights = Int8Constant({channels, filter, filter, shape(x).dim(-1)}, 0.01f);
  return Int8Op("CONV_2D", {x, weights}, scale, zero_point, And(kConv, attributes));
}

ValueId Int8Builder::Depthwise8(ValueId x, int filter, float scale, int32_t zero_point,
                                const Attributes& attributes) {
  const ValueId weights = Int8Constant({1, filter, filter, shape(x).dim(-1)}, 0.01f);
  return Int8Op("DEPTHWISE_CONV_2D", {x, weights}, scale, zero_point, And(kDepthwise, attributes));
}

ValueId Int8Builder::Dense8(ValueId x, int units, float scale, int32_t zero_point) {
  const ValueId weights = Int8Constant({units, shape(x).dim(-1)}, 0.01f);
  return Int8Op("FULLY_CONNECTED", {x, weights}, scale, zero_point);
}

void GraphBuilder::Output(ValueId value) {
  graph_.value(value).observed = true;
  graph_.outputs.push_back(value);
}

std::vector<std::string> Outcome::ops() const {
  std::vector<std::string> all;
  for (const StepReport& step : report.steps) all.push_back(step.ops);
  return all;
}

namespace {

using kernels::testing::GuardedBytes;

// The outputs, and what variables hold in the end. Everything that is bound is a copy that begins
// right behind a page that nobody may touch, or ends right before one.
std::vector<std::vector<float>> RunAgainst(GuardedBytes::Edge edge, const Graph& graph,
                                           const std::vector<std::vector<float>>& inputs,
                                           int threads, Execution& execution, Status& status) {
  std::vector<std::pair<std::unique_ptr<GuardedBytes>, size_t>> results;
  std::vector<std::unique_ptr<GuardedBytes>> given;
  const auto place = [&](const std::vector<float>& values) {
    return std::make_unique<GuardedBytes>(values.data(), values.size() * sizeof(float), edge);
  };
  int bound = 0;
  for (ValueId v : graph.outputs) {
    const std::vector<float> unwritten(graph.value(v).info.elements(), -12345.0f);
    results.emplace_back(place(unwritten), unwritten.size());
    execution.BindOutput(bound++, results.back().first->data());
  }
  bound = 0;
  int variables = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (graph.value(graph.inputs[i]).variable) {
      results.emplace_back(place(inputs[i]), inputs[i].size());
      execution.BindVariable(variables++, results.back().first->data());
    } else {
      given.push_back(place(inputs[i]));
      execution.BindInput(bound++, given.back()->data());
    }
  }
  RunOptions run;
  run.threads = threads;
  status = execution.Run(run);
  std::vector<std::vector<float>> outputs;
  for (const auto& [memory, size] : results) {
    const auto* values = reinterpret_cast<const float*>(memory->data());
    outputs.emplace_back(values, values + size);
  }
  return outputs;
}

}  // namespace

Outcome RunGraph(const Graph& graph, CompileOptions options, uint64_t seed) {
  Outcome outcome;
  auto executable = Compile(graph, options, &outcome.report);
  EXPECT_TRUE(executable.ok()) << executable.status().ToString();
  if (!executable.ok()) return outcome;
  Execution execution(*executable);
  Random random(seed);
  std::vector<std::vector<float>> inputs;
  for (ValueId input : graph.inputs) {
    std::vector<float>& data = inputs.emplace_back(graph.value(input).info.elements());
    for (float& x : data) x = random.Float(-4, 4);
  }
  const auto run = [&](GuardedBytes::Edge edge) {
    return RunAgainst(edge, graph, inputs, options.threads, execution, outcome.status);
  };
  outcome.outputs = run(GuardedBytes::Edge::kBegin);
  const std::vector<std::vector<float>> again = run(GuardedBytes::Edge::kEnd);
  for (size_t i = 0; i < again.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(again[i])),
                                   std::as_bytes(std::span(outcome.outputs[i]))))
        << "output " << i << " depends on where the operands lie";
  }
  return outcome;
}

CompileOptions Fused() {
  CompileOptions options;
  options.isa = RunnableIsas().back();
  return options;
}

CompileOptions Unfused() {
  CompileOptions options = Fused();
  options.fusion = false;
  return options;
}

void ExpectClose(const std::vector<std::vector<float>>& expected,
                 const std::vector<std::vector<float>>& actual, float tolerance, float roundings) {
  ASSERT_EQ(expected.size(), actual.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(expected[i].size(), actual[i].size());
    int shown = 0;
    for (size_t k = 0; k < actual[i].size() && shown < 5; ++k) {
      const float e = expected[i][k], a = actual[i][k];
      if (e == a || (std::isnan(e) && std::isnan(a))) continue;
      if (!(std::abs(e - a) <= tolerance * std::max(1.0f, std::abs(e)) + roundings)) {
        ADD_FAILURE() << "output " << i << ", element " << k << " is " << a << ", expected " << e;
        ++shown;
      }
    }
  }
}

namespace {

// The graph after each rewrite, in an order that follows from `seed`. A rewrite mostly sees what
// those that stand before it in the list left; here it sees what the others leave, tails above all.
Graph RewrittenInAnyOrder(Graph graph, uint64_t seed) {
  Planner planner = PlannerFor(Fused());
  RewriteContext rewriting(planner, nullptr);
  std::vector<RewriteFunction> rewrites(AllRewrites().begin(), AllRewrites().end());
  Random random(seed);
  for (size_t i = rewrites.size(); i > 1; --i) {
    std::swap(rewrites[i - 1], rewrites[random.Int(0, static_cast<int64_t>(i) - 1)]);
  }
  for (const RewriteFunction rewrite : rewrites) RunRewrite(rewrite, graph, rewriting);
  return graph;
}

Outcome ExpectSame(const Graph& graph, float tolerance, float roundings) {
  const Outcome expected = RunGraph(graph, Unfused());
  Outcome fused = RunGraph(graph, Fused());
  EXPECT_TRUE(expected.status.ok()) << expected.status.ToString();
  EXPECT_TRUE(fused.status.ok()) << fused.status.ToString();
  ExpectClose(expected.outputs, fused.outputs, tolerance, roundings);
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE("rewrites in the order of seed " + std::to_string(seed));
    const Outcome other = RunGraph(RewrittenInAnyOrder(graph, seed), Fused());
    EXPECT_TRUE(other.status.ok()) << other.status.ToString();
    ExpectClose(expected.outputs, other.outputs, tolerance, roundings);
  }
  return fused;
}

// Of the float values that the nodes make.
float LargestValue(const Graph& graph) {
  Graph all = graph;
  all.outputs.clear();
  for (NodeId id : graph.order()) {
    for (ValueId v : graph.node(id).outputs) {
      if (graph.value(v).info.type != DataType::kFloat32) continue;
      all.value(v).observed = true;
      all.outputs.push_back(v);
    }
  }
  float largest = 0;
  for (const std::vector<float>& values : RunGraph(all, Unfused()).outputs) {
    for (float x : values) {
      if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
    }
  }
  return largest;
}

}  // namespace

Outcome ExpectSameFused(const Graph& graph, float tolerance) {
  return ExpectSame(graph, tolerance, 0);
}

Outcome ExpectSameFusedAtAnySize(const Graph& graph, float tolerance) {
  // Of random graphs that differed by more than their tolerance none needed more than one.
  constexpr float kLastBits = 8 * std::numeric_limits<float>::epsilon();
  return ExpectSame(graph, tolerance, kLastBits * LargestValue(graph));
}

namespace {

// What both ways give for the graphs beside one that is compared within `tolerance`: the same
// codes where there are codes, else what no other function than the right one gives. Sums that
// nearly cancel, quotients by nearly nothing, and infinities are not what they are for.
float NeighbourTolerance(const Graph& graph, float tolerance) {
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    if (!graph.value(v).info.quantization.empty()) return std::max(tolerance, 1e-5f);
  }
  return std::max(tolerance, 1e-3f);
}

std::vector<std::vector<float>> WithoutInfinities(std::vector<std::vector<float>> outputs) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  for (std::vector<float>& output : outputs) {
    for (float& x : output) x = std::isnan(x) ? x : std::clamp(x, -kLargest, kLargest);
  }
  return outputs;
}

}  // namespace

Outcome ExpectFusedEqualsUnfused(const Graph& graph, float tolerance) {
  uint64_t order = 1;
  ForEachNeighbour(graph, [&](const std::string& what, const Graph& neighbour) {
    // One failure is enough, and a model that the reference refuses has no right result.
    if (::testing::Test::HasFailure() || !Compile(neighbour, Unfused(), nullptr).ok()) return;
    SCOPED_TRACE(what);
    const Outcome expected = RunGraph(neighbour, Unfused());
    if (!expected.status.ok()) return;
    for (const bool in_order : {true, false}) {
      const Graph rewritten = in_order ? neighbour : RewrittenInAnyOrder(neighbour, order++);
      SCOPED_TRACE(in_order ? "rewrites in order" : "order of seed " + std::to_string(order - 1));
      const Outcome fused = RunGraph(rewritten, Fused());
      EXPECT_TRUE(fused.status.ok()) << fused.status.ToString();
      ExpectClose(WithoutInfinities(expected.outputs), WithoutInfinities(fused.outputs),
                  NeighbourTolerance(neighbour, tolerance));
    }
  });
  return ExpectSameFused(graph, tolerance);
}

}  // namespace fuselite::fusion::testing
