// SOFTMAX(x + c) -> SOFTMAX(x): a number that is added to all scores of a row changes none of their
// weights. TensorFlow's transformers add 1e-9 so that XLA on a CPU compiles the sum.
#include <cmath>

#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/rewrites.h"

namespace fuselite::fusion {
namespace {

// A larger number rounds scores off, which the sum without it does not.
constexpr float kMostShift = 1;

// The input of ADD or SUB that the other one, a small number, is added to; kNone.
ValueId Unshifted(const Graph& graph, const Node& node) {
  for (const int i : {1, 0}) {
    const std::optional<float> number = ScalarConstant(graph, node.inputs[i]);
    if (number && std::fabs(*number) <= kMostShift) return node.inputs[1 - i];
    if (node.op->name == std::string_view("SUB")) break;
  }
  return kNone;
}

}  // namespace

bool DropShiftOfScores(Graph& graph, NodeId id, RewriteContext& context) {
  if (!IsBare(graph, id, "ADD") && !IsBare(graph, id, "SUB")) return false;
  const Node& node = graph.node(id);
  const ValueId out = node.outputs[0];
  const ValueId scores = Unshifted(graph, node);
  if (scores == kNone || !NothingFollows(node)) return false;
  if (!IsBare(graph, graph.SingleUse(AfterRearranging(graph, out)), "SOFTMAX")) return false;
  const Value& in = graph.value(scores);
  if (in.variable || !IsFloat(graph, scores) || in.info.shape != graph.value(out).info.shape) {
    return false;
  }
  context.Record("drop shift of scores", node.host_nodes);
  graph.Remove(id);
  graph.ReplaceUses(out, scores);
  return true;
}

}  // namespace fuselite::fusion
