#include "fusion/plan/lower.h"

#include <algorithm>
#include <cctype>

#include "fusion/cost.h"
#include "fusion/match.h"
#include "kernels/step_store.h"
#include "runtime/stopwatch.h"
#include "runtime/text_table.h"

namespace fuselite::fusion {
namespace {

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
  std::string ops(node.op->name);
  if (const std::string_view name = ActivationName(FusedActivation(node)); !name.empty()) {
    ops += " + " + std::string(name);
  }
  for (const kernels::TailStage& stage : node.tail.stages) ops += " + " + StageName(stage);
  return ops;
}

// "conv_2d_12": the operator and the first of the host's nodes.
std::string StepName(const Node& node, NodeId id) {
  std::string name(node.op->name);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  return internal::Join(name, "_", node.host_nodes.empty() ? id : node.host_nodes.front());
}

class Lowering {
 public:
  Lowering(Graph& graph, const StoragePlan& plan, Planner& planner, PackedStore& store,
           CompileReport& report)
      : graph_(graph),
        plan_(plan),
        planner_(planner),
        store_(store),
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
    const std::vector<NodeId> order = graph_.order();
    const auto steps = std::ranges::count_if(order, [&](NodeId id) { return !plan_.silent(id); });
    report_.steps.reserve(static_cast<size_t>(steps));
    for (NodeId id : order) {
      if (plan_.silent(id)) continue;
      if (Status status = AddStep(id); !status.ok()) {
        return status.In(StepName(graph_.node(id), id));
      }
    }
    return Status();
  }

  // What callers bind, in the order that they know.
  void BindOutside() {
    for (ValueId v : graph_.inputs) {
      const size_t bytes = graph_.value(v).info.bytes();
      ids_[v] = graph_.value(v).variable ? builder_.AddVariable(bytes) : builder_.AddInput(bytes);
    }
    for (ValueId v : graph_.outputs) ids_[v] = builder_.AddOutput(graph_.value(v).info.bytes());
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

  Status AddStep(NodeId id) {
    const Node& node = graph_.node(id);
    const kernels::OpDescription op = plan_.Describe(id);
    StepReport& report = report_.steps.emplace_back();
    const Choice& choice = planner_.Choose(op);
    report.candidate = choice.candidate;
    report.refusals = choice.refusals;
    FUSELITE_RETURN_IF_ERROR(choice.status);
    const kernels::PlanContext& context = planner_.context();
    kernels::StepStore store(store_);
    FUSELITE_ASSIGN_OR_RETURN(std::shared_ptr<const Kernel> kernel,
                              choice.plan->Build(op, {.isa = context.isa,
                                                      .precision = context.precision,
                                                      .threads = context.threads,
                                                      .store = &store}));
    // A kernel that is its own plan is that of every step with such a description.
    if (kernel != choice.plan->draft()) planner_.Release(choice);
    report.kernel = kernel->name();
    report.host_nodes = node.host_nodes;
    report.ops = OpsOf(node);
    report.tail = node.tail.ToString();
    report.output_shape = op.outputs.empty() ? "" : op.outputs[0].shape.ToString();
    report.multiply_adds = OperationCost(op);
    for (const TensorInfo& info : op.inputs) {
      report.input_types.push_back(info.type);
      if (!info.absent() && info.constant()) report.weight_bytes += info.bytes();
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
    step.kernel = std::move(kernel);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      step.inputs.push_back(store.IsAllOf(op, i) ? kNone : IdOf(node.inputs[i]));
    }
    for (ValueId v : node.outputs) step.outputs.push_back(IdOf(v));
    step.cost = report.multiply_adds;
    first_output_.push_back(node.outputs.empty() ? kNone : node.outputs[0]);
    builder_.AddStep(std::move(step));
    for (ValueId v : node.inputs) Release(v);
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
      if (first_output_[i] == kNone) continue;
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
  Planner& planner_;
  PackedStore& store_;
  CompileReport& report_;
  ExecutableBuilder builder_;
  std::vector<int> ids_;               // in the executable, of each value that is used
  std::vector<int> readers_;           // of each value, that have no step yet
  std::vector<ValueId> first_output_;  // of each step
};

}  // namespace

Result<std::shared_ptr<const Executable>> Lower(Graph& graph, const StoragePlan& plan,
                                                Planner& planner, PackedStore& store,
                                                CompileReport& report) {
  return Lowering(graph, plan, planner, store, report).Run();
}

}  // namespace fuselite::fusion
