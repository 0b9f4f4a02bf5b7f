// The partition as a graph: values and the nodes that make them, in an order that can run.
//
// Rewrites (fusion/rewrites/) change it, fusion/plan/ lowers it. Values and nodes are named by
// index; a removed one leaves a dead slot, so indices stay valid during a rewrite.
//
// The graph knows who makes and who reads each value, and which of two nodes runs first. A change
// of a node takes time in proportion to its operands.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fusion/graph/consumers.h"
#include "kernels/operator.h"
#include "runtime/memory/aligned_buffer.h"
#include "runtime/memory/pages.h"
#include "runtime/support/status.h"
#include "runtime/tensor.h"

namespace fuselite::fusion {

using ValueId = int;
using NodeId = int;
inline constexpr int kNone = -1;

// For a constant that a rewrite makes; data() is null where there is no memory. Large ones have
// pages: they go when the step is built that packs them, while the packed ones take memory.
AlignedBuffer MemoryOfConstant(size_t bytes);

struct Value {
  TensorInfo info;   // info.data set: a constant
  std::string name;  // of the host's tensor, for messages and explain
  int host_tensor = kNone;
  // Somebody outside looks at it: an output of the partition, a tensor that the host preserves.
  // A barrier for rewrites: it must be computed and stored.
  bool observed = false;
  bool input = false;     // bound by the caller at each run
  bool variable = false;  // the host's state, read and written in node order
  // Owns the bytes of a constant that a rewrite made.
  std::shared_ptr<const void> storage;

  // A constant whose bytes are the host's.
  bool host_constant() const { return info.constant() && storage == nullptr; }
};

struct Node {
  const kernels::OperatorDef* op = nullptr;  // null: dead
  kernels::Params params;
  int version = 1;
  std::vector<ValueId> inputs;  // kNone where an optional operand is absent; tail operands last
  std::vector<ValueId> outputs;
  kernels::Tail tail;
  std::vector<Quantization> intermediates{};  // as OpDescription's
  int tail_inputs = 0;                        // how many of `inputs` are operands of the tail
  std::vector<int> host_nodes;  // what it stands for: the host's node indices, in order
  // The host's operator where `op` computes it under another name: READ_VARIABLE, a RESHAPE here.
  std::string_view host_op{};

  // The operator's name as people know it. Precondition: the node is alive.
  std::string_view name() const { return host_op.empty() ? op->name : host_op; }
};

class Graph {
 public:
  // Makes room, so that adding so many copies nothing.
  void Reserve(size_t values, size_t nodes);
  ValueId AddValue(Value value);
  // Appends at the end. Precondition: inputs exist; outputs have no producer yet.
  NodeId AddNode(Node node);
  // A constant of the graph's own. Throws std::bad_alloc.
  ValueId AddConstant(TensorInfo info, std::span<const std::byte> bytes, std::string name);

  std::vector<ValueId> inputs;   // of the partition, in the order in which the caller binds them
  std::vector<ValueId> outputs;  // likewise

  Value& value(ValueId id) { return values_[id]; }
  const Value& value(ValueId id) const { return values_[id]; }
  const Node& node(NodeId id) const { return nodes_[id]; }
  bool alive(NodeId id) const { return nodes_[id].op != nullptr; }
  int value_count() const { return static_cast<int>(values_.size()); }
  int node_slots() const { return static_cast<int>(nodes_.size()); }

  // Live nodes in running order: a list of its own, so that the graph may change while it is
  // walked.
  std::vector<NodeId> order() const;
  // Whether `first` runs before `second`, both being alive or kNone, which stands for whoever gives
  // the graph its inputs: it precedes every node.
  bool Precedes(NodeId first, NodeId second) const {
    if (first == kNone || second == kNone) return first == kNone && second != kNone;
    return places_[first].number < places_[second].number;
  }

  // The live node that writes the value; kNone for inputs, constants and state.
  NodeId maker(ValueId value) const { return users_[value].maker; }
  // maker(value) for whoever wants to compute it elsewhere: kNone too where it is made of state,
  // which another node may write in between.
  NodeId producer(ValueId value) const;
  // The live nodes that read the value, and how many of a node's inputs do.
  const Consumers& consumers(ValueId value) const { return users_[value].consumers; }
  // The node that alone reads `value`, which nobody observes; else kNone.
  NodeId SingleConsumer(ValueId value) const;
  // SingleConsumer(value) where it reads `value` only once: when that input is rewired, nothing
  // reads it. (A convolution may read its own input again, as the residual in its tail.)
  NodeId SingleUse(ValueId value) const;

  // What a kernel is built from: the node with its operands described. `node` need not be one of
  // the graph's, but its operands are.
  kernels::OpDescription Describe(const Node& node) const;
  kernels::OpDescription Describe(NodeId id) const { return Describe(nodes_[id]); }

  // Removes a node; its outputs lose their producer.
  void Remove(NodeId id);
  // Puts another node in the place of a live one.
  void Replace(NodeId id, Node node);
  // Puts a new node in the order just before `at`.
  NodeId InsertBefore(NodeId at, Node node);
  // Lets every consumer of `from`, which is no output, read `to` instead.
  void ReplaceUses(ValueId from, ValueId to);

 private:
  struct Users {
    NodeId maker = kNone;
    Consumers consumers;
  };
  // Where a live node is in the order.
  struct Place {
    int64_t number = 0;  // ascending; numbers have gaps for nodes to come
    NodeId before = kNone, after = kNone;
  };
  // Puts a new node in the order before the live node `after`, or at the end.
  NodeId Add(Node node, NodeId after);
  // The number between those of two neighbours, if there is any left.
  std::optional<int64_t> NumberBetween(NodeId before, NodeId after) const;
  void SpreadPlaces();
  void AddUses(NodeId id);
  void RemoveUses(NodeId id);

  std::vector<Value, PageAllocator<Value>> values_;
  std::vector<Users, PageAllocator<Users>> users_;  // of each value
  std::vector<Node, PageAllocator<Node>> nodes_;
  std::vector<Place> places_;            // of each node
  NodeId first_ = kNone, last_ = kNone;  // live nodes
  size_t live_ = 0;
};

}  // namespace fuselite::fusion
