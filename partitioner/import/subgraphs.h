// The other subgraphs of the host's model, as far as its interface shows them.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "runtime/support/status.h"
#include "runtime/tflite/abi.h"

namespace fuselite::partitioner {

// A subgraph whose nodes may be looked at while this object lives: inside a delegate's Prepare
// only. The one that is being prepared may be looked at, too.
class HostSubgraph {
 public:
  // kUnsupported where there is none of that index, of which the host tells nobody. Precondition:
  // HasSubgraphFunctions(context).
  static Result<HostSubgraph> Acquire(tflite::TfLiteContext* context, int index);
  HostSubgraph(HostSubgraph&& other) noexcept
      : owner_(std::exchange(other.owner_, nullptr)), index_(other.index_), graph_(other.graph_) {}
  HostSubgraph& operator=(HostSubgraph&&) = delete;
  ~HostSubgraph();

  // Its tensors stay where they are as long as the host's interpreter lives; its nodes are hidden
  // when this object goes.
  tflite::TfLiteContext* graph() const { return graph_; }

  // The nodes in running order, as the file has them: in the place of a delegate's kernel stand the
  // nodes that it took.
  Result<std::vector<int>> Plan() const;

  // What the nodes of the plan are.
  Result<std::vector<int>> BuiltinCodes() const;

  // The tensors that a caller with `count` arguments gives, in order. The interface does not tell
  // which tensors these are: a converter writes them first, and in order. kUnsupported where the
  // first `count` tensors are not exactly those that nodes only read, or where two of them could be
  // exchanged: they have one type and rank, and are not named by their places ("arg0", "arg1").
  Result<std::vector<int>> Inputs(int count) const;
  // The tensors that it gives, in the order of the tensors `results` of `caller`. The interface
  // does not tell their order: several are told apart by type and shape. kUnsupported where that
  // does not tell it.
  Result<std::vector<int>> Outputs(const tflite::TfLiteContext& caller,
                                   std::span<const int> results) const;

 private:
  HostSubgraph(tflite::TfLiteContext* owner, int index, tflite::TfLiteContext* graph)
      : owner_(owner), index_(index), graph_(graph) {}

  tflite::TfLiteContext* owner_;  // null: moved from
  int index_;
  tflite::TfLiteContext* graph_;
};

}  // namespace fuselite::partitioner
