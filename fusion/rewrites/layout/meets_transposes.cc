#include "fusion/rewrites/layout/meets_transposes.h"

#include <algorithm>

namespace fuselite::fusion {
namespace {

// Patterns are a few nodes long; the limit is for graphs that are made to be deep.
constexpr int kMaxDepth = 64;

bool IsAlone(const Node& node) { return node.tail.empty() && node.outputs.size() == 1; }

}  // namespace

bool IsElementwiseAlone(const Node& node) { return IsAlone(node) && node.op->elementwise; }

bool Reduces(const Node& node) {
  const std::string_view op = node.op->name;
  return op == "MEAN" || op == "SUM" || op == "REDUCE_MAX" || op == "REDUCE_MIN";
}

bool Pads(const Node& node) { return node.op->name == "PAD" || node.op->name == "PADV2"; }

bool JoinsOrParts(const Node& node) {
  const std::string_view op = node.op->name;
  return node.tail.empty() && (op == "CONCATENATION" || op == "SLICE" || op == "STRIDED_SLICE" ||
                               op == "SPLIT" || op == "SPLIT_V");
}

bool MeetsTransposes::From(ValueId value, int depth) {
  if (graph_.value(value).observed || depth == kMaxDepth) return false;
  if (!asked_.insert(value).second) return true;
  const auto meets = [&](const auto& reader) { return Through(reader.node, depth + 1); };
  return std::ranges::all_of(graph_.consumers(value), meets);
}

bool MeetsTransposes::Through(NodeId id, int depth) {
  const Node& node = graph_.node(id);
  if (node.op->name == "TRANSPOSE" || Reduces(node)) return true;
  const bool passes =
      IsElementwiseAlone(node) || Pads(node) || node.op->reshapes || JoinsOrParts(node);
  return passes && std::ranges::all_of(node.outputs, [&](ValueId out) { return From(out, depth); });
}

}  // namespace fuselite::fusion
