#include "interpreter/partition.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace fuselite::interpreter {
namespace {

// Where a tensor comes from: a subset, or no node at all; nodes that have not run yet count as the
// latter.
constexpr int kGiven = -1;

// Takes nodes as soon as what they wait for has run: the nodes that write their inputs and, for one
// with side effects, the last one before it.
class Partitioner {
 public:
  Partitioner(std::span<const PlanNode> plan, int tensor_count)
      : plan_(plan),
        origin_(static_cast<size_t>(tensor_count), kGiven),
        waiting_(plan.size()),
        waits_for_(plan.size(), 0) {
    FindWaiting();
    for (size_t i = 0; i < plan_.size(); ++i) {
      if (waits_for_[i] == 0) ready_[plan_[i].claimed].push(static_cast<int>(i));
    }
  }

  // A plan out of order leaves nodes that never become ready.
  std::vector<NodeSubset> Run(bool cluster) {
    while (!ready_[0].empty() || !ready_[1].empty()) {
      const bool claimed = First(true) < First(false);
      subsets_.emplace_back().claimed = claimed;
      // Without clustering, the next one of this kind has to come before those of the other.
      while (!ready_[claimed].empty() && (cluster || First(claimed) < First(!claimed))) {
        const int node = First(claimed);
        ready_[claimed].pop();
        Take(node);
      }
    }
    return std::move(subsets_);
  }

  int origin(int tensor) const { return origin_[tensor]; }

 private:
  // Indices in the plan, the first one on top.
  using Queue = std::priority_queue<int, std::vector<int>, std::greater<>>;

  void FindWaiting() {
    std::vector<int> writer(origin_.size(), -1);
    for (size_t i = 0; i < plan_.size(); ++i) {
      for (int output : plan_[i].outputs) {
        writer[output] = static_cast<int>(i);
      }
    }
    int last_side_effect = -1;
    for (size_t i = 0; i < plan_.size(); ++i) {
      const auto wait = [&](int node) {
        if (node < 0) return;
        waiting_[node].push_back(static_cast<int>(i));
        ++waits_for_[i];
      };
      for (int input : plan_[i].inputs) {
        if (input >= 0) wait(writer[input]);
      }
      if (!plan_[i].side_effect) continue;
      wait(last_side_effect);
      last_side_effect = static_cast<int>(i);
    }
  }

  int First(bool claimed) const {
    return ready_[claimed].empty() ? static_cast<int>(plan_.size()) : ready_[claimed].top();
  }

  void Take(int index) {
    const PlanNode& node = plan_[index];
    const int this_subset = static_cast<int>(subsets_.size()) - 1;
    NodeSubset& subset = subsets_.back();
    subset.nodes.push_back(node.node);
    for (int output : node.outputs) origin_[output] = this_subset;
    for (int input : node.inputs) {
      if (input < 0 || origin_[input] == this_subset) continue;
      subset.inputs.push_back(input);
      if (origin_[input] >= 0) subsets_[origin_[input]].outputs.push_back(input);
    }
    for (int next : waiting_[index]) {
      if (--waits_for_[next] == 0) ready_[plan_[next].claimed].push(next);
    }
  }

  std::span<const PlanNode> plan_;
  std::vector<int> origin_;                // of each tensor
  std::vector<std::vector<int>> waiting_;  // for each node of the plan, by their place in it
  std::vector<int> waits_for_;             // how many, of each node
  Queue ready_[2];                         // not claimed, claimed
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
