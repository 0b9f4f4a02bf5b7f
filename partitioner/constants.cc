#include "partitioner/constants.h"

#include <algorithm>

#include "fusion/cost.h"
#include "fusion/evaluate.h"
#include "kernels/evaluation.h"
#include "runtime/tflite_arrays.h"

namespace fuselite::partitioner {
namespace {

// What is read from outside when every node is in a partition: the graph's outputs, and more where
// the host would not make one partition of all.
std::set<int> GraphOutputs(tflite::TfLiteContext* context, std::span<const Verdict> verdicts) {
  std::vector<int> all;
  for (const Verdict& verdict : verdicts) all.push_back(verdict.host_node);
  const tflite::IntArrayPtr nodes = tflite::MakeIntArray(all);
  tflite::TfLiteDelegateParams* params = nullptr;
  int count = 0;
  std::set<int> outputs;
  if (nodes == nullptr || context->PreviewDelegatePartitioning(context, nodes.get(), &params,
                                                               &count) != tflite::kTfLiteOk) {
    for (const Verdict& verdict : verdicts) {
      outputs.insert(verdict.outputs.begin(), verdict.outputs.end());
    }
    return outputs;
  }
  for (int i = 0; i < count; ++i) {
    for (int tensor : tflite::Elements(params[i].output_tensors)) outputs.insert(tensor);
  }
  return outputs;
}

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

ConstantMakers::ConstantMakers(tflite::TfLiteContext* context, std::span<const Verdict> verdicts) {
  const auto is_constant = [&](int tensor) {
    return tensor < 0 || makers_.contains(tensor) ||
           context->tensors[tensor].allocation_type == tflite::kTfLiteMmapRo;
  };
  for (const Verdict& verdict : verdicts) {
    // What has no operator of its own, a variable's handle, has no inputs either.
    if (!verdict.claimed || verdict.inputs.empty()) continue;
    if (!kernels::GivesConstants(*verdict.node->op)) continue;
    if (!std::ranges::all_of(verdict.inputs, is_constant)) continue;
    for (int tensor : verdict.outputs) makers_[tensor] = verdict.node;
  }
  if (!makers_.empty()) graph_outputs_ = GraphOutputs(context, verdicts);
}

int ConstantMakers::LeaveToHostsReaders(std::vector<Verdict>& verdicts) const {
  std::map<int, const Verdict*> host_reader;
  int withdrawn = 0;
  for (auto verdict = verdicts.rbegin(); verdict != verdicts.rend(); ++verdict) {
    const auto reader = std::ranges::find_if(verdict->outputs, [&](int tensor) {
      return makers_.contains(tensor) && host_reader.contains(tensor);
    });
    if (verdict->claimed && reader != verdict->outputs.end()) {
      const Verdict& by = *host_reader.at(*reader);
      verdict->claimed = false;
      verdict->reason = "node " + std::to_string(by.host_node) + " " + by.op +
                        ", which is left to the host, may need its result as a constant";
      ++withdrawn;
    }
    // A node that the host's kernel runs reads as the host's own nodes do.
    if (verdict->claimed && verdict->node->host_call == nullptr) continue;
    for (int tensor : verdict->inputs) host_reader.emplace(tensor, &*verdict);
  }
  return withdrawn;
}

void ConstantMakers::Collect(int tensor, std::set<int>& known,
                             std::vector<SharedNode>& makers) const {
  const auto maker = makers_.find(tensor);
  if (maker == makers_.end() || known.contains(tensor)) return;
  known.insert(maker->second->outputs.begin(), maker->second->outputs.end());
  for (int input : maker->second->inputs) Collect(input, known, makers);
  makers.push_back(maker->second);
}

void ConstantMakers::Follow(Partition& partition) const {
  if (makers_.empty()) return;
  std::set<int> known;
  for (const SharedNode& node : partition.nodes) {
    known.insert(node->outputs.begin(), node->outputs.end());
  }
  std::vector<SharedNode> followed;
  for (int tensor : partition.inputs) Collect(tensor, known, followed);
  std::erase_if(partition.inputs, [&](int tensor) { return known.contains(tensor); });
  partition.followed = static_cast<int>(followed.size());
  partition.nodes.insert(partition.nodes.begin(), followed.begin(), followed.end());
  std::erase_if(partition.outputs, [&](int tensor) {
    return makers_.contains(tensor) && !graph_outputs_.contains(tensor);
  });
}

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

}  // namespace fuselite::partitioner
