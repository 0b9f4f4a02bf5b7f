// Nodes of a graph that compute the same rows and could do so one strip of rows after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "fusion/graph/graph.h"
#include "fusion/plan/storage.h"
#include "fusion/strip_limits.h"

namespace fuselite::fusion {

class RunOfRows {
 public:
  // For `threads` threads; values lie as `plan` has them. All references outlive the run.
  RunOfRows(const Graph& graph, const StoragePlan& plan, const StripLimits& limits, int threads,
            int64_t rows)
      : graph_(graph), plan_(plan), limits_(limits), threads_(threads), rows_(rows) {}

  // Adds a node, which the order has behind those that were added before. False, and nothing
  // changes, where it does not compute row by row with them, could not run where the first of them
  // does, might give other bits for other numbers of rows, or is beyond the limits.
  bool Add(NodeId id);
  // Leaves out again what reshapes for others alone, and moves nothing where it is.
  void DropUnreadReshapes();

  int64_t rows() const { return rows_; }
  // The bytes from one row of an operand to the next.
  size_t RowBytes(ValueId v) const;
  const std::vector<NodeId>& nodes() const { return nodes_; }
  // What the nodes read of others, constants aside: whether row by row, or whole.
  const std::map<ValueId, bool>& inputs() const { return inputs_; }
  // What others read of the nodes.
  std::vector<ValueId> Outputs() const;
  // Whether two of the inputs and outputs begin at the same place in memory.
  bool HasOverlaps() const;

  struct Cut {
    int32_t rows = 0, count = 0;  // of a strip; strips
  };
  // The strips that the threads should take, those of the first element before those of the second;
  // empty where the nodes are not worth computing in strips.
  std::vector<Cut> Cuts() const;

 private:
  bool CanBeCut(ValueId v) const;
  bool IsReadInside(ValueId v) const;
  int64_t BytesOf(const Node& node, const std::vector<bool>& by_rows) const;
  bool TakesInputs(const Node& node, const std::vector<bool>& by_rows);

  const Graph& graph_;
  const StoragePlan& plan_;
  const StripLimits& limits_;
  const int threads_;
  const int64_t rows_;
  std::vector<NodeId> nodes_;
  std::set<NodeId> members_;  // the same
  std::set<ValueId> made_;
  std::map<ValueId, bool> inputs_;
  std::set<ValueId> weights_;
  size_t weight_bytes_ = 0;
  int steps_ = 0;      // nodes that compute something
  int64_t bytes_ = 0;  // that the nodes read and write of rows
};

}  // namespace fuselite::fusion
