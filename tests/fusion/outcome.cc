#include "tests/fusion/outcome.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <type_traits>
#include <utility>

#include "fusion/rewrites/rewrites.h"
#include "runtime/execution/execution.h"
#include "tests/fusion/neighbours.h"
#include "tests/kernels/guarded_bytes.h"
#include "tests/kernels/random.h"

namespace fuselite::fusion::testing {

std::vector<std::string> Outcome::ops() const {
  std::vector<std::string> all;
  for (const StepReport& step : report.steps) all.push_back(step.ops);
  return all;
}

namespace {

using Bytes = std::vector<std::byte>;
using kernels::testing::GuardedBytes;
using kernels::testing::Random;

// In [-4, 4] in floats, any code in integers.
template <class T>
void Fill(std::span<T> values, Random& random) {
  using Limits = std::numeric_limits<T>;
  for (T& x : values) {
    if constexpr (std::is_floating_point_v<T>) {
      x = random.Float(-4, 4);
    } else {
      x = static_cast<T>(random.Int(Limits::min(), Limits::max()));
    }
  }
}

template <class T>
std::vector<float> Floats(std::span<const T> values) {
  return std::vector<float>(values.begin(), values.end());
}

// Calls `visit` with the elements of `bytes` in their own type.
template <class Byte, class Visit>
auto WithElements(DataType type, std::span<Byte> bytes, const Visit& visit) {
  const auto of = [&]<class T>(T) {
    using Element = std::conditional_t<std::is_const_v<Byte>, const T, T>;
    return visit(std::span(reinterpret_cast<Element*>(bytes.data()), bytes.size() / sizeof(T)));
  };
  switch (type) {
    // Each is an instance of its own. NOLINTNEXTLINE(bugprone-branch-clone)
    case DataType::kFloat32: return of(float());
    case DataType::kInt16: return of(int16_t());
    case DataType::kInt32: return of(int32_t());
    case DataType::kInt64: return of(int64_t());
    case DataType::kUInt8: return of(uint8_t());
    default: return of(int8_t());
  }
}

// The outputs, and what variables hold in the end. Everything that is bound is a copy that begins
// right behind a page that nobody may touch, or ends right before one.
std::vector<std::vector<float>> RunAgainst(GuardedBytes::Edge edge, const Graph& graph,
                                           const std::vector<Bytes>& inputs, int threads,
                                           Execution& execution, Status& status) {
  std::vector<std::pair<std::unique_ptr<GuardedBytes>, ValueId>> results;
  std::vector<std::unique_ptr<GuardedBytes>> given;
  const auto place = [&](const Bytes& bytes) {
    return std::make_unique<GuardedBytes>(bytes.data(), bytes.size(), edge);
  };
  int bound = 0;
  for (ValueId v : graph.outputs) {
    const Bytes unwritten(graph.value(v).info.bytes(), std::byte{0xc6});
    results.emplace_back(place(unwritten), v);
    execution.BindOutput(bound++, results.back().first->data());
  }
  bound = 0;
  int variables = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (graph.value(graph.inputs[i]).variable) {
      results.emplace_back(place(inputs[i]), graph.inputs[i]);
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
  for (const auto& [memory, v] : results) {
    const TensorInfo& info = graph.value(v).info;
    const std::span<const std::byte> bytes(memory->data(), info.bytes());
    outputs.push_back(WithElements(info.type, bytes, [](auto values) { return Floats(values); }));
  }
  return outputs;
}

// The report names each node that something needs, in a step or in a rewrite's record.
void ExpectEachNodeNamed(Graph graph, const CompileReport& report) {
  for (ValueId v : graph.outputs) graph.value(v).observed = true;
  RemoveDeadNodes(graph);
  std::set<int> unnamed;
  for (NodeId id : graph.order()) {
    const std::vector<int>& host_nodes = graph.node(id).host_nodes;
    unnamed.insert(host_nodes.begin(), host_nodes.end());
  }
  const auto name = [&](const std::vector<int>& host_nodes) {
    for (const int node : host_nodes) unnamed.erase(node);
  };
  for (const StepReport& step : report.steps) name(step.host_nodes);
  for (const RewriteRecord& rewrite : report.rewrites) name(rewrite.host_nodes);
  EXPECT_THAT(unnamed, ::testing::IsEmpty());
}

}  // namespace

Outcome RunGraph(const Graph& graph, CompileOptions options, uint64_t seed) {
  Outcome outcome;
  auto executable = Compile(graph, options, &outcome.report);
  EXPECT_TRUE(executable.ok()) << executable.status().ToString();
  if (!executable.ok()) return outcome;
  if (options.fusion) ExpectEachNodeNamed(graph, outcome.report);
  Execution execution(*executable);
  Random random(seed);
  std::vector<Bytes> inputs;
  for (ValueId input : graph.inputs) {
    const TensorInfo& info = graph.value(input).info;
    Bytes& bytes = inputs.emplace_back(info.bytes());
    WithElements(info.type, std::span(bytes), [&](auto values) { Fill(values, random); });
  }
  const auto run = [&](GuardedBytes::Edge edge) {
    return RunAgainst(edge, graph, inputs, options.threads, execution, outcome.status);
  };
  outcome.outputs = run(GuardedBytes::Edge::kBegin);
  if (!options.fusion) return outcome;
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

std::vector<RewriteRecord> RecordsOf(Graph& graph, const CompileOptions& options) {
  Planner planner = PlannerFor(options);
  std::vector<RewriteRecord> records;
  RewriteContext context(planner, &records);
  RunRewrites(graph, context);
  return records;
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
// Whatever a rewrite changes it says, and what it says it has changed.
Graph RewrittenInAnyOrder(Graph graph, uint64_t seed, const CompileOptions& options = Fused()) {
  Planner planner = PlannerFor(options);
  std::vector<RewriteRecord> records;
  RewriteContext rewriting(planner, &records);
  std::vector<RewriteFunction> rewrites(AllRewrites().begin(), AllRewrites().end());
  Random random(seed);
  for (size_t i = rewrites.size(); i > 1; --i) {
    std::swap(rewrites[i - 1], rewrites[random.Int(0, static_cast<int64_t>(i) - 1)]);
  }
  for (const RewriteFunction rewrite : rewrites) {
    records.clear();
    const int changes = RunRewrite(rewrite, graph, rewriting);
    EXPECT_EQ(static_cast<size_t>(changes), records.size());
  }
  return graph;
}

// Steps that an operator's last resort computes, as its others refused.
size_t LastResorts(const Outcome& outcome) {
  return static_cast<size_t>(std::ranges::count_if(outcome.report.steps, [](const auto& step) {
    return step.candidate == "reference" && !step.refusals.empty();
  }));
}

// What a fast kernel refuses is not fused at the price of the reference.
void ExpectNoMoreReferences(const Outcome& unfused, const Outcome& fused) {
  EXPECT_LE(LastResorts(fused), LastResorts(unfused));
}

// Compares without emitted code, and with no more than any machine runs: kernels refuse more there.
void ExpectSameByFewerKernels(const Graph& graph, float tolerance, float roundings) {
  for (const Isa isa : {RunnableIsas().front(), RunnableIsas().back()}) {
    SCOPED_TRACE("without emitted code, for " + std::string(IsaName(isa)));
    CompileOptions options = Fused();
    options.isa = isa;
    options.jit = false;
    const Outcome fused = RunGraph(graph, options);
    const Outcome other = RunGraph(RewrittenInAnyOrder(graph, 1, options), options);
    options.fusion = false;
    const Outcome expected = RunGraph(graph, options);
    for (const Outcome* const outcome : {&fused, &other}) {
      EXPECT_TRUE(outcome->status.ok()) << outcome->status.ToString();
      ExpectClose(expected.outputs, outcome->outputs, tolerance, roundings);
      ExpectNoMoreReferences(expected, *outcome);
    }
  }
}

Outcome ExpectSame(const Graph& graph, float tolerance, float roundings) {
  const Outcome expected = RunGraph(graph, Unfused());
  Outcome fused = RunGraph(graph, Fused());
  EXPECT_TRUE(expected.status.ok()) << expected.status.ToString();
  EXPECT_EQ(expected.report.steps.size(), graph.order().size()) << "without fusion";
  EXPECT_TRUE(fused.status.ok()) << fused.status.ToString();
  ExpectClose(expected.outputs, fused.outputs, tolerance, roundings);
  ExpectNoMoreReferences(expected, fused);
  ExpectSameByFewerKernels(graph, tolerance, roundings);
  if (CompileOptions parts = Fused();
      parts.batch = {.most_bytes = 1, .least_work = 0}, PartOfBatch(graph, parts.batch)) {
    SCOPED_TRACE("a sample at a time");
    const Outcome other = RunGraph(graph, parts);
    EXPECT_TRUE(other.status.ok()) << other.status.ToString();
    ExpectClose(expected.outputs, other.outputs, tolerance, roundings);
  }
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE("rewrites in the order of seed " + std::to_string(seed));
    const Outcome other = RunGraph(RewrittenInAnyOrder(graph, seed), Fused());
    EXPECT_TRUE(other.status.ok()) << other.status.ToString();
    ExpectClose(expected.outputs, other.outputs, tolerance, roundings);
  }
  return fused;
}

// The largest magnitude among the finite floats that the nodes make.
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
  // None of the random graphs that differed by more than their tolerance needed more than one.
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

namespace {

void ExpectEquivalentsFusedAlike(const Graph& graph, const Outcome& fused) {
  ForEachEquivalent(graph, [&](const std::string& what, const Graph& equivalent) {
    if (::testing::Test::HasFailure() || !Compile(equivalent, Unfused(), nullptr).ok()) return;
    SCOPED_TRACE(what);
    // Where two layers are added, another one of them may take the sum: steps are only counted.
    EXPECT_EQ(RunGraph(equivalent, Fused()).report.steps.size(), fused.report.steps.size());
  });
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
      ExpectNoMoreReferences(expected, fused);
    }
  });
  Outcome fused = ExpectSameFused(graph, tolerance);
  ExpectEquivalentsFusedAlike(graph, fused);
  return fused;
}

}  // namespace fuselite::fusion::testing
