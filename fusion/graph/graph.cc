#include "fusion/graph/graph.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace fuselite::fusion {

namespace {

// Neighbours are so far apart at first: room for 32 nodes inserted before the same one.
constexpr int64_t kGap = int64_t{1} << 32;

}  // namespace

AlignedBuffer MemoryOfConstant(size_t bytes) {
  // It has at least a byte: a constant is told by its pointer, even one without elements.
  if (bytes < kWorthPages) return AlignedBuffer(std::max<size_t>(bytes, 1));
  std::shared_ptr<std::byte> pages = TakePages(bytes + kAlignment);
  std::byte* data = pages.get();
  return {std::move(pages), data, bytes};
}

void Graph::Reserve(size_t values, size_t nodes) {
  values_.reserve(values);
  users_.reserve(values);
  nodes_.reserve(nodes);
  places_.reserve(nodes);
}

ValueId Graph::AddValue(Value value) {
  values_.push_back(std::move(value));
  users_.emplace_back();
  return value_count() - 1;
}

NodeId Graph::AddNode(Node node) { return Add(std::move(node), kNone); }

NodeId Graph::InsertBefore(NodeId at, Node node) { return Add(std::move(node), at); }

NodeId Graph::Add(Node node, NodeId after) {
  NodeId& at = after == kNone ? last_ : places_[after].before;
  std::optional<int64_t> number = NumberBetween(at, after);
  if (!number) {
    SpreadPlaces();
    number = NumberBetween(at, after);
  }
  const NodeId id = node_slots(), before = std::exchange(at, id);
  (before == kNone ? first_ : places_[before].after) = id;
  nodes_.push_back(std::move(node));
  places_.push_back({*number, before, after});
  ++live_;
  AddUses(id);
  return id;
}

std::optional<int64_t> Graph::NumberBetween(NodeId before, NodeId after) const {
  if (before == kNone && after == kNone) return 0;
  if (after == kNone) return places_[before].number + kGap;
  const int64_t gap = before == kNone ? kGap : places_[after].number - places_[before].number;
  if (gap < 2) return std::nullopt;
  return places_[after].number - gap / 2;
}

void Graph::SpreadPlaces() {
  int64_t number = 0;
  for (NodeId id = first_; id != kNone; id = places_[id].after) {
    places_[id].number = number;
    number += kGap;
  }
}

ValueId Graph::AddConstant(TensorInfo info, std::span<const std::byte> bytes, std::string name) {
  auto storage = std::make_shared<AlignedBuffer>(MemoryOfConstant(bytes.size()));
  if (storage->data() == nullptr) throw std::bad_alloc();
  if (!bytes.empty()) std::memcpy(storage->data(), bytes.data(), bytes.size());
  Value value;
  value.info = std::move(info);
  value.info.data = storage->data();
  value.name = std::move(name);
  value.storage = std::move(storage);
  return AddValue(std::move(value));
}

kernels::OpDescription Graph::Describe(const Node& node) const {
  kernels::OpDescription op;
  op.op = node.op;
  op.params = node.params;
  op.tail = node.tail;
  op.version = node.version;
  op.intermediates = node.intermediates;
  op.tail_inputs = node.tail_inputs;
  op.inputs.reserve(node.inputs.size());
  for (ValueId v : node.inputs) op.inputs.push_back(v == kNone ? TensorInfo() : values_[v].info);
  op.outputs.reserve(node.outputs.size());
  for (ValueId v : node.outputs) op.outputs.push_back(values_[v].info);
  return op;
}

std::vector<NodeId> Graph::order() const {
  std::vector<NodeId> ids;
  ids.reserve(live_);
  for (NodeId id = first_; id != kNone; id = places_[id].after) ids.push_back(id);
  return ids;
}

void Graph::AddUses(NodeId id) {
  for (ValueId v : nodes_[id].outputs) {
    // State has no one maker: it has values before and after. Validate() refuses what is no value.
    if (v != kNone && !values_[v].variable) users_[v].maker = id;
  }
  for (ValueId v : nodes_[id].inputs) {
    if (v != kNone) users_[v].consumers.Add(id, 1);
  }
}

void Graph::RemoveUses(NodeId id) {
  for (ValueId v : nodes_[id].outputs) {
    // A rewrite may have given the value to another node already.
    if (v != kNone && users_[v].maker == id) users_[v].maker = kNone;
  }
  for (ValueId v : nodes_[id].inputs) {
    if (v != kNone) users_[v].consumers.Remove(id);
  }
}

void Graph::Remove(NodeId id) {
  RemoveUses(id);
  nodes_[id] = Node();
  const auto& [number, before, after] = places_[id];
  (before == kNone ? first_ : places_[before].after) = after;
  (after == kNone ? last_ : places_[after].before) = before;
  --live_;
}

void Graph::Replace(NodeId id, Node node) {
  RemoveUses(id);
  nodes_[id] = std::move(node);
  AddUses(id);
}

void Graph::ReplaceUses(ValueId from, ValueId to) {
  for (const auto& [id, inputs] : users_[from].consumers) {
    std::ranges::replace(nodes_[id].inputs, from, to);
    users_[to].consumers.Add(id, inputs);
  }
  users_[from].consumers.Clear();
}

NodeId Graph::producer(ValueId value) const {
  const NodeId id = maker(value);
  const auto state = [&](ValueId v) { return v != kNone && values_[v].variable; };
  return id == kNone || std::ranges::any_of(nodes_[id].inputs, state) ? kNone : id;
}

NodeId Graph::SingleConsumer(ValueId value) const {
  const Consumers& all = consumers(value);
  return values_[value].observed || all.size() != 1 ? kNone : all.begin()->node;
}

NodeId Graph::SingleUse(ValueId value) const {
  const NodeId id = SingleConsumer(value);
  return id != kNone && consumers(value).begin()->inputs == 1 ? id : kNone;
}

}  // namespace fuselite::fusion
