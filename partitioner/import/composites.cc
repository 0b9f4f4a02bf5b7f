#include "partitioner/import/composites.h"

#include <algorithm>
#include <string>

#include "kernels/composite.h"
#include "partitioner/import/subgraphs.h"
#include "runtime/tflite/arrays.h"
#include "runtime/tflite/params.h"

namespace fuselite::partitioner {

using namespace tflite;

const kernels::OperatorDef& DecomposedOperator() {
  static const kernels::OperatorDef kDef = {
      .name = "STABLEHLO_COMPOSITE",
      .builtin_code = kTfLiteBuiltinStablehloComposite,
      .min_inputs = 0,
      .max_inputs = -1,
      .max_outputs = -1,
      .infer = [](kernels::OpDescription&) { return Unsupported("has no kernel of its own"); },
  };
  return kDef;
}

Result<std::shared_ptr<const InlinedBody>> ReadBody(TfLiteContext* context, const BodyEnds& ends,
                                                    int subgraph, bool whole_structs, int host_node,
                                                    Nesting& nesting) {
  if (!whole_structs) return Unsupported("the host does not show its subgraphs");
  FUSELITE_ASSIGN_OR_RETURN(const HostSubgraph callee, HostSubgraph::Acquire(context, subgraph));
  NestingLevel level(nesting);
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int> plan, callee.Plan());
  FUSELITE_RETURN_IF_ERROR(level.Admit(context, callee.graph(), plan.size()));
  auto body = std::make_shared<InlinedBody>();
  body->graph = callee.graph();
  FUSELITE_ASSIGN_OR_RETURN(body->nodes.inputs, callee.Inputs(ends.inputs));
  FUSELITE_ASSIGN_OR_RETURN(body->nodes.outputs, callee.Outputs(*context, ends.outputs));
  for (int index : plan) {
    Result<ImportedNode> inner = ImportNode(callee.graph(), index, whole_structs, &nesting);
    if (!inner.ok()) {
      return inner.status().In(internal::Join("node ", index, " of subgraph ", subgraph));
    }
    // The host forgets such a state behind each call, and keeps it in a tensor of the callee's.
    const auto is_state = [&](int tensor) {
      return tensor >= 0 && callee.graph()->tensors[tensor].is_variable;
    };
    if (inner->op != nullptr &&
        (!inner->op->state_inputs.empty() || std::ranges::any_of(inner->inputs, is_state))) {
      return Unsupported("node ", index, " (", inner->op->name, ") of subgraph ", subgraph,
                         " keeps a state");
    }
    inner->host_node = host_node;
    body->nodes.nodes.push_back(std::make_shared<const ImportedNode>(*std::move(inner)));
  }
  return std::shared_ptr<const InlinedBody>(std::move(body));
}

Status ImportComposite(TfLiteContext* context, const TfLiteNode& node, bool whole_structs,
                       Nesting& nesting, ImportedNode& imported) {
  const auto* params = static_cast<const TfLiteStablehloCompositeParams*>(node.builtin_data);
  if (params == nullptr || params->name == nullptr) return InvalidArgument("has no options");
  imported.op = &DecomposedOperator();
  const kernels::NamedComposite* const known = kernels::FindComposite(params->name);
  if (known != nullptr && node.inputs->size <= known->max_inputs) {
    const std::span attributes(reinterpret_cast<const std::byte*>(params->attributes),
                               params->attributes_size);
    if (known->read_attributes(attributes, imported.params.data()).ok()) imported.op = known->op;
  }
  const BodyEnds ends{node.inputs->size, Elements(node.outputs)};
  Result<std::shared_ptr<const InlinedBody>> body =
      ReadBody(context, ends, params->subgraph_index, whole_structs, imported.host_node, nesting);
  if (body.ok()) {
    imported.body = *std::move(body);
  } else if (imported.op == &DecomposedOperator()) {
    return body.status().In(params->name);
  }
  return Status();
}

Result<BuiltGraph> BuildBody(const ImportedNode& node, TensorTable& table) {
  const InlinedBody& body = *node.body;
  TensorTable inside(body.graph);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] < 0) return Unsupported("has an input left out");
    FUSELITE_ASSIGN_OR_RETURN(TensorInfo info, table.Get(node.inputs[i]));
    inside.Set(body.nodes.inputs[i], std::move(info), table.StorageOf(node.inputs[i]));
  }
  int failed = -1;
  Result<BuiltGraph> built = BuildGraph(body.nodes, 0, body.graph, inside, &failed);
  if (!built.ok()) return built.status().In(std::string(body.nodes.nodes[failed]->op->name));
  if (built->end < static_cast<int>(body.nodes.nodes.size())) {
    return Unsupported("shapes in its subgraph depend on values");
  }
  if (built->outputs.size() != node.outputs.size()) return Internal("a decomposition lost outputs");
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    FUSELITE_ASSIGN_OR_RETURN(TensorInfo info, inside.Get(body.nodes.outputs[i]));
    const Result<TensorInfo> declared = table.Get(node.outputs[i]);
    if (declared.ok() && declared->type != info.type) {
      return InvalidArgument("output ", i, " is declared as ", DataTypeName(declared->type),
                             ", but is ", DataTypeName(info.type));
    }
    info.data = nullptr;  // what was computed inside goes with its table
    table.Set(node.outputs[i], std::move(info));
  }
  return built;
}

}  // namespace fuselite::partitioner
