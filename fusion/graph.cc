#include "fusion/graph.h"

#include <algorithm>
#include <cstring>

#include "runtime/aligned_buffer.h"

namespace fuselite::fusion {

ValueId Graph::AddValue(Value value) {
  values_.push_back(std::move(value));
  return value_count() - 1;
}

NodeId Graph::AddNode(Node node) {
  nodes_.push_back(std::move(node));
  order_.push_back(node_slots() - 1);
  return order_.back();
}

ValueId Graph::AddConstant(TensorInfo info, std::span<const std::byte> bytes, std::string name) {
  // At least a byte: a constant is told by its pointer, even one without elements.
  auto storage = std::make_shared<AlignedBuffer>(std::max<size_t>(bytes.size(), 1));
  if (!bytes.empty()) std::memcpy(storage->data(), bytes.data(), bytes.size());
  Value value;
  value.info = std::move(info);
  value.info.data = storage->data();
  value.name = std::move(name);
  value.storage = std::move(storage);
  return AddValue(std::move(value));
}

kernels::OpDescription Graph::Describe(NodeId id) const {
  const Node& n = nodes_[id];
  kernels::OpDescription op;
  op.op = n.op;
  op.params = n.params;
  op.tail = n.tail;
  op.version = n.version;
  op.intermediates = n.intermediates;
  for (ValueId v : n.inputs) op.inputs.push_back(v == kNone ? TensorInfo() : values_[v].info);
  for (ValueId v : n.outputs) op.outputs.push_back(values_[v].info);
  return op;
}

void Graph::Remove(NodeId id) {
  nodes_[id] = Node();
  std::erase(order_, id);
}

NodeId Graph::InsertBefore(NodeId at, Node node) {
  nodes_.push_back(std::move(node));
  const NodeId id = node_slots() - 1;
  order_.insert(std::ranges::find(order_, at), id);
  return id;
}

void Graph::ReplaceUses(ValueId from, ValueId to) {
  for (NodeId id : order_) std::ranges::replace(nodes_[id].inputs, from, to);
  if (std::ranges::find(outputs, from) != outputs.end()) {
    std::ranges::replace(outputs, from, to);
    values_[to].observed = true;
  }
}

Uses::Uses(const Graph& graph)
    : graph_(&graph), producer_(graph.value_count(), kNone), consumers_(graph.value_count()) {
  for (NodeId id : graph.order()) {
    for (ValueId v : graph.node(id).outputs) producer_[v] = id;
    for (ValueId v : graph.node(id).inputs) {
      if (v == kNone) continue;
      std::vector<NodeId>& readers = consumers_[v];
      if (readers.empty() || readers.back() != id) readers.push_back(id);
    }
  }
}

NodeId Uses::SingleConsumer(ValueId value) const {
  if (graph_->value(value).observed || consumers_[value].size() != 1) return kNone;
  return consumers_[value].front();
}

NodeId Uses::SingleUse(ValueId value) const {
  const NodeId id = SingleConsumer(value);
  return id != kNone && std::ranges::count(graph_->node(id).inputs, value) == 1 ? id : kNone;
}

}  // namespace fuselite::fusion
