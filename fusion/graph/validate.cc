#include "fusion/graph/validate.h"

#include <set>

namespace fuselite::fusion {
namespace {

bool InRange(const Graph& graph, ValueId value) {
  return value >= 0 && value < graph.value_count();
}

// Whether the value has bytes before any node ran.
bool Given(const Value& value) { return value.input || value.variable || value.info.constant(); }

Status CheckTail(const Node& node) {
  if (!node.tail.empty() && !node.op->elementwise && !node.op->takes_tail) {
    return Internal("has a tail, which its operator does not take");
  }
  for (const kernels::TailStage& stage : node.tail.stages) {
    if (stage.kind != kernels::TailStage::Kind::kBinary &&
        stage.kind != kernels::TailStage::Kind::kQuantizedAdd) {
      continue;
    }
    const int input = stage.operand.input;
    if (input < 0 || input >= static_cast<int>(node.inputs.size()) || node.inputs[input] == kNone) {
      return Internal("tail stage '", stage.ToString(), "' names no input of the node");
    }
  }
  return Status();
}

class Checker {
 public:
  explicit Checker(const Graph& graph) : graph_(graph), made_(graph.value_count(), false) {}

  Status Run() {
    for (ValueId v : graph_.inputs) {
      if (!InRange(graph_, v)) return Internal("input ", v, " is not a value");
      if (!graph_.value(v).input && !graph_.value(v).variable) {
        return Internal("input ", v, " is not marked as one");
      }
    }
    for (NodeId id : graph_.order()) {
      if (Status status = CheckNode(id); !status.ok()) {
        return status.In(internal::Join("node ", id, " (", graph_.node(id).op->name, ")"));
      }
    }
    return CheckOutputs();
  }

 private:
  Status CheckNode(NodeId id) {
    const Node& node = graph_.node(id);
    for (ValueId v : node.inputs) {
      if (v == kNone) continue;
      if (!Given(graph_.value(v)) && !made_[v])
        return Internal("reads value ", v, " before it is made");
    }
    for (ValueId v : node.outputs) {
      if (!InRange(graph_, v)) return Internal("output ", v, " is not a value");
      if (graph_.value(v).input || graph_.value(v).info.constant()) {
        return Internal("writes value ", v, ", which is given");
      }
      if (made_[v] && !graph_.value(v).variable)
        return Internal("makes value ", v, " a second time");
      made_[v] = true;
    }
    return CheckTail(node);
  }

  Status CheckOutputs() const {
    std::set<ValueId> seen;
    for (ValueId v : graph_.outputs) {
      if (!InRange(graph_, v)) return Internal("output ", v, " is not a value");
      if (!made_[v] && !Given(graph_.value(v))) return Internal("nobody makes output ", v);
      if (!graph_.value(v).observed) return Internal("output ", v, " is not marked as observed");
      if (!seen.insert(v).second) return Internal("value ", v, " is an output twice");
    }
    return Status();
  }

  const Graph& graph_;
  std::vector<bool> made_;
};

}  // namespace

Status Validate(const Graph& graph) { return Checker(graph).Run(); }

}  // namespace fuselite::fusion
