#include "partitioner/run/constant_outputs.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "fusion/graph/cost.h"
#include "fusion/graph/evaluate.h"
#include "kernels/evaluation.h"
#include "partitioner/import/host_memory.h"

namespace fuselite::partitioner {
namespace {

// The live nodes whose inputs are all constant, or made by such nodes, or read for their shapes.
std::vector<bool> FindConstantNodes(const fusion::Graph& graph) {
  std::vector<bool> constant_value(graph.value_count());
  for (int v = 0; v < graph.value_count(); ++v) {
    constant_value[v] = graph.value(v).info.constant();
  }
  std::vector<bool> constant_node(graph.node_slots());
  for (fusion::NodeId id : graph.order()) {
    const fusion::Node& node = graph.node(id);
    constant_node[id] =
        kernels::GivesConstants(*node.op) &&
        std::ranges::all_of(node.inputs, [&](fusion::ValueId v) {
          return v == fusion::kNone || constant_value[v] || kernels::ReadsShapesOnly(*node.op);
        });
    for (fusion::ValueId v : node.outputs) {
      constant_node[id] = constant_node[id] && !graph.value(v).variable;
    }
    for (fusion::ValueId v : node.outputs) constant_value[v] = constant_node[id];
  }
  return constant_node;
}

// Keeps the nodes among them that outputs of the graph depend on.
std::vector<bool> KeepNeeded(const fusion::Graph& graph, std::vector<bool> constant) {
  std::set<fusion::ValueId> needed(graph.outputs.begin(), graph.outputs.end());
  const std::vector<fusion::NodeId> order = graph.order();
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    const fusion::Node& node = graph.node(*id);
    constant[*id] = constant[*id] && std::ranges::any_of(node.outputs, [&](fusion::ValueId v) {
                      return needed.contains(v);
                    });
    if (constant[*id] && !kernels::ReadsShapesOnly(*node.op))
      needed.insert(node.inputs.begin(), node.inputs.end());
  }
  return constant;
}

// What the nodes give exists from here on, all of it.
Status CheckBudget(const fusion::Graph& graph, const std::vector<bool>& nodes,
                   const Budget& budget) {
  double multiply_adds = 0;
  std::vector<TensorInfo> made;
  for (fusion::NodeId id : graph.order()) {
    if (!nodes[id]) continue;
    multiply_adds += fusion::NodeCost(graph, id);
    for (fusion::ValueId v : graph.node(id).outputs) made.push_back(graph.value(v).info);
  }
  FUSELITE_RETURN_IF_ERROR(budget.CheckMultiplyAdds(multiply_adds));
  return budget.CheckMemory(made);
}

// Computes the nodes, which become constants.
Status Evaluate(fusion::Graph& graph, const std::vector<bool>& nodes) {
  const std::vector<fusion::NodeId> order = graph.order();
  for (fusion::NodeId id : order) {
    if (!nodes[id]) continue;
    auto values = fusion::Evaluate(graph, id);
    const fusion::Node node = graph.node(id);
    if (!values.ok()) return values.status().In(node.op->name);
    graph.Remove(id);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      graph.value(node.outputs[i]) = std::move((*values)[i]);
    }
  }
  return Status();
}

}  // namespace

using namespace tflite;

Result<std::vector<ConstantOutput>> TakeConstantOutputs(BuiltGraph& built, const Budget& budget) {
  fusion::Graph& graph = built.graph;
  const std::vector<bool> nodes = KeepNeeded(graph, FindConstantNodes(graph));
  FUSELITE_RETURN_IF_ERROR(CheckBudget(graph, nodes, budget));
  FUSELITE_RETURN_IF_ERROR(Evaluate(graph, nodes));
  std::vector<ConstantOutput> constants;
  for (size_t i = 0; i < graph.outputs.size();) {
    const fusion::Value& value = graph.value(graph.outputs[i]);
    if (!value.info.constant()) {
      ++i;
      continue;
    }
    constants.push_back({built.outputs[i].tensor, value});
    graph.value(graph.outputs[i]).observed = false;
    graph.outputs.erase(graph.outputs.begin() + static_cast<int>(i));
    built.outputs.erase(built.outputs.begin() + static_cast<int>(i));
  }
  return constants;
}

Status CopyTo(TfLiteTensor& tensor, const ConstantOutput& constant) {
  const size_t bytes = constant.value.info.bytes();
  if (bytes == 0) return Status();
  if (tensor.data.data == nullptr || tensor.bytes < bytes) {
    return Internal("the host gives output tensor ", constant.tensor, " no memory");
  }
  std::memcpy(tensor.data.data, constant.value.info.data, bytes);
  return Status();
}

bool IsMemoryOfTheUser(const TfLiteTensor& tensor) {
  return tensor.allocation_type == kTfLiteCustom;
}

Status Publish(TfLiteContext* context, const ConstantOutput& constant) {
  TfLiteTensor& tensor = context->tensors[constant.tensor];
  if (IsMemoryOfTheUser(tensor)) return Resize(context, constant.tensor, constant.value.info.shape);
  if (tensor.allocation_type != kTfLitePersistentRo) {
    // Dynamic memory is the tensor's own already.
    if (tensor.allocation_type != kTfLiteDynamic) tensor.data.data = nullptr;
    tensor.allocation_type = kTfLitePersistentRo;
  }
  FUSELITE_RETURN_IF_ERROR(Resize(context, constant.tensor, constant.value.info.shape));
  return CopyTo(tensor, constant);
}

}  // namespace fuselite::partitioner
