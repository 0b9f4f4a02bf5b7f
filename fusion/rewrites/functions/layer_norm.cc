// Layer normalization over the innermost dimension, from its parts. Exporters write
//   mean = MEAN(x), var = MEAN(SQUARED_DIFFERENCE(x, mean)),
//   r = RSQRT(var + epsilon) or 1 / SQRT(var + epsilon)
// and then, with g = r * gamma, either
//   x * g + (beta - mean * g), the minus as SUB or as NEG(mean) * g, which Keras adds by itself
//   where beta is 0, or
//   (x - mean) * r * gamma + beta, also as a quotient by SQRT(var + epsilon).
// Where means drop their dimension, reshapes stand between, and beta may be a 0 before gamma comes.
// JAX writes means as SUM * (1/n); Flax makes var of MEAN(x * x) - mean * mean, at least 0. Of rows
// whose mean is far above their deviation little is left of that difference: what takes its place
// (kernels/layer_norm/layer_norm.h) is closer to the variance.
#include "kernels/layer_norm/layer_norm.h"

#include "fusion/rewrites/functions/row_pattern.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"

namespace fuselite::fusion {
namespace {

struct Match {
  ValueId x = kNone, gamma = kNone, beta = kNone;
  float epsilon = 0;
};

// Some nodes are taken twice.
class Matcher : public RowPatternWalk {
 public:
  using RowPatternWalk::RowPatternWalk;

  // `last` makes the normalized value.
  std::optional<Match> Run(NodeId last) {
    Reset();
    if (ExpandedForm(last)) return Found();
    Reset();
    if (CentredForm(last)) return Found();
    return std::nullopt;
  }

 private:
  void Reset() {
    x_ = kNone;
    match_ = {};
    nodes.clear();
  }
  Match Found() {
    match_.x = x_;
    return match_;
  }
  // Whether the value has one element for each row, or for each element.
  bool FitsRows(ValueId v) const { return IsByRow(v) || ShapeOf(v) == ShapeOf(x_); }

  // x * g + (beta - mean * g), or x * g + NEG(mean) * g
  bool ExpandedForm(NodeId last) {
    if (!Is(graph_, last, "ADD")) return false;
    for (int i : {0, 1}) {
      Reset();
      const NodeId scaled = Step(In(last, i), "MUL");
      if (scaled == kNone) continue;
      for (int k : {0, 1}) {
        Reset();
        nodes.push_back(scaled);
        x_ = In(scaled, k);
        if (!FitsRows(In(scaled, 1 - k)) || !FitsRows(In(last, 1 - i))) continue;
        if (Shift(In(last, 1 - i), In(scaled, 1 - k))) return true;
      }
    }
    return false;
  }
  // beta - mean * g, or the product alone
  bool Shift(ValueId value, ValueId g) {
    if (ShapeOf(x_).rank() == 0) return false;
    value = Unshaped(value);
    if (const NodeId product = Step(value, "MUL"); product != kNone) {
      return MeanTimes(product, g, true);
    }
    if (const NodeId sub = Step(value, "SUB"); sub != kNone) {
      match_.beta = In(sub, 0);
      const NodeId product = Step(In(sub, 1), "MUL");
      return product != kNone && MeanTimes(product, g, false);
    }
    const NodeId add = Step(value, "ADD");
    if (add == kNone) return false;
    for (int i : {0, 1}) {
      const NodeId product = Step(In(add, i), "MUL");
      if (product == kNone) continue;
      match_.beta = In(add, 1 - i);
      return MeanTimes(product, g, true);
    }
    return false;
  }
  bool MeanTimes(NodeId product, ValueId g, bool negated) {
    for (int i : {0, 1}) {
      if (Root(In(product, i)) != Root(g)) continue;
      ValueId mean = In(product, 1 - i);
      if (negated) {
        const NodeId neg = Step(mean, "NEG");
        if (neg == kNone) return false;
        mean = In(neg, 0);
      }
      const bool fits =
          ShapeOf(In(product, 0)) == ShapeOf(In(product, 1)) || IsByRow(In(product, 1 - i));
      return fits && IsShift(match_.beta) && OfWhichMean(mean) == x_ && Gain(g, mean, kNone);
    }
    return false;
  }
  // beta, or 0 or nothing in its place.
  bool IsShift(ValueId value) {
    if (value == kNone) return true;
    if (ScalarConstant(graph_, value) != 0.0f) return IsPerChannel(value);
    match_.beta = kNone;
    return true;
  }
  // r or r * gamma
  bool Gain(ValueId g, ValueId mean, ValueId centred) {
    if (InverseDeviation(g, mean, centred)) return true;
    const NodeId product = Step(g, "MUL");
    if (product == kNone) return false;
    for (int i : {0, 1}) {
      match_.gamma = In(product, 1 - i);
      if (!IsPerChannel(match_.gamma) || !IsByRow(In(product, i))) continue;
      if (InverseDeviation(In(product, i), mean, centred)) return true;
    }
    return false;
  }

