// RMS normalization over the innermost dimension, from its parts: with the mean of squares
//   m = MEAN(x * x), SUM(x * x) / n or SUM(x * x) * (1/n), the square also as SQUARE(x),
// and r = RSQRT(m + epsilon) or 1 / SQRT(m + epsilon), either x * r * gamma, x * (r * gamma) or x /
// SQRT(m + epsilon) * gamma, with or without gamma. Where sums and means drop their dimension,
// reshapes stand between.
#include "fusion/rewrites/functions/row_pattern.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/layer_norm/layer_norm.h"

namespace fuselite::fusion {
namespace {

struct Match {
  ValueId x = kNone, gamma = kNone;
  float epsilon = 0;
};

// Some nodes are taken twice.
class Matcher : public RowPatternWalk {
 public:
  using RowPatternWalk::RowPatternWalk;

  // `last` makes the normalized value.
  std::optional<Match> Run(NodeId last) {
    if (Normalized(last) || Scaled(last)) {
      match_.x = x_;
      return match_;
    }
    return std::nullopt;
  }

 private:
  // x * r, x * (r * gamma), or x / SQRT(m + epsilon)
  bool Normalized(NodeId id) {
    if (Is(graph_, id, "DIV")) return DividesBy(In(id, 0), In(id, 1));
    if (!Is(graph_, id, "MUL")) return false;
    for (int i : {0, 1}) {
      if (Multiplies(In(id, i), In(id, 1 - i)) || Gain(In(id, i), In(id, 1 - i))) return true;
    }
    return false;
  }
  // What Normalized gives, by gamma.
  bool Scaled(NodeId id) {
    if (!Is(graph_, id, "MUL")) return false;
    for (int i : {0, 1}) {
      const NodeId inner = graph_.producer(In(id, i));
      if (inner == kNone || !NothingFollows(graph_.node(inner))) continue;
      if (!Normalized(inner) || match_.gamma != kNone || !IsPerChannel(In(id, 1 - i))) continue;
      nodes.push_back(inner);
      match_.gamma = In(id, 1 - i);
      return true;
    }
    return false;
  }
  // r * gamma, of what is multiplied by it
  bool Gain(ValueId of, ValueId value) {
    const NodeId product = Step(value, "MUL");
    if (product == kNone) return false;
    for (int i : {0, 1}) {
      if (!Multiplies(of, In(product, i)) || !IsPerChannel(In(product, 1 - i))) continue;
      nodes.push_back(product);
      match_.gamma = In(product, 1 - i);
      return true;
    }
    return false;
  }

  // Whether `value` is the inverse root of the mean square of the rows of `of` and epsilon.
  bool Multiplies(ValueId of, ValueId value) {
    return BeginAt(of, value) && IsMeanSquare(OfWhichInverseRoot(value));
  }
  // Whether it is the root.
  bool DividesBy(ValueId of, ValueId value) {
    return BeginAt(of, value) && IsMeanSquare(OfWhichRoot(value));
  }
  bool BeginAt(ValueId of, ValueId value) {
    x_ = of;
    match_ = {};
    nodes.clear();
    return ShapeOf(of).rank() > 0 && RowsOf(value);
  }
  // Whether this is the mean square of the rows of `x_`, and epsilon.
  bool IsMeanSquare(ValueId value) {
    const ValueId mean = WithoutEpsilon(value, &match_.epsilon);
    return mean != kNone && IsSquare(OfWhichMean(mean));
  }
  // Whether this is the square of `x_`, perhaps made before both were given their shape.
  bool IsSquare(ValueId value) {
    if (value == kNone || ShapeOf(value) != ShapeOf(x_)) return false;
    const ValueId squared = OfWhichSquare(Unshaped(value));
    return squared != kNone && Root(squared) == Root(x_);
  }
  // Whether there is one element for each row, at its place.
  bool RowsOf(ValueId value) const {
    Shape rows = ShapeOf(x_);
    rows.set(rows.rank() - 1, 1);
    return ShapeOf(value) == rows;
  }

  Match match_;
};

}  // namespace

bool RecognizeRmsNorm(Graph& graph, NodeId id, RewriteContext& context) {
  const Node& last = graph.node(id);
  if (!last.tail.empty() || last.outputs.empty() || !IsFloat(graph, last.outputs[0])) return false;
  Matcher matcher(graph);
  const std::optional<Match> match = matcher.Run(id);
  if (!match) return false;
  // Without its gain, which the next node brings: the pattern ends there.
  const NodeId next = graph.SingleConsumer(graph.node(id).outputs[0]);
  if (next != kNone && Matcher(graph).Run(next)) return false;
  SortUnique(&matcher.nodes);
  if (!OnlyReadWithin(graph, matcher.nodes, id)) return false;
  Node node = MakeNode("FUSELITE_LAYER_NORM", {match->x, match->gamma});
  node.params.as<kernels::LayerNormParams>() = {.epsilon = match->epsilon, .keeps_mean = true};
  kernels::AppendActivation(FusedActivation(graph.node(id)), &node.tail);
  return ReplacePattern(graph, id, matcher.nodes, std::move(node), "recognize RMS normalization",
                        context);
}

}  // namespace fuselite::fusion
