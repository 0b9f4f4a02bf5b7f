#include "fusion/plan/lower.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <map>

#include "fusion/graph/cost.h"
#include "fusion/match.h"
#include "kernels/step_store.h"
#include "runtime/execution/strips_kernel.h"
#include "runtime/support/caught.h"
#include "runtime/support/first_error.h"
#include "runtime/support/short_list.h"
#include "runtime/support/stopwatch.h"
#include "runtime/support/text_table.h"
#include "runtime/threads/parallel.h"

namespace fuselite::fusion {
namespace {

// How many multiply-adds of floats take the time of a byte that a step reads or writes: 45 in a
// nanosecond on a Zen 4, where RELU6 moves 88 bytes.
constexpr double kCostOfByte = 0.5;

// "relu6" for Activation::kRelu6; empty for kNone.
std::string_view ActivationName(kernels::Activation activation) {
  switch (activation) {
    case kernels::Activation::kNone: return "";
    case kernels::Activation::kRelu: return "relu";
    case kernels::Activation::kReluN1To1: return "relu_n1_to_1";
    case kernels::Activation::kRelu6: return "relu6";
    case kernels::Activation::kTanh: return "tanh";
    case kernels::Activation::kSignBit: return "sign_bit";
  }
  return "";
}

// A stage without its operand, which is a number of no meaning to a reader.
std::string StageName(const kernels::TailStage& stage) {
  const std::string name = stage.ToString();
  return name.substr(0, name.find(" #"));
}

// "CONV_2D + relu6 + add".
std::string OpsOf(const Node& node) {
  std::string ops(node.name());
  if (const std::string_view name = ActivationName(FusedActivation(node)); !name.empty()) {
    ops += " + " + std::string(name);
  }
  for (const kernels::TailStage& stage : node.tail.stages) ops += " + " + StageName(stage);
  return ops;
}

// "conv_2d_12": the operator and the first of the host's nodes.
std::string StepName(const Node& node, NodeId id) {
  std::string name(node.name());
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  return internal::Join(name, "_", node.host_nodes.empty() ? id : node.host_nodes.front());
}

// Steps of which the kernels are built side by side, for each thread: enough that none waits long
// for the last, and few, since what they are built from lies in memory as long.
constexpr int kStepsAhead = 4;

// A step whose kernel is to be built.
struct Building {
  NodeId id;
  kernels::OpDescription op;
  const Choice* choice;  // null: the kernel is made of strips
  kernels::StepStore store;
  Result<std::shared_ptr<const Kernel>> kernel = std::shared_ptr<const Kernel>();
  StepReport report{};
};

// Adds what a strip's steps are to the report of the step that computes `count` of them. Of several
// parts the first one's kernels stand for all.
void AddStripReport(const CompileReport& strip, int32_t count, StepReport& report) {
  const bool first = report.steps.empty();
  for (size_t i = 0; i < strip.steps.size(); ++i) {
    StepReport step = strip.steps[i];
    step.multiply_adds *= count;
    step.input_bytes *= static_cast<size_t>(count);
    step.output_bytes *= static_cast<size_t>(count);
    report.multiply_adds += step.multiply_adds;
    for (const Refusal& refusal : step.refusals) {
      if (std::ranges::count(report.refusals, refusal) == 0) report.refusals.push_back(refusal);
    }
    if (first) {
      step.placement = "a strip";
      report.weight_bytes += step.weight_bytes;
      report.steps.push_back(std::move(step));
    } else if (i < report.steps.size()) {
      report.steps[i].multiply_adds += step.multiply_adds;
      report.steps[i].input_bytes += step.input_bytes;
      report.steps[i].output_bytes += step.output_bytes;
    }
  }
}

class Lowering {
 public:
  Lowering(Graph& graph, const StoragePlan& plan, std::map<NodeId, Strips>& strips,
           Planner& planner, PackedStore& store, int threads, CompileReport& report)
      : graph_(graph),
        plan_(plan),
        strips_(strips),
        planner_(planner),
        store_(store),
        threads_(threads),
        report_(report),
        ids_(graph.value_count(), kNone),
        readers_(graph.value_count()) {
    // Nodes without a step among them: what they would have read stays.
    for (NodeId id : graph.order()) {
      for (ValueId v : graph.node(id).inputs) {
        if (v != kNone) ++readers_[v];
      }
    }
  }

  Result<std::shared_ptr<const Executable>> Run() {
    Stopwatch watch;
    BindOutside();
    FUSELITE_RETURN_IF_ERROR(planner_.BuildTogether([this] { return AddSteps(); }));
    report_.times.kernels = watch.Lap();
    FUSELITE_ASSIGN_OR_RETURN(auto executable, std::move(builder_).Build());
    report_.times.memory = watch.Lap();
    ReportMemory(*executable);
    return executable;
  }