  // (x - mean) * r * gamma + beta, without gamma or beta where they are absent
  bool CentredForm(NodeId last) {
    const std::string_view op = graph_.node(last).op->name;
    if (op == "ADD") {
      for (int i : {0, 1}) {
        Reset();
        const NodeId id = graph_.producer(In(last, i));
        if (id == kNone || !NothingFollows(graph_.node(id))) continue;
        nodes.push_back(id);
        if (Product(id) && IsPerChannel(In(last, 1 - i))) {
          match_.beta = In(last, 1 - i);
          return true;
        }
      }
      return false;
    }
    return Product(last);
  }
  // The factors x - mean, r and perhaps gamma in any nesting of two products.
  bool Product(NodeId id) {
    const std::vector<NodeId> before = nodes;
    if (Normalized(id)) return true;
    nodes = before;
    if (!Is(graph_, id, "MUL")) return false;
    for (int i : {0, 1}) {
      nodes = before;
      const NodeId inner = graph_.producer(In(id, i));
      if (inner == kNone) continue;
      nodes.push_back(inner);
      if (Normalized(inner) && IsPerChannel(In(id, 1 - i))) {
        match_.gamma = In(id, 1 - i);
        return true;
      }
      nodes = before;
      // (x - mean) * (r * gamma)
      const NodeId centre = Step(In(id, i), "SUB");
      if (centre == kNone) continue;
      x_ = In(centre, 0);
      if (ShapeOf(x_).rank() == 0) continue;
      if (!IsByRow(In(centre, 1)) || !FitsRows(In(id, 1 - i))) continue;
      if (OfWhichMean(In(centre, 1)) == x_ && Gain(In(id, 1 - i), In(centre, 1), In(id, i))) {
        return true;
      }
    }
    return false;
  }
  // (x - mean) * r, or (x - mean) / SQRT(var + epsilon)
  bool Normalized(NodeId id) {
    const bool quotient = Is(graph_, id, "DIV");
    if (!quotient && !Is(graph_, id, "MUL")) return false;
    if (!NothingFollows(graph_.node(id))) return false;
    const std::vector<NodeId> before = nodes;
    for (int i : {0, 1}) {
      nodes = before;
      if (quotient && i == 1) return false;
      const ValueId centred = In(id, i);
      const NodeId centre = Step(centred, "SUB");
      if (centre == kNone) continue;
      x_ = In(centre, 0);
      const ValueId mean = In(centre, 1);
      const ValueId r = In(id, 1 - i);
      if (!IsByRow(mean) || !IsByRow(r) || OfWhichMean(mean) != x_) continue;
      if (quotient ? Deviation(r, mean, centred) : InverseDeviation(r, mean, centred)) return true;
    }
    return false;
  }

