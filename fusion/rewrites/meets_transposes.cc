#include "fusion/rewrites/meets_transposes.h"

#include <algorithm>

#include "fusion/match.h"
#include "fusion/stages.h"

namespace fuselite::fusion {
namespace {

// Patterns are a few nodes long; the limit is for graphs that are made to be deep.
constexpr int kMaxDepth = 64;

bool IsAlone(const Node& node) { return node.tail.empty() && node.outputs.size() == 1; }

}  // namespace

bool IsElementwiseAlone(const Node& node) {
  return IsAlone(node) && node.op->elementwise && node.op->name != kChain;
}

bool ReducesAlone(const Graph& graph, const Node& node) {
  const std::string_view op = node.op->name;
  const bool reduces = op == "MEAN" || op == "SUM" || op == "REDUCE_MAX" || op == "REDUCE_MIN";
  return reduces && IsAlone(node) && IntConstant(graph, node.inputs[1]);
}

bool PadsAlone(const Graph& graph, const Node& node) {
  if ((node.op->name != "PAD" && node.op->name != "PADV2") || !IsAlone(node)) return false;
  const auto paddings = IntConstant(graph, node.inputs[1]);
  return paddings && std::ranges::all_of(*paddings, [](int32_t p) { return p >= 0; });
}

bool JoinsOrParts(const Node& node) {
  const std::string_view op = node.op->name;
  return node.tail.empty() && (op == "CONCATENATION" || op == "SLICE" || op == "STRIDED_SLICE" ||
                               op == "SPLIT" || op == "SPLIT_V");
}

bool MeetsTransposes::From(ValueId value, int depth) {
  if (graph_.value(value).observed || depth == kMaxDepth) return false;
  const auto [known, added] = known_.try_emplace(value, true);
  if (!added) return known->second;
  const auto meets = [&](const auto& reader) { return Through(reader.node, depth + 1); };
  return known_[value] = std::ranges::all_of(graph_.consumers(value), meets);
}

bool MeetsTransposes::Through(NodeId id, int depth) {
  const Node& node = graph_.node(id);
  if (node.op->name == "TRANSPOSE" || ReducesAlone(graph_, node)) return true;
  const bool passes = IsElementwiseAlone(node) || PadsAlone(graph_, node) || node.op->reshapes ||
                      JoinsOrParts(node);
  return passes && std::ranges::all_of(node.outputs, [&](ValueId out) { return From(out, depth); });
}

}  // namespace fuselite::fusion
