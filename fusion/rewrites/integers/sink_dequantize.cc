#include <algorithm>

#include "fusion/match.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"

namespace fuselite::fusion {
namespace {

// The DEQUANTIZEs that make all float inputs of a node that selects from integers of one kind.
struct Sources {
  std::vector<NodeId> nodes;
  bool own = true;     // nobody else reads what they make
  TensorInfo integer;  // type and quantization
};

// Beyond these scales floats overflow, and a float pool clamps infinities.
bool Fits(const TensorInfo& info) {
  const bool integer = IsByte(info) || info.type == DataType::kInt16;
  const float scale = info.quantization.scale();
  return integer && !info.quantization.per_channel() && scale > 1e-30f && scale < 1e30f;
}

std::optional<Sources> SourcesOf(const Graph& graph, const Node& node) {
  if (!node.op->selects || !NothingFollows(node)) return std::nullopt;
  Sources sources;
  for (ValueId v : node.inputs) {
    if (!IsFloat(graph, v)) continue;
    const NodeId id = ProducerIs(graph, v, "DEQUANTIZE");
    if (id == kNone) return std::nullopt;
    sources.own = sources.own && graph.SingleUse(v) != kNone;
    const TensorInfo& info = graph.value(graph.node(id).inputs[0]).info;
    if (sources.nodes.empty()) sources.integer = info;
    if (!Fits(info) || info.type != sources.integer.type ||
        info.quantization != sources.integer.quantization) {
      return std::nullopt;
    }
    sources.nodes.push_back(id);
  }
  if (sources.nodes.empty()) return std::nullopt;
  return sources;
}

// Whether all that comes of the value is quantized to `type` again: of bytes, what stands between
// becomes a table where there are vectors.
bool EndsInQuantize(const Graph& graph, ValueId value, DataType type) {
  for (NodeId id = graph.SingleConsumer(value); id != kNone; id = graph.SingleConsumer(value)) {
    const Node& node = graph.node(id);
    const TensorInfo& info = graph.value(node.outputs[0]).info;
    if (node.op->name == "QUANTIZE") return info.type == type && Fits(info);
    const bool flows = node.op->selects || (node.op->elementwise && node.inputs.size() == 1);
    if (!flows || node.outputs.size() != 1) return false;
    value = node.outputs[0];
  }
  return false;
}

// Whether no more is dequantized than before, or what is will be quantized again.
bool Repays(const Graph& graph, const Node& node, const Sources& sources, Isa isa) {
  int64_t from = 0, to = 0;
  for (ValueId v : node.inputs) from += IsFloat(graph, v) ? graph.value(v).info.elements() : 0;
  for (ValueId v : node.outputs) to += graph.value(v).info.elements();
  if (sources.own && to <= from) return true;
  if (!sources.own && (!IsByte(sources.integer) || !isa.has_vectors())) return false;
  return std::ranges::all_of(
      node.outputs, [&](ValueId v) { return EndsInQuantize(graph, v, sources.integer.type); });
}

bool NobodyReads(const Graph& graph, const Node& dequantize) {
  const ValueId floats = dequantize.outputs[0];
  return graph.consumers(floats).empty() && !graph.value(floats).observed;
}

TensorInfo AsInteger(TensorInfo info, const Sources& sources) {
  info.type = sources.integer.type;
  info.quantization = sources.integer.quantization;
  return info;
}

// The node on integers, for questions.
kernels::OpDescription OnIntegers(const Graph& graph, NodeId id, const Sources& sources) {
  kernels::OpDescription op = graph.Describe(id);
  for (TensorInfo& info : op.inputs) {
    if (info.type == DataType::kFloat32) info = AsInteger(info, sources);
  }
  for (TensorInfo& info : op.outputs) info = AsInteger(info, sources);
  return op;
}

}  // namespace

bool SinkDequantize(Graph& graph, NodeId id, RewriteContext& context) {
  const std::optional<Sources> sources = SourcesOf(graph, graph.node(id));
  if (!sources || !Repays(graph, graph.node(id), *sources, context.isa())) return false;
  if (!context.AcceptsInsteadOf(graph.Describe(id), OnIntegers(graph, id, *sources))) return false;
  Node selection = graph.node(id);
  std::vector<NodeId> replaced = sources->nodes;
  const std::vector<int> dequantized = MergeHostNodes(graph, replaced);
  replaced.push_back(id);
  context.Record(internal::Join("move DEQUANTIZE behind ", selection.op->name),
                 MergeHostNodes(graph, replaced));
  for (NodeId source : sources->nodes) {
    const Node& dequantize = graph.node(source);
    std::ranges::replace(selection.inputs, dequantize.outputs[0], dequantize.inputs[0]);
  }
  std::vector<Node> behind;
  for (ValueId& v : selection.outputs) {
    Value integer;
    integer.info = AsInteger(graph.value(v).info, *sources);
    integer.name = graph.value(v).name;
    Node dequantize = MakeNode("DEQUANTIZE", {graph.AddValue(std::move(integer))});
    dequantize.outputs = {v};
    dequantize.host_nodes = dequantized;
    v = dequantize.inputs[0];
    behind.push_back(std::move(dequantize));
  }
  graph.InsertBefore(id, std::move(selection));
  graph.Replace(id, std::move(behind.back()));
  behind.pop_back();
  for (Node& dequantize : behind) graph.InsertBefore(id, std::move(dequantize));
  for (NodeId source : sources->nodes) {
    if (graph.alive(source) && NobodyReads(graph, graph.node(source))) graph.Remove(source);
  }
  return true;
}

}  // namespace fuselite::fusion
