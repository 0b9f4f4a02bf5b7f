#include <algorithm>
#include <map>

#include "fusion/evaluate.h"
#include "fusion/match.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"

namespace fuselite::fusion {
namespace {

constexpr int32_t kCodes = 256;
// Regions are a few nodes: SiLU has two, hard-swish from its parts four.
constexpr size_t kMaxNodes = 32;

// Nodes that compute `last`'s output from the one value `root`, element by element.
struct Region {
  std::vector<NodeId> nodes;  // `last` is the first
  ValueId root = kNone;
};

class RegionFinder {
 public:
  RegionFinder(const Graph& graph, NodeId last)
      : graph_(graph), shape_(graph.value(graph.node(last).outputs[0]).info.shape) {
    region_.nodes = {last};
  }

  // The largest one whose root is 8-bit; its root is kNone where there is none.
  Region Find() {
    Region best;
    while (region_.nodes.size() <= kMaxNodes) {
      const std::vector<ValueId>& open = OpenInputs();
      if (open.empty() || !std::ranges::all_of(open, [&](ValueId v) { return Flows(v); })) break;
      if (open.size() == 1 && IsByte(graph_.value(open[0]).info)) {
        best = region_;
        best.root = open[0];
      }
      const NodeId producer = graph_.producer(open.back());
      if (producer == kNone || !IsTabulable(graph_, producer)) break;
      // What others read, too, has to be computed anyway.
      if (open.size() == 1 && !OnlyReadInside(producer)) break;
      region_.nodes.push_back(producer);
    }
    return best;
  }

  // Whether the node can be part of a region, as far as it alone decides.
  static bool IsTabulable(const Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    const std::string_view op = node.op->name;
    const auto has_operand = [](const auto& stage) { return stage.operand.input >= 0; };
    return node.outputs.size() == 1 &&
           (node.op->elementwise || op == "QUANTIZE" || op == "DEQUANTIZE") &&
           std::ranges::none_of(node.tail.stages, has_operand);
  }

 private:
  bool Has(NodeId id) const { return std::ranges::find(region_.nodes, id) != region_.nodes.end(); }

  // What the region reads and does not make; the value that is made last is the last. Holds until
  // it is asked for again.
  const std::vector<ValueId>& OpenInputs() {
    open_.clear();
    for (NodeId id : region_.nodes) {
      for (ValueId v : graph_.node(id).inputs) {
        if (IsScalar(v)) continue;
        if (!Has(graph_.producer(v))) open_.push_back(v);
      }
    }
    SortUnique(&open_);
    if (open_.size() == 1) return open_;
    std::ranges::sort(open_, [&](ValueId a, ValueId b) {
      return graph_.Precedes(graph_.producer(a), graph_.producer(b));
    });
    return open_;
  }

  bool IsScalar(ValueId v) const {
    const TensorInfo& info = graph_.value(v).info;
    return info.constant() && info.elements() == 1;
  }

  // Whether the value has an element for each of the output.
  bool Flows(ValueId v) const {
    const Value& value = graph_.value(v);
    return value.info.shape == shape_ && !value.info.constant() && !value.variable &&
           !value.info.quantization.per_channel();
  }

  bool OnlyReadInside(NodeId id) const {
    const ValueId made = graph_.node(id).outputs[0];
    return !graph_.value(made).observed &&
           std::ranges::all_of(graph_.consumers(made),
                               [&](const auto& reader) { return Has(reader.node); });
  }

  const Graph& graph_;
  const Shape& shape_;
  Region region_;
  std::vector<ValueId> open_;  // OpenInputs()
};

// Runs the region's nodes, which are in their order, on all codes of the root, with the reference
// kernels: entry uint8(x) is uint8(y).
Result<std::vector<uint8_t>> Tabulate(const Graph& graph, const Region& region) {
  Graph scratch;
  std::map<ValueId, ValueId> copies;
  const auto info_of = [&](ValueId v, int32_t elements) {
    TensorInfo info = graph.value(v).info;
    info.shape = Shape({elements});
    info.row_pitch = 0;
    return info;
  };
  std::vector<uint8_t> codes(kCodes);
  for (int32_t i = 0; i < kCodes; ++i) codes[i] = static_cast<uint8_t>(i);
  copies[region.root] =
      scratch.AddConstant(info_of(region.root, kCodes), std::as_bytes(std::span(codes)), "codes");
  const auto add = [&](ValueId v, int32_t elements) {
    Value value;
    value.info = info_of(v, elements);
    return copies[v] = scratch.AddValue(std::move(value));
  };
  ValueId result = kNone;
  for (NodeId id : region.nodes) {
    Node node = graph.node(id);
    for (ValueId& v : node.inputs) {
      v = copies.contains(v) ? copies[v] : add(v, 1);
    }
    result = add(node.outputs[0], kCodes);
    node.outputs = {result};
    FUSELITE_ASSIGN_OR_RETURN(std::vector<Value> values,
                              Evaluate(scratch, scratch.AddNode(std::move(node))));
    scratch.value(result) = std::move(values[0]);
  }
  const auto* bytes = static_cast<const uint8_t*>(scratch.value(result).info.data);
  return std::vector<uint8_t>(bytes, bytes + kCodes);
}

// Nodes of the region that nobody needs when `last` is gone. `nodes` are in their order.
std::vector<NodeId> Dying(const Graph& graph, const std::vector<NodeId>& nodes, NodeId last) {
  std::vector<NodeId> dying = {last};
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    const ValueId made = graph.node(*it).outputs[0];
    const bool unread = std::ranges::all_of(graph.consumers(made), [&](const auto& reader) {
      return std::ranges::find(dying, reader.node) != dying.end();
    });
    if (*it != last && unread && !graph.value(made).observed) dying.push_back(*it);
  }
  dying.erase(dying.begin());
  return dying;
}

// Alone, an operator of one 8-bit value is a table already.
bool IsTable(const Graph& graph, const Region& region) {
  const Node& node = graph.node(region.nodes[0]);
  return region.nodes.size() == 1 && node.inputs.size() == 1 && node.op->name != "QUANTIZE";
}

}  // namespace

bool TabulateBytes(Graph& graph, NodeId id, RewriteContext& context) {
  if (!RegionFinder::IsTabulable(graph, id)) return false;
  const TensorInfo& output = graph.value(graph.node(id).outputs[0]).info;
  if (!IsByte(output) || output.quantization.per_channel()) return false;
  Region region = RegionFinder(graph, id).Find();
  if (region.root == kNone || IsTable(graph, region) ||
      graph.value(region.root).info.type != output.type) {
    return false;
  }
  std::ranges::sort(region.nodes, [&](NodeId a, NodeId b) { return graph.Precedes(a, b); });
  Result<std::vector<uint8_t>> table = Tabulate(graph, region);
  if (!table.ok()) return false;
  kernels::TailStage stage;
  stage.kind = kernels::TailStage::Kind::kLookup;
  stage.table = std::move(*table);
  return ReplacePattern(graph, id, Dying(graph, region.nodes, id),
                        MakeChain(graph, region.root, {std::move(stage)}),
                        "tabulate a function of 8 bits", context);
}

}  // namespace fuselite::fusion
