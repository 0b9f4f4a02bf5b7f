#include "interpreter/partition.h"

#include <algorithm>

namespace fuselite::interpreter {
namespace {

// Where a tensor comes from: a subset, no node at all, or a node that has not run yet.
constexpr int kGiven = -1;
constexpr int kPending = -2;

class Partitioner {
 public:
  Partitioner(std::span<const PlanNode> plan, int tensor_count)
      : plan_(plan), origin_(static_cast<size_t>(tensor_count), kGiven), done_(plan.size(), false) {
    for (const PlanNode& node : plan) {
      for (int output : node.outputs) {
        if (output >= 0) origin_[output] = kPending;
      }
    }
  }

  std::vector<NodeSubset> Run(bool cluster) {
    size_t left = plan_.size();
    while (left > 0) {
      const size_t taken = FillSubset(cluster);
      if (taken == 0) break;  // a plan out of order: its rest cannot run
      left -= taken;
    }
    return std::move(subsets_);
  }

  int origin(int tensor) const { return origin_[tensor]; }

 private:
  // One pass is enough: a node that becomes ready stands behind the one that made it so.
  size_t FillSubset(bool cluster) {
    const int subset = static_cast<int>(subsets_.size());
    subsets_.emplace_back();
    size_t taken = 0;
    bool side_effect_waits = false;
    for (size_t i = 0; i < plan_.size(); ++i) {
      if (done_[i]) continue;
      const PlanNode& node = plan_[i];
      const bool ready = Ready(node) && !(node.side_effect && side_effect_waits);
      if (ready && (taken == 0 || node.claimed == subsets_[subset].claimed)) {
        Take(node, subset);
        done_[i] = true;
        ++taken;
        continue;
      }
      side_effect_waits |= node.side_effect;
      if (!cluster && taken > 0) break;
    }
    return taken;
  }

  bool Ready(const PlanNode& node) const {
    return std::ranges::none_of(
        node.inputs, [&](int input) { return input >= 0 && origin_[input] == kPending; });
  }

  void Take(const PlanNode& node, int index) {
    NodeSubset& subset = subsets_[index];
    subset.claimed = node.claimed;
    subset.nodes.push_back(node.node);
    for (int output : node.outputs) {
      if (output >= 0) origin_[output] = index;
    }
    for (int input : node.inputs) {
      if (input < 0 || origin_[input] == index) continue;
      subset.inputs.push_back(input);
      if (origin_[input] >= 0) subsets_[origin_[input]].outputs.push_back(input);
    }
  }

  std::span<const PlanNode> plan_;
  std::vector<int> origin_;
  std::vector<bool> done_;
  std::vector<NodeSubset> subsets_;
};

void SortUnique(std::vector<int>& values) {
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

std::vector<NodeSubset> PartitionPlan(std::span<const PlanNode> plan, int tensor_count,
                                      std::span<const int> graph_outputs, bool cluster) {
  Partitioner partitioner(plan, tensor_count);
  std::vector<NodeSubset> subsets = partitioner.Run(cluster);
  for (int output : graph_outputs) {
    const int origin = partitioner.origin(output);
    if (origin >= 0) subsets[origin].outputs.push_back(output);
  }
  for (NodeSubset& subset : subsets) {
    SortUnique(subset.inputs);
    SortUnique(subset.outputs);
  }
  return subsets;
}

}  // namespace fuselite::interpreter
