#include "fusion/graph.h"

#include <algorithm>
#include <cstring>

#include "runtime/aligned_buffer.h"

namespace fuselite::fusion {

namespace {

// Neighbours are so far apart at first: room for 32 nodes inserted before the same one.
constexpr int64_t kGap = int64_t{1} << 32;

// Large constants go when the step is built that packs them, while the packed ones take memory.
// Throws std::bad_alloc.
AlignedBuffer MemoryFor(size_t bytes) {
  if (bytes < kWorthPages) {
    // It has at least a byte: a constant is told by its pointer, even one without elements.
    AlignedBuffer memory(std::max<size_t>(bytes, 1));
    if (memory.data() == nullptr) throw std::bad_alloc();
    return memory;
  }
  std::shared_ptr<std::byte> pages = TakePages(bytes + kAlignment);
  if (pages == nullptr) throw std::bad_alloc();
  std::byte* data = pages.get();
  return {std::move(pages), data, bytes};
}

}  // namespace

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

NodeId Graph::AddNode(Node node) {
  return Add(std::move(node), order_.empty() ? 0 : order_.rbegin()->first + kGap);
}

NodeId Graph::Add(Node node, int64_t place) {
  nodes_.push_back(std::move(node));
  places_.push_back(place);
  const NodeId id = node_slots() - 1;
  order_.emplace(place, id);
  AddUses(id);
  return id;
}

ValueId Graph::AddConstant(TensorInfo info, std::span<const std::byte> bytes, std::string name) {
  auto storage = std::make_shared<AlignedBuffer>(MemoryFor(bytes.size()));
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
  ids.reserve(order_.size());
  for (const auto& [place, id] : order_) ids.push_back(id);
  return ids;
}

void Graph::AddUses(NodeId id) {
  for (ValueId v : nodes_[id].outputs) {
    // State has no one maker: it has values before and after.
    if (!values_[v].variable) users_[v].maker = id;
  }
  for (ValueId v : nodes_[id].inputs) {
    if (v != kNone) ++users_[v].consumers[id];
  }
}

void Graph::RemoveUses(NodeId id) {
  for (ValueId v : nodes_[id].outputs) {
    // A rewrite may have given the value to another node already.
    if (users_[v].maker == id) users_[v].maker = kNone;
  }
  for (ValueId v : nodes_[id].inputs) {
    if (v != kNone) users_[v].consumers.erase(id);
  }
}

void Graph::Remove(NodeId id) {
  RemoveUses(id);
  nodes_[id] = Node();
  order_.erase(places_[id]);
}

void Graph::Replace(NodeId id, Node node) {
  RemoveUses(id);
  nodes_[id] = std::move(node);
  AddUses(id);
}

NodeId Graph::InsertBefore(NodeId at, Node node) {
  const auto gap_before = [&] {
    const auto after = order_.find(places_[at]);
    return after == order_.begin() ? kGap : after->first - std::prev(after)->first;
  };
  if (gap_before() < 2) SpreadPlaces();
  return Add(std::move(node), places_[at] - gap_before() / 2);
}

void Graph::SpreadPlaces() {
  std::map<int64_t, NodeId> spread;
  for (const auto& [place, id] : order_) {
    places_[id] = static_cast<int64_t>(spread.size()) * kGap;
    spread.emplace_hint(spread.end(), places_[id], id);
  }
  order_ = std::move(spread);
}

void Graph::ReplaceUses(ValueId from, ValueId to) {
  for (const auto& [id, inputs] : users_[from].consumers) {
    std::ranges::replace(nodes_[id].inputs, from, to);
    users_[to].consumers[id] += inputs;
  }
  users_[from].consumers.clear();
  if (std::ranges::find(outputs, from) != outputs.end()) {
    std::ranges::replace(outputs, from, to);
    values_[to].observed = true;
  }
}

NodeId Graph::producer(ValueId value) const {
  const NodeId id = maker(value);
  const auto state = [&](ValueId v) { return v != kNone && values_[v].variable; };
  return id == kNone || std::ranges::any_of(nodes_[id].inputs, state) ? kNone : id;
}

NodeId Graph::SingleConsumer(ValueId value) const {
  const std::map<NodeId, int>& all = consumers(value);
  return values_[value].observed || all.size() != 1 ? kNone : all.begin()->first;
}

NodeId Graph::SingleUse(ValueId value) const {
  const NodeId id = SingleConsumer(value);
  return id != kNone && consumers(value).begin()->second == 1 ? id : kNone;
}

}  // namespace fuselite::fusion
