#include "fusion/graph/region.h"

#include <algorithm>
#include <map>
#include <utility>

#include "fusion/graph/evaluate.h"

namespace fuselite::fusion {
namespace {

// Most regions are no larger: SiLU has two nodes, hard-swish from its parts four.
constexpr size_t kUsualNodes = 4;

}  // namespace

bool IsPointwise(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const auto has_operand = [](const auto& stage) { return stage.operand.input >= 0; };
  return node.op->pointwise && node.outputs.size() == 1 &&
         std::ranges::none_of(node.tail.stages, has_operand);
}

RegionFinder::RegionFinder(const Graph& graph, NodeId last)
    : graph_(graph), shape_(graph.value(graph.node(last).outputs[0]).info.shape) {
  region_.nodes.reserve(kUsualNodes);
  Take(last);
}

bool RegionFinder::Next(size_t most) {
  while (flows_ && !open_.empty() && region_.nodes.size() <= most) {
    if (open_.size() == 1 && open_[0] != region_.root) {
      region_.root = open_[0];
      return true;
    }
    const NodeId producer = graph_.producer(open_.back());
    if (producer == kNone || !IsPointwise(graph_, producer)) break;
    // What others read, too, has to be computed anyway.
    if (open_.size() == 1 && !OnlyReadInside(producer)) break;
    open_.pop_back();
    Take(producer);
  }
  return false;
}

// Nodes are taken from the last one up: none of the region makes what this one reads.
void RegionFinder::Take(NodeId id) {
  region_.nodes.push_back(id);
  const auto made_before = [&](ValueId a, ValueId b) {
    return graph_.Precedes(graph_.producer(a), graph_.producer(b));
  };
  for (ValueId v : graph_.node(id).inputs) {
    if (IsScalar(v) || std::ranges::find(open_, v) != open_.end()) continue;
    flows_ = flows_ && Flows(v);
    open_.insert(std::ranges::upper_bound(open_, v, made_before), v);
  }
}

bool RegionFinder::IsScalar(ValueId v) const {
  const TensorInfo& info = graph_.value(v).info;
  return info.constant() && info.elements() == 1;
}

// Whether the value has an element for each of the output.
bool RegionFinder::Flows(ValueId v) const {
  const Value& value = graph_.value(v);
  return value.info.shape == shape_ && !value.info.constant() && !value.variable &&
         !value.info.quantization.per_channel();
}

bool RegionFinder::OnlyReadInside(NodeId id) const {
  const ValueId made = graph_.node(id).outputs[0];
  return !graph_.value(made).observed &&
         std::ranges::all_of(graph_.consumers(made), [&](const auto& reader) {
           return std::ranges::find(region_.nodes, reader.node) != region_.nodes.end();
         });
}

void SortRegion(const Graph& graph, Region* region) {
  std::ranges::sort(region->nodes, [&](NodeId a, NodeId b) { return graph.Precedes(a, b); });
}

Result<Value> EvaluateRegion(const Graph& graph, const Region& region,
                             std::span<const std::byte> root, int32_t elements) {
  Graph scratch;
  std::map<ValueId, ValueId> copies;
  const auto info_of = [&](ValueId v, int32_t count) {
    TensorInfo info = graph.value(v).info;
    info.shape = Shape({count});
    info.row_pitch = 0;
    return info;
  };
  copies[region.root] = scratch.AddConstant(info_of(region.root, elements), root, "root");
  const auto add = [&](ValueId v, int32_t count) {
    Value value;
    value.info = info_of(v, count);
    return copies[v] = scratch.AddValue(std::move(value));
  };
  ValueId result = kNone;
  for (NodeId id : region.nodes) {
    Node node = graph.node(id);
    for (ValueId& v : node.inputs) v = copies.contains(v) ? copies[v] : add(v, 1);
    result = add(node.outputs[0], elements);
    node.outputs = {result};
    FUSELITE_ASSIGN_OR_RETURN(std::vector<Value> values,
                              Evaluate(scratch, scratch.AddNode(std::move(node))));
    scratch.value(result) = std::move(values[0]);
  }
  return std::move(scratch.value(result));
}

std::vector<NodeId> DyingNodes(const Graph& graph, const Region& region) {
  const NodeId last = region.nodes.back();
  std::vector<NodeId> dying = {last};
  for (auto it = region.nodes.rbegin(); it != region.nodes.rend(); ++it) {
    const ValueId made = graph.node(*it).outputs[0];
    const bool unread = std::ranges::all_of(graph.consumers(made), [&](const auto& reader) {
      return std::ranges::find(dying, reader.node) != dying.end();
    });
    if (*it != last && unread && !graph.value(made).observed) dying.push_back(*it);
  }
  dying.erase(dying.begin());
  return dying;
}

}  // namespace fuselite::fusion