  // Whether `r` is the inverse root of var + epsilon, or `value` the root.
  bool InverseDeviation(ValueId r, ValueId mean, ValueId centred) {
    return IsVariance(WithoutEpsilon(OfWhichInverseRoot(r), &match_.epsilon), mean, centred);
  }
  bool Deviation(ValueId value, ValueId mean, ValueId centred) {
    return IsVariance(WithoutEpsilon(OfWhichRoot(value), &match_.epsilon), mean, centred);
  }
  // The mean of SQUARED_DIFFERENCE(x, mean) or of the square of x - mean, or what the mean of the
  // square of x is above the square of the mean.
  bool IsVariance(ValueId value, ValueId mean, ValueId centred) {
    if (value == kNone) return false;
    if (IsExcess(value, mean)) return true;
    const ValueId squares = OfWhichMean(value);
    if (squares == kNone) return false;
    if (const NodeId difference = Step(squares, "SQUARED_DIFFERENCE"); difference != kNone) {
      const int i = In(difference, 0) == x_ ? 1 : 0;
      return In(difference, 1 - i) == x_ && IsByRow(In(difference, i)) &&
             Unshaped(In(difference, i)) == Root(mean);
    }
    return centred != kNone && OfWhichSquare(squares) == centred;
  }
  bool IsExcess(ValueId value, ValueId mean) {
    const NodeId sub = DifferenceAboveZero(Unshaped(value));
    if (sub == kNone || ShapeOf(In(sub, 0)) != ShapeOf(In(sub, 1))) return false;
    if (OfWhichSquare(OfWhichMean(In(sub, 0))) != x_) return false;
    const ValueId squared = OfWhichSquare(Unshaped(In(sub, 1)));
    return squared != kNone && Root(squared) == Root(mean);
  }
  // The SUB that gives `value`, whether or not its result is clamped at 0; else kNone.
  NodeId DifferenceAboveZero(ValueId value) {
    if (const NodeId clamp = Step(value, "RELU"); clamp != kNone) return Step(In(clamp, 0), "SUB");
    if (const NodeId clamp = Step(value, "MAXIMUM"); clamp != kNone) {
      const int i = ScalarConstant(graph_, In(clamp, 0)) == 0.0f ? 1 : 0;
      return ScalarConstant(graph_, In(clamp, 1 - i)) == 0.0f ? Step(In(clamp, i), "SUB") : kNone;
    }
    const NodeId sub = ProducerIs(graph_, value, "SUB");
    if (sub == kNone) return kNone;
    const kernels::Activation activation = FusedActivation(graph_.node(sub));
    if (activation == kernels::Activation::kRelu) {
      nodes.push_back(sub);
      return sub;
    }
    return Step(value, "SUB");
  }

  Match match_;
};

}  // namespace

bool RecognizeLayerNorm(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "ADD") && !Is(graph, id, "MUL") && !Is(graph, id, "DIV")) return false;
  if (!graph.node(id).tail.empty() || !IsFloat(graph, graph.node(id).outputs[0])) return false;
  Matcher matcher(graph);
  const std::optional<Match> match = matcher.Run(id);
  if (!match) return false;
  // Without its gain or shift, which the next node brings: the pattern ends there.
  const NodeId next = graph.SingleConsumer(graph.node(id).outputs[0]);
  if (next != kNone && graph.node(next).inputs.size() == 2 && Matcher(graph).Run(next)) {
    return false;
  }
  SortUnique(&matcher.nodes);
  if (!OnlyReadWithin(graph, matcher.nodes, id)) return false;
  Node node = MakeNode("FUSELITE_LAYER_NORM", {match->x, match->gamma, match->beta});
  node.params.as<kernels::LayerNormParams>().epsilon = match->epsilon;
  kernels::AppendActivation(FusedActivation(graph.node(id)), &node.tail);
  return ReplacePattern(graph, id, matcher.nodes, std::move(node), "recognize layer normalization",
                        context);
}

}  // namespace fuselite::fusion
