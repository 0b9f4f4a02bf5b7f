// Which value's memory holds each value: reshapes, slices, splits and concatenations as addresses.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "fusion/graph/graph.h"
#include "fusion/rewrite.h"
#include "runtime/support/short_list.h"

namespace fuselite::fusion {

struct Storage {
  ValueId root = kNone;  // the value whose memory it is in: itself for most
  size_t offset = 0;     // bytes from the root's start
  int64_t pitch = 1;     // elements between rows, as TensorInfo::pitch()
};

class StoragePlan {
 public:
  // Every value in memory of its own, every node a step.
  explicit StoragePlan(const Graph& graph);

  const Storage& of(ValueId value) const { return storages_[value]; }
  // A node that moves nothing, its operands being where it would put them.
  bool silent(NodeId node) const { return silent_[node]; }
  void Silence(NodeId node) { silent_[node] = true; }

  // Puts `value`, with all that is in its memory, into `whole`, `offset` bytes from its start, with
  // rows `pitch` elements apart. False, and nothing changes, where `value` is bound from outside,
  // does not fill its own root, or has others inside that cannot follow.
  bool Place(ValueId value, ValueId whole, size_t offset, int64_t pitch);

  // Placements can be taken back until they are committed.
  void Undo();
  void Commit() { moves_.clear(); }
  // The values whose rows they moved apart or together.
  std::vector<ValueId> Repitched() const;

  // The bytes that a value spans in its root.
  size_t Span(ValueId value) const;

  // What a node's kernel is built from: Graph::Describe with the pitches of this plan.
  kernels::OpDescription Describe(NodeId id) const;

 private:
  // What was in the memory of one root, and now is in that of another, as it was before.
  struct Move {
    ValueId to = kNone;
    std::vector<std::pair<ValueId, Storage>> before;
  };
  bool CanMove(ValueId value, ValueId root, int64_t pitch) const;

  const Graph* graph_;
  std::vector<Storage> storages_;
  std::vector<ShortList<ValueId, 1>> inside_;  // of each root: the values in its memory
  std::vector<Move> moves_;                    // since the last Commit()
  std::vector<bool> silent_;
};

// Whether others may be placed elsewhere than in memory of their own: not what callers bind, nor
// constants.
bool IsInternal(const Value& value);

// Decides for the whole graph. A placement is kept only where every kernel concerned takes the
// pitched rows and is as good as before.
StoragePlan PlanStorage(const Graph& graph, RewriteContext& context);

// Lets steps whose kernels compute in place write over an input that nobody reads afterwards: less
// memory to go through. After PlanStorage.
void PlanInPlace(const Graph& graph, RewriteContext& context, StoragePlan& plan);

}  // namespace fuselite::fusion