 private:
  Status AddSteps() {
    std::vector<NodeId> order = graph_.order();
    std::erase_if(order, [&](NodeId id) { return plan_.silent(id); });
    report_.steps.reserve(order.size());
    const size_t window = threads_ == 1 ? 1 : static_cast<size_t>(threads_) * kStepsAhead;
    for (size_t at = 0; at < order.size(); at += window) {
      const std::span ids = std::span(order).subspan(at, std::min(window, order.size() - at));
      FUSELITE_RETURN_IF_ERROR(AddSteps(ids));
    }
    return Status();
  }

  Status AddSteps(std::span<const NodeId> nodes) {
    std::vector<Building> steps;
    steps.reserve(nodes.size());
    for (NodeId id : nodes) {
      steps.push_back({id, plan_.Describe(id), nullptr, kernels::StepStore(store_)});
      const auto strips = strips_.find(id);
      if (strips == strips_.end()) continue;
      steps.back().kernel = BuildStrips(strips->second, steps.back().report);
    }
    // Building strips releases choices, of which some might be those of other steps.
    for (Building& step : steps) {
      if (!strips_.contains(step.id)) step.choice = &planner_.Choose(step.op);
    }
    FUSELITE_RETURN_IF_ERROR(BuildKernels(steps));
    ShortList<const Choice*, 8> built;  // each once
    for (Building& step : steps) {
      if (Status status = AddStep(step); !status.ok()) {
        return status.In(StepName(graph_.node(step.id), step.id));
      }
      // A kernel that is its own plan is that of every step with such a description.
      if (step.choice != nullptr && *step.kernel != step.choice->plan->draft()) {
        if (std::ranges::find(built, step.choice) == built.end()) built.push_back(step.choice);
      }
    }
    for (const Choice* choice : built) planner_.Release(*choice);
    for (const Building& step : steps) {
      for (ValueId v : graph_.node(step.id).inputs) Release(v);
    }
    return Status();
  }

  // What a kernel fails of is said in its step.
  Status BuildKernels(std::vector<Building>& steps) const {
    if (threads_ == 1 || steps.size() == 1) {
      for (Building& step : steps) BuildKernel(step);
      return Status();
    }
    std::atomic<size_t> next{0};
    fuselite::internal::FirstError refused;
    ParallelRegion(threads_, [&](int, int) {
      Status status = BuildTogether([&] {
        for (size_t i = next++; i < steps.size(); i = next++) BuildKernel(steps[i]);
      });
      if (!status.ok()) refused.Set(std::move(status));
    });
    return refused.Take();
  }

  // Each thread has a batch of its own for the code that it emits.
  Status BuildTogether(FunctionRef<void()> build) const {
    return Guarded("building kernels", [&] {
      return planner_.BuildTogether([&] {
        build();
        return Status();
      });
    });
  }

  void BuildKernel(Building& step) const {
    if (step.choice == nullptr) return;
    step.report.candidate = step.choice->candidate;
    step.report.refusals = step.choice->refusals;
    step.report.multiply_adds = OperationCost(step.op);
    step.report.ops = OpsOf(graph_.node(step.id));
    step.kernel = step.choice->status.ok()
                      ? step.choice->plan->Build(step.op, {planner_.context(), &step.store})
                      : step.choice->status;
  }

  // The kernel of a node that stands for the graphs of `strips`.
  Result<std::shared_ptr<const Kernel>> BuildStrips(Strips& strips, StepReport& report) {
    RewriteContext context(planner_, nullptr);
    std::vector<StripsKernel::Strips> built;
    for (Strips::Part& part : strips.parts) {
      StoragePlan plan = PlanStorage(part.graph, context);
      PlanInPlace(part.graph, context, plan);
      std::map<NodeId, Strips> none;
      CompileReport steps;
      Lowering lowering(part.graph, plan, none, planner_, store_, 1, steps);
      lowering.BindOutside();
      FUSELITE_RETURN_IF_ERROR(lowering.AddSteps());
      FUSELITE_ASSIGN_OR_RETURN(auto executable, std::move(lowering.builder_).Build());
      AddStripReport(steps, part.cut.count, report);
      built.push_back({std::move(executable), part.cut.rows, part.cut.count});
    }
    report.candidate = "strips";
    report.ops = internal::Join("FUSELITE_STRIPS of ", report.steps.size(), " steps");
    return std::shared_ptr<const Kernel>(
        std::make_shared<StripsKernel>(std::move(built), strips.input_rows, strips.output_rows));
  }

