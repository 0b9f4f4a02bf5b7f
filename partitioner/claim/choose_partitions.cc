#include "partitioner/claim/choose_partitions.h"

#include <algorithm>
#include <limits>
#include <map>

#include "partitioner/claim/list_writes.h"
#include "runtime/tflite/arrays.h"

namespace fuselite::partitioner {
namespace {

using namespace tflite;

// What a partition costs and saves, roughly, in nanoseconds on a current core: LiteRT's kernels
// need about 0.3 us of calls and checks for a node and 0.1 ns for a multiply-add, ours a fifth of
// the latter; entering and leaving a partition costs about 1.5 us.
constexpr double kPartitionNs = 1500;
constexpr double kHostNodeNs = 300;
constexpr double kSavedNsPerUnit = 0.08;

std::string Nodes(int count) { return std::to_string(count) + (count == 1 ? " node" : " nodes"); }

struct Candidate {
  HostPartition host;
  double cost = 0;
};

class Chooser {
 public:
  Chooser(TfLiteContext* context, const Options& options, const TensorTable& table,
          const GraphFacts& facts, std::vector<Verdict>& verdicts)
      : context_(context),
        options_(options),
        table_(table),
        makers_(*facts.makers),
        variables_(*facts.variables),
        verdicts_(verdicts) {
    for (Verdict& verdict : verdicts_) of_node_[verdict.host_node] = &verdict;
  }

  Result<std::vector<JudgedPartition>> Choose() {
    while (true) {
      Withdraw();
      FUSELITE_ASSIGN_OR_RETURN(std::vector<Candidate> candidates, Preview());
      DropWorthless(candidates);
      DropBeyondLimit(candidates);
      if (Withdraw() > 0) continue;
      const auto fails = [&](const Candidate& candidate) { return !Builds(candidate); };
      // A node that was given back may split its partition: look again.
      if (std::ranges::count_if(candidates, fails) > 0) continue;
      std::vector<JudgedPartition> choices;
      for (const Candidate& candidate : candidates) {
        choices.push_back(std::move(built_.at(candidate.host.nodes)));
      }
      return choices;
    }
  }

 private:
  // Gives back what the delegate cannot take while other nodes are the host's; how many.
  int Withdraw() {
    return variables_.WithdrawUnlessWhole(verdicts_) + makers_.LeaveToHostsReaders(verdicts_);
  }

  // How the host would join the claimed nodes.
  Result<std::vector<Candidate>> Preview() {
    std::vector<int> claimed;
    for (const Verdict& verdict : verdicts_) {
      if (verdict.claimed) claimed.push_back(verdict.host_node);
    }
    std::vector<Candidate> candidates;
    if (claimed.empty()) return candidates;
    const IntArrayPtr nodes = MakeIntArray(claimed);
    TfLiteDelegateParams* params = nullptr;
    int count = 0;
    if (nodes == nullptr) return OutOfMemory("no memory for a list of nodes");
    if (context_->PreviewDelegatePartitioning(context_, nodes.get(), &params, &count) !=
        kTfLiteOk) {
      return Internal("the host does not preview partitions");
    }
    for (int i = 0; i < count; ++i) {
      Candidate candidate{HostPartition::Of(params[i])};
      for (int node : candidate.host.nodes) candidate.cost += of_node_.at(node)->cost;
      candidates.push_back(std::move(candidate));
    }
    return candidates;
  }

  void GiveBack(const std::vector<int>& nodes, const std::string& reason) {
    for (int node : nodes) {
      of_node_.at(node)->claimed = false;
      of_node_.at(node)->reason = reason;
    }
  }

  bool IsWholeGraph(const Candidate& candidate) const {
    return candidate.host.nodes.size() == verdicts_.size();
  }

  // One such partition less, and all variables would go back to the host.
  bool HoldsVariables(const Candidate& candidate) const {
    return std::ranges::any_of(candidate.host.nodes,
                               [&](int node) { return variables_.Concerns(node); });
  }

  // The host cannot run one of its nodes.
  bool IsNeeded(const Candidate& candidate) const {
    return std::ranges::any_of(candidate.host.nodes,
                               [&](int node) { return of_node_.at(node)->host_lacks; });
  }

  void DropWorthless(std::vector<Candidate>& candidates) {
    std::erase_if(candidates, [&](const Candidate& candidate) {
      if (IsWholeGraph(candidate) || HoldsVariables(candidate) || IsNeeded(candidate)) return false;
      const auto count = static_cast<int>(candidate.host.nodes.size());
      if (count < options_.min_nodes_per_partition) {
        GiveBack(candidate.host.nodes, "its partition has " + Nodes(count) +
                                           ", fewer than min_nodes_per_partition (" +
                                           std::to_string(options_.min_nodes_per_partition) + ")");
        return true;
      }
      if (count * kHostNodeNs + candidate.cost * kSavedNsPerUnit > kPartitionNs) return false;
      GiveBack(candidate.host.nodes, "its partition (" + Nodes(count) +
                                         ") has too little work to repay entering the delegate");
      return true;
    });
  }

