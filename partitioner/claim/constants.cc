#include "partitioner/claim/constants.h"

#include <algorithm>

#include "kernels/evaluation.h"
#include "runtime/tflite/arrays.h"

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

}  // namespace

ConstantMakers::ConstantMakers(tflite::TfLiteContext* context, std::span<const Verdict> verdicts) {
  const auto is_constant = [&](int tensor) {
    return tensor < 0 || makers_.contains(tensor) ||
           context->tensors[tensor].allocation_type == tflite::kTfLiteMmapRo;
  };
  for (const Verdict& verdict : verdicts) {
    // VAR_HANDLE and CALL_ONCE have no operator of their own, whatever inputs a file gives them.
    if (!verdict.claimed || verdict.node->op == nullptr || verdict.inputs.empty()) continue;
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

}  // namespace fuselite::partitioner
