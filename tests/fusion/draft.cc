#include "tests/fusion/draft.h"

#include <span>

#include "fusion/graph/validate.h"
#include "fusion/rewrites/replace.h"
#include "runtime/support/status.h"

namespace fuselite::fusion::testing {

using internal::Join;

Draft::Draft(const Graph& graph) : inputs(graph.inputs), outputs(graph.outputs) {
  for (ValueId v = 0; v < graph.value_count(); ++v) values.push_back(graph.value(v));
  for (NodeId id : graph.order()) nodes.push_back(graph.node(id));
}

ValueId Draft::Input(const TensorInfo& like) {
  Value value;
  value.info = like;
  value.info.data = nullptr;
  value.name = Join("input_", inputs.size());
  value.input = true;
  values.push_back(std::move(value));
  inputs.push_back(static_cast<ValueId>(values.size()) - 1);
  return inputs.back();
}

ValueId Draft::Constant(const std::vector<int32_t>& numbers) {
  Graph maker;
  TensorInfo info;
  info.type = DataType::kInt32;
  info.shape = {static_cast<int32_t>(numbers.size())};
  const ValueId made = maker.AddConstant(info, std::as_bytes(std::span(numbers)), "numbers");
  values.push_back(maker.value(made));
  return static_cast<ValueId>(values.size()) - 1;
}

ValueId Draft::Insert(size_t at, std::string_view op, std::vector<ValueId> read) {
  Value value;
  value.info.type = DataType::kFloat32;
  value.name = Join(op, "_before_", at);
  values.push_back(std::move(value));
  Node node = MakeNode(op, std::move(read));
  node.outputs = {static_cast<ValueId>(values.size()) - 1};
  nodes.insert(nodes.begin() + static_cast<ptrdiff_t>(at), std::move(node));
  return static_cast<ValueId>(values.size()) - 1;
}

void Draft::Write(size_t at, ValueId v) {
  TensorInfo from{.type = DataType::kFloat32, .shape = values[v].info.shape};
  const bool floats = values[v].info.type == DataType::kFloat32;
  Node node = MakeNode(floats ? "ABS" : "QUANTIZE", {Input(from)});
  node.outputs = {v};
  nodes.insert(nodes.begin() + static_cast<ptrdiff_t>(at), std::move(node));
}

std::optional<Graph> Draft::Build() const {
  Graph graph;
  for (const Value& value : values) graph.AddValue(value);
  graph.inputs = inputs;
  graph.outputs = outputs;
  for (const Node& node : nodes) {
    const NodeId id = graph.AddNode(node);
    kernels::OpDescription op = graph.Describe(id);
    if (!kernels::Infer(op).ok()) return std::nullopt;
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      graph.value(node.outputs[i]).info = op.outputs[i];
    }
  }
  return Validate(graph).ok() ? std::optional(std::move(graph)) : std::nullopt;
}

Attempt Building(const Draft& draft,
                 const std::function<void(const std::string& what, const Graph&)>& visit) {
  return [&](const std::string& what, const Change& change) {
    Draft changed = draft;
    change(changed);
    if (const std::optional<Graph> graph = changed.Build()) visit(what, *graph);
  };
}

}  // namespace fuselite::fusion::testing
