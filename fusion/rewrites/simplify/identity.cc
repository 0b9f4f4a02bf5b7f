#include <algorithm>

#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/rewrites.h"
#include "fusion/stages.h"

namespace fuselite::fusion {
namespace {

bool SameTensor(const TensorInfo& a, const TensorInfo& b) {
  return a.type == b.type && a.shape == b.shape && a.quantization == b.quantization;
}

// Dimensions of size 1 may move: the bytes stay where they are.
bool KeepsOrder(const Graph& graph, const Node& node) {
  const Shape& shape = graph.value(node.inputs[0]).info.shape;
  int last = -1;
  for (const int32_t dim : PermutationOf(graph, node)) {
    if (shape[dim] == 1) continue;
    if (dim < last) return false;
    last = dim;
  }
  return true;
}

bool AllZero(const Graph& graph, ValueId value) {
  const auto list = IntConstant(graph, value);
  return list && std::ranges::all_of(*list, [](int32_t x) { return x == 0; });
}

// A chain of tables each of which gives every code itself.
bool IsIdentityTable(const Node& node) {
  const auto keeps_codes = [](const kernels::TailStage& stage) {
    if (stage.kind != kernels::TailStage::Kind::kLookup) return false;
    for (size_t i = 0; i < stage.table.size(); ++i) {
      if (stage.table[i] != i) return false;
    }
    return true;
  };
  return node.op->name == kChain && std::ranges::all_of(node.tail.stages, keeps_codes);
}

bool NoActivation(const Node& node) { return FusedActivation(node) == kernels::Activation::kNone; }

// The input that the node gives unchanged, given that their descriptions agree; kNone otherwise.
// Rank and type decide most: an operator that pads or cuts keeps the shape only when it does
// nothing.
ValueId InputGiven(const Graph& graph, const Node& node) {
  const std::string_view op = node.op->name;
  const ValueId in = node.inputs[0];
  if (IsIdentityTable(node)) return in;
  if (node.op->reshapes || op == "CAST") return in;
  if (op == "PAD" || op == "PADV2" || op == "MIRROR_PAD") {
    return AllZero(graph, node.inputs[1]) ? in : kNone;
  }
  if (op == "SLICE") return AllZero(graph, node.inputs[1]) ? in : kNone;
  if (op == "TRANSPOSE") return KeepsOrder(graph, node) ? in : kNone;
  if (op == "CONCATENATION") return node.inputs.size() == 1 ? in : kNone;
  if (!IsFloat(graph, in) || node.inputs.size() != 2 || !NoActivation(node)) return kNone;
  if (op == "MUL" || op == "DIV") {
    if (ScalarConstant(graph, node.inputs[1]) == 1.0f) return in;
    if (op == "MUL" && ScalarConstant(graph, in) == 1.0f) return node.inputs[1];
  }
  if (op == "ADD" || op == "SUB") {
    if (ScalarConstant(graph, node.inputs[1]) == 0.0f) return in;
    if (op == "ADD" && ScalarConstant(graph, in) == 0.0f) return node.inputs[1];
  }
  return kNone;
}

// The input that is the node's one output, bits and description; kNone where there is none.
ValueId Unchanged(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.outputs.size() != 1) return kNone;
  if (!node.tail.empty() && !IsIdentityTable(node)) return kNone;
  const Value& out = graph.value(node.outputs[0]);
  if (out.variable) return kNone;
  const ValueId in = InputGiven(graph, node);
  if (in == kNone || graph.value(in).variable) return kNone;
  return SameTensor(graph.value(in).info, out.info) ? in : kNone;
}

// What a value may be merged with: made by a node here, and nobody outside looks at it.
bool MayBeMerged(const Graph& graph, ValueId value) {
  return !graph.value(value).observed && graph.producer(value) != kNone;
}

}  // namespace

bool RemoveIdentity(Graph& graph, NodeId id, RewriteContext& context) {
  const ValueId in = Unchanged(graph, id);
  if (in == kNone) return false;
  const std::string_view op = graph.node(id).op->name;
  const std::vector<int> host_nodes = graph.node(id).host_nodes;
  const ValueId out = graph.node(id).outputs[0];
  if (!graph.value(out).observed) {
    graph.Remove(id);
    graph.ReplaceUses(out, in);
  } else if (MayBeMerged(graph, in)) {
    // Whoever makes the input writes the observed value itself.
    graph.Remove(id);
    graph.ReplaceUses(in, out);
    Node maker = graph.node(graph.producer(in));
    std::ranges::replace(maker.outputs, in, out);
    graph.Replace(graph.producer(in), std::move(maker));
  } else {
    return false;
  }
  context.Record(internal::Join("drop identity ", op), host_nodes);
  return true;
}

}  // namespace fuselite::fusion
