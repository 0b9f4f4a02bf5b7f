// precision=fast: values between layers that round their operands to bfloat16 anyway lie in memory
// as such, which is half the bytes to write and to read. Most are rounded once either way, by who
// makes them instead of by who reads them; a sum that a later layer adds to is rounded in between.
#include <algorithm>
#include <vector>

#include "fusion/match.h"
#include "fusion/rewrites/rewrites.h"

namespace fuselite::fusion {
namespace {

// Values that have to be of one type, as nodes between them only move elements, and all nodes that
// make or read one of them.
struct Connected {
  std::vector<ValueId> values;
  std::vector<NodeId> nodes;
};

class ConnectedValues {
 public:
  explicit ConnectedValues(const Graph& graph) : graph_(graph) {}

  // Those of `first`; nullopt where one of them has to stay float32.
  std::optional<Connected> From(ValueId first) {
    found_.values.assign(1, first);
    size_t next = 0;
    while (next < found_.values.size()) {
      if (!Follow(found_.values[next++])) return std::nullopt;
    }
    SortUnique(&found_.nodes);
    return std::move(found_);
  }

 private:
  bool Follow(ValueId id) {
    const Value& value = graph_.value(id);
    const NodeId maker = graph_.maker(id);
    if (value.info.type != DataType::kFloat32 || value.observed || value.variable ||
        maker == kNone || !Visit(maker)) {
      return false;
    }
    return std::ranges::all_of(graph_.consumers(id),
                               [&](const auto& reader) { return Visit(reader.node); });
  }

  bool Visit(NodeId id) {
    found_.nodes.push_back(id);
    const Node& node = graph_.node(id);
    if (!node.op->selects) return node.op->bfloat16_values;
    for (const std::vector<ValueId>* operands : {&node.inputs, &node.outputs}) {
      for (const ValueId v : *operands) {
        if (v != kNone && IsFloat(graph_, v) && std::ranges::count(found_.values, v) == 0) {
          found_.values.push_back(v);
        }
      }
    }
    return true;
  }

  const Graph& graph_;
  Connected found_;
};

// Whether a layer reads one of the values: elementwise operators alone, as those that decode boxes,
// get them as they are. And so they do what others of them make: differences may be small beside
// what they are of (a row less its mean).
bool LayersRound(const Graph& graph, const std::vector<ValueId>& values) {
  bool made = false, read = false;  // by elementwise operators
  bool layers = false;
  for (const ValueId v : values) {
    made |= graph.node(graph.maker(v)).op->elementwise;
    for (const auto& reader : graph.consumers(v)) {
      const kernels::OperatorDef& op = *graph.node(reader.node).op;
      read |= op.elementwise;
      layers |= !op.elementwise && !op.selects;
    }
  }
  return layers && !(made && read);
}

void SetTypes(Graph& graph, const std::vector<ValueId>& values, DataType type) {
  for (const ValueId v : values) graph.value(v).info.type = type;
}

std::vector<kernels::OpDescription> Describe(const Graph& graph, const std::vector<NodeId>& nodes) {
  std::vector<kernels::OpDescription> described;
  for (const NodeId id : nodes) described.push_back(graph.Describe(id));
  return described;
}

}  // namespace

bool StoreAsBFloat16(Graph& graph, NodeId id, RewriteContext& context) {
  if (context.precision() != kernels::Precision::kFast) return false;
  const Node& node = graph.node(id);
  if (!node.op->bfloat16_values || node.outputs.size() != 1) return false;
  const std::optional<Connected> connected = ConnectedValues(graph).From(node.outputs[0]);
  if (!connected || !LayersRound(graph, connected->values)) return false;
  const auto before = Describe(graph, connected->nodes);
  SetTypes(graph, connected->values, DataType::kBFloat16);
  const auto after = Describe(graph, connected->nodes);
  for (size_t i = 0; i < before.size(); ++i) {
    if (context.AcceptsInsteadOf(before[i], after[i])) continue;
    SetTypes(graph, connected->values, DataType::kFloat32);
    return false;
  }
  context.Record("store as bfloat16", MergeHostNodes(graph, connected->nodes));
  return true;
}

}  // namespace fuselite::fusion
