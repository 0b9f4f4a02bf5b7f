// (RESHAPE(scores) + a) + b -> RESHAPE(scores + RESHAPE(a + b)): two biases that are added where
// keys, too, are rows and columns of an image, and that repeat along one of these each. SAM's and
// MViT's decomposed positions are so. Their sum is a mask as attention takes it.
#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/elementwise/broadcast.h"

namespace fuselite::fusion {
namespace {

struct Match {
  NodeId reshape = kNone, first = kNone;
  ValueId scores = kNone, a = kNone, b = kNone;
};

// The RESHAPE of a product's scores that gives `value`, by which their keys become several
// dimensions; else kNone.
NodeId TakesKeysApart(const Graph& graph, ValueId value) {
  const NodeId reshape = OwnProducerIs(graph, value, "RESHAPE");
  if (reshape == kNone) return kNone;
  const ValueId scores = graph.node(reshape).inputs[0];
  const Shape& from = graph.value(scores).info.shape;
  const Shape& to = graph.value(value).info.shape;
  const bool apart = from.rank() > 0 && to.rank() > 1 && from.dim(-1) == to.dim(-1) * to.dim(-2);
  return apart && OwnProducerIs(graph, scores, "BATCH_MATMUL") != kNone ? reshape : kNone;
}

// `last` is the second ADD.
std::optional<Match> MatchOf(const Graph& graph, NodeId last) {
  const Node& second = graph.node(last);
  for (const int i : {0, 1}) {
    const NodeId first = OwnProducerIs(graph, second.inputs[i], "ADD");
    if (first == kNone || !NothingFollows(graph.node(first))) continue;
    for (const int k : {0, 1}) {
      const ValueId flowing = graph.node(first).inputs[k];
      const NodeId reshape = TakesKeysApart(graph, flowing);
      if (reshape == kNone) continue;
      return Match{reshape, first, graph.node(reshape).inputs[0], graph.node(first).inputs[1 - k],
                   second.inputs[1 - i]};
    }
  }
  return std::nullopt;
}

}  // namespace

bool JoinBiases(Graph& graph, NodeId id, RewriteContext& context) {
  if (!IsBare(graph, id, "ADD") || !NothingFollows(graph.node(id))) return false;
  const std::optional<Match> match = MatchOf(graph, id);
  if (!match) return false;
  const ValueId out = graph.node(id).outputs[0];
  const ValueId weighed = AfterRearranging(graph, out);
  if (!IsBare(graph, graph.SingleUse(weighed), "SOFTMAX")) return false;
  const Shape shape = graph.value(out).info.shape, flat = graph.value(match->scores).info.shape;
  if (graph.value(weighed).info.shape.dim(-1) != flat.dim(-1)) return false;
  const auto sum_shape =
      kernels::BroadcastShapes(graph.value(match->a).info.shape, graph.value(match->b).info.shape);
  const Shape& apart = graph.value(graph.node(match->reshape).outputs[0]).info.shape;
  if (!sum_shape.ok() || *sum_shape != shape || apart != shape || !IsFloat(graph, out)) {
    return false;
  }
  const std::vector<int> hosts = MergeHostNodes(graph, {match->reshape, match->first, id});
  context.Record("join biases", hosts);
  Node sum = MakeNode("ADD", {match->a, match->b});
  sum.outputs = {AddShaped(graph, out, shape)};
  sum.host_nodes = hosts;
  const ValueId biases = sum.outputs[0];
  graph.InsertBefore(id, std::move(sum));
  Node add = MakeNode("ADD", {match->scores, Reshaped(graph, id, biases, flat, hosts)});
  add.outputs = {AddShaped(graph, out, flat)};
  add.host_nodes = hosts;
  Node behind = ReshapeTo(graph, add.outputs[0], shape);
  behind.outputs = {out};
  behind.host_nodes = hosts;
  graph.InsertBefore(id, std::move(add));
  graph.Replace(id, std::move(behind));
  graph.Remove(match->first);
  graph.Remove(match->reshape);
  return true;
}

}  // namespace fuselite::fusion