  void DropBeyondLimit(std::vector<Candidate>& candidates) {
    const auto limit = static_cast<size_t>(options_.max_partitions);
    if (limit == 0 || candidates.size() <= limit) return;
    std::vector<double> costs;
    const auto worth = [&](const Candidate& candidate) {
      return IsNeeded(candidate) ? std::numeric_limits<double>::infinity() : candidate.cost;
    };
    for (const Candidate& candidate : candidates) costs.push_back(worth(candidate));
    std::ranges::sort(costs, std::greater());
    const double smallest = costs[limit - 1];
    size_t equal = limit - std::ranges::count_if(costs, [&](double c) { return c > smallest; });
    std::erase_if(candidates, [&](const Candidate& candidate) {
      if (candidate.cost > smallest || IsNeeded(candidate)) return false;
      if (candidate.cost == smallest && equal > 0) {
        --equal;
        return false;
      }
      GiveBack(candidate.host.nodes,
               "max_partitions is " + std::to_string(limit) + ", and its partition is smaller");
      return true;
    });
  }

  // Builds the partition as its kernel will, from its own inputs alone, unless that is done. Takes
  // back the claim of the node that fails.
  bool Builds(const Candidate& candidate) {
    if (built_.contains(candidate.host.nodes)) return true;
    JudgedPartition judged{.host = candidate.host, .cost = candidate.cost};
    Partition& partition = judged.partition;
    partition.inputs = candidate.host.inputs;
    partition.outputs = candidate.host.outputs;
    partition.nodes.reserve(candidate.host.nodes.size());
    for (int node : candidate.host.nodes) partition.nodes.push_back(of_node_.at(node)->node);
    makers_.Follow(partition);
    TakeListWrites(*context_, partition);
    const auto possible = [&](int node) { return of_node_.at(node)->possible; };
    // Nothing can be said of shapes that are not there yet.
    if (std::ranges::none_of(candidate.host.nodes, possible)) {
      int failed = -1;
      Result<BuiltGraph> built = Build(judged, &failed);
      if (!built.ok()) {
        GiveBack({partition.nodes[failed]->host_node}, built.status().message());
        return false;
      }
      judged.built = *std::move(built);
    }
    built_.emplace(candidate.host.nodes, std::move(judged));
    return true;
  }

  // The graph, and what it depends on.
  Result<BuiltGraph> Build(JudgedPartition& judged, int* failed) {
    TensorTable inside = table_.Another();
    for (const auto& [tensor, info] : variables_.handles()) inside.SetVariable(tensor, info);
    for (int tensor : judged.partition.inputs) {
      InputKey& key = judged.key.emplace_back(KeyOf(context_->tensors[tensor]));
      if (inside.IsVariable(tensor)) continue;
      Result<TensorInfo> info = table_.Get(tensor);
      if (!info.ok()) continue;
      // What was computed outside arrives as a value of the run.
      if (context_->tensors[tensor].allocation_type != kTfLiteMmapRo) info->data = nullptr;
      key.type = info->type;
      key.shape = info->shape;
      inside.Set(tensor, *std::move(info), table_.StorageOf(tensor));
    }
    return BuildGraph(judged.partition, 0, context_, inside, failed);
  }

  TfLiteContext* context_;
  const Options& options_;
  const TensorTable& table_;
  const ConstantMakers& makers_;
  const GraphVariables& variables_;
  std::vector<Verdict>& verdicts_;
  std::map<int, Verdict*> of_node_;
  std::map<std::vector<int>, JudgedPartition> built_;  // by their nodes
};

}  // namespace

HostPartition HostPartition::Of(const TfLiteDelegateParams& params) {
  const auto copy = [](const TfLiteIntArray* from) {
    const std::span<const int> elements = Elements(from);
    return std::vector<int>(elements.begin(), elements.end());
  };
  HostPartition host{copy(params.nodes_to_replace), copy(params.input_tensors),
                     copy(params.output_tensors)};
  std::erase_if(host.inputs, [](int tensor) { return tensor < 0; });
  return host;
}

Result<std::vector<JudgedPartition>> ChoosePartitions(TfLiteContext* context,
                                                      const Options& options,
                                                      const TensorTable& table,
                                                      const GraphFacts& facts,
                                                      std::vector<Verdict>& verdicts) {
  auto choices = Chooser(context, options, table, facts, verdicts).Choose();
  for (Verdict& verdict : verdicts) verdict.node.reset();
  return choices;
}

}  // namespace fuselite::partitioner