  // What callers bind, in the order that they know.
  void BindOutside() {
    for (ValueId v : graph_.inputs) {
      const size_t bytes = plan_.Span(v);
      ids_[v] = graph_.value(v).variable ? builder_.AddVariable(bytes) : builder_.AddInput(bytes);
    }
    for (ValueId v : graph_.outputs) ids_[v] = builder_.AddOutput(plan_.Span(v));
  }

  int IdOf(ValueId v) {
    if (v == kNone || ids_[v] != kNone) return v == kNone ? kNone : ids_[v];
    const Value& value = graph_.value(v);
    const Storage& storage = plan_.of(v);
    if (value.info.constant()) {
      ids_[v] = builder_.AddConstant(value.info.data, value.info.bytes(), value.storage);
    } else if (storage.root != v) {
      ids_[v] = builder_.AddAlias(IdOf(storage.root), storage.offset, plan_.Span(v));
    } else {
      ids_[v] = builder_.AddTemporary(value.info.bytes());
    }
    return ids_[v];
  }

  Status AddStep(Building& built) {
    const NodeId id = built.id;
    const Node& node = graph_.node(id);
    const kernels::OpDescription& op = built.op;
    StepReport& report = report_.steps.emplace_back(std::move(built.report));
    if (!built.kernel.ok()) return built.kernel.status();
    report.kernel = (*built.kernel)->name();
    report.host_nodes = node.host_nodes;
    report.tail = node.tail.ToString();
    report.output_shape = op.outputs[0].shape.ToString();
    report.input_types.reserve(op.inputs.size());
    for (const TensorInfo& info : op.inputs) {
      report.input_types.push_back(info.type);
      if (info.constant()) report.weight_bytes += info.bytes();
    }
    for (ValueId v : node.inputs) {
      if (v != kNone && !graph_.value(v).info.constant()) {
        report.input_bytes += graph_.value(v).info.bytes();
      }
    }
    for (const TensorInfo& info : op.outputs) report.output_bytes += info.bytes();
    Step step;
    step.name = StepName(node, id);
    step.ops = report.ops;
    step.kernel = *built.kernel;
    step.inputs.reserve(node.inputs.size());
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      step.inputs.push_back(built.store.IsAllOf(op, i) ? kNone : IdOf(node.inputs[i]));
    }
    for (ValueId v : node.outputs) step.outputs.push_back(IdOf(v));
    step.cost = report.multiply_adds +
                kCostOfByte * static_cast<double>(report.input_bytes + report.output_bytes);
    first_output_.push_back(node.outputs[0]);
    builder_.AddStep(std::move(step));
    return Status();
  }

  // One reader less. Constants that were computed go with the last one, unless a step reads them:
  // weights that are dequantized when a model is opened would lie in memory twice, packed and not.
  void Release(ValueId v) {
    if (v == kNone || --readers_[v] > 0) return;
    graph_.value(v).storage.reset();
  }

  void ReportMemory(const Executable& executable) {
    report_.arena_bytes = executable.arena_bytes();
    for (size_t i = 0; i < first_output_.size(); ++i) {
      report_.steps[i].placement = PlacementOf(first_output_[i]);
      const fuselite::Value& value = executable.values()[ids_[first_output_[i]]];
      if (value.placement == Placement::kArena) report_.steps[i].arena_offset = value.offset;
    }
  }

  // "arena", "output 0", "inside add_12".
  std::string PlacementOf(ValueId value) const {
    const ValueId root = plan_.of(value).root;
    const auto output = std::ranges::find(graph_.outputs, root);
    if (output != graph_.outputs.end()) {
      const std::string text = internal::Join("output ", output - graph_.outputs.begin());
      return root == value ? text : "inside " + text;
    }
    if (root == value) return "arena";
    const std::string& name = graph_.value(root).name;
    return name.empty() ? internal::Join("inside value ", root) : "inside " + ShortName(name);
  }

  Graph& graph_;
  const StoragePlan& plan_;
  std::map<NodeId, Strips>& strips_;
  Planner& planner_;
  PackedStore& store_;
  const int threads_;
  CompileReport& report_;
  ExecutableBuilder builder_;
  std::vector<int> ids_;               // in the executable, of each value that is used
  std::vector<int> readers_;           // of each value, that have no step yet
  std::vector<ValueId> first_output_;  // of each step
};

}  // namespace

Result<std::shared_ptr<const Executable>> Lower(Graph& graph, const StoragePlan& plan,
                                                std::map<NodeId, Strips>& strips, Planner& planner,
                                                PackedStore& store, int threads,
                                                CompileReport& report) {
  return Lowering(graph, plan, strips, planner, store, threads, report).Run();
}

}  // namespace fuselite::fusion
