// Constants that nodes make of constants alone: DEQUANTIZE of float16 weights, SPLIT of a bias.
#pragma once

#include <map>
#include <set>
#include <span>
#include <vector>

#include "partitioner/claim/verdict.h"
#include "partitioner/import/build_graph.h"
#include "partitioner/import/import.h"

namespace fuselite::partitioner {

// The nodes of a graph that make constants, and what is seen of their results. A partition that
// reads such a result makes it for itself, wherever the host has put the node: then it is a
// constant there, which packs and folds, and not a value of the run.
class ConstantMakers {
 public:
  ConstantMakers() = default;
  // `verdicts` in running order, as Judge() left them. Looks at the graph through `context`: inside
  // the delegate's Prepare only.
  ConstantMakers(tflite::TfLiteContext* context, std::span<const Verdict> verdicts);

  // Withdraws the claims on makers whose results a node left to the host reads: that node's own
  // computation (another delegate's, even) may need them as constants. Returns how many.
  int LeaveToHostsReaders(std::vector<Verdict>& verdicts) const;

  // Puts the makers of what the partition reads before its nodes, and takes back its outputs that
  // all readers make for themselves. Precondition: LeaveToHostsReaders() withdrew what it does.
  void Follow(Partition& partition) const;

 private:
  void Collect(int tensor, std::set<int>& known, std::vector<SharedNode>& makers) const;

  std::map<int, SharedNode> makers_;  // by the tensor that is made
  std::set<int> graph_outputs_;
};

}  // namespace fuselite::partitioner
