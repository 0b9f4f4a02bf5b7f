// Rotary position embedding as decoders write it, with x1 and x2 the halves of a head:
//   CONCATENATION(x1 * cos - x2 * sin, x2 * cos + x1 * sin)   or, with tables of the whole width,
//   x * cos + CONCATENATION(-x2, x1) * sin, which Keras puts together by PACK and RESHAPE
#include <algorithm>

#include "fusion/match.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/concatenation/concatenation.h"
#include "kernels/movement/placement.h"
#include "kernels/rotary/rotary.h"

namespace fuselite::fusion {
namespace {

using kernels::RotaryParams;

// Nodes may be taken twice.
class Matcher : public PatternWalk {
 public:
  using PatternWalk::PatternWalk;

  ValueId x = kNone, cos = kNone, sin = kNone;

  // Whether `last` is the CONCATENATION of the first form, or the ADD of the second.
  bool Run(NodeId last) {
    return Is(graph_, last, "ADD") ? OfWholeHeads(last) : JoinsRows(last) && OfHalves(last);
  }

 private:
  bool OfHalves(NodeId concatenation) {
    const NodeId first = Step(In(concatenation, 0), "SUB");
    const NodeId second = Step(In(concatenation, 1), "ADD");
    if (first == kNone || second == kNone) return false;
    const NodeId by_cos = Step(In(first, 0), "MUL"), by_sin = Step(In(first, 1), "MUL");
    if (by_cos == kNone || by_sin == kNone) return false;
    for (int i : {0, 1}) {
      for (int j : {0, 1}) {
        const ValueId x1 = In(by_cos, i), x2 = In(by_sin, j);
        if (!AreHalves(x1, x2)) continue;
        cos = In(by_cos, 1 - i);
        sin = In(by_sin, 1 - j);
        return (IsProduct(In(second, 0), x2, cos) && IsProduct(In(second, 1), x1, sin)) ||
               (IsProduct(In(second, 1), x2, cos) && IsProduct(In(second, 0), x1, sin));
      }
    }
    return false;
  }
  bool OfWholeHeads(NodeId sum) {
    if (FusedActivation(graph_.node(sum)) != kernels::Activation::kNone) return false;
    for (int i : {0, 1}) {
      const NodeId by_sin = ProducerIs(graph_, In(sum, i), "MUL");
      if (by_sin == kNone) continue;
      for (int j : {0, 1}) {
        nodes.clear();
        if (!IsTurned(In(by_sin, j))) continue;
        sin = In(by_sin, 1 - j);
        cos = OtherFactor(In(sum, 1 - i), x);
        return cos != kNone && Step(In(sum, i), "MUL") != kNone;
      }
    }
    return false;
  }
  // Whether this is CONCATENATION(-x2, x1).
  bool IsTurned(ValueId value) {
    const NodeId joined = JoinOf(value);
    if (joined == kNone) return false;
    const ValueId second = Negated(In(joined, 0));
    return second != kNone && AreHalves(In(joined, 1), second) &&
           graph_.value(value).info.shape == graph_.value(x).info.shape;
  }
  // The node that puts two values side by side to make the rows of `value`; else kNone.
  NodeId JoinOf(ValueId value) {
    if (const NodeId concatenation = Step(value, "CONCATENATION"); concatenation != kNone) {
      return JoinsRows(concatenation) ? concatenation : kNone;
    }
    const NodeId reshape = Step(value, "RESHAPE");
    const NodeId pack = reshape == kNone ? kNone : Step(In(reshape, 0), "PACK");
    return pack != kNone && PacksRows(pack, value) ? pack : kNone;
  }
  // Whether each row of two values, which `pack` puts one behind the other, is one of `value`'s.
  bool PacksRows(NodeId pack, ValueId value) const {
    const Node& node = graph_.node(pack);
    const Shape& packed = graph_.value(node.outputs[0]).info.shape;
    const Shape& rows = graph_.value(value).info.shape;
    const int axis = node.params.as<kernels::PackParams>().axis;
    const bool side_by_side = axis == -2 || axis == packed.rank() - 2;
    return node.inputs.size() == 2 && side_by_side && rows.rank() > 0 &&
           rows.dim(-1) == 2 * packed.dim(-1);
  }
  // The value whose negative `value` is; else kNone.
  ValueId Negated(ValueId value) {
    if (const NodeId neg = Step(value, "NEG"); neg != kNone) return In(neg, 0);
    const NodeId mul = Step(value, "MUL");
    if (mul == kNone) return kNone;
    for (int i : {0, 1}) {
      if (ScalarConstant(graph_, In(mul, i)) == -1.0f) return In(mul, 1 - i);
    }
    return kNone;
  }
  // The value by which `factor` is multiplied to give `product`; else kNone.
  ValueId OtherFactor(ValueId product, ValueId factor) {
    const NodeId mul = Step(product, "MUL");
    if (mul == kNone) return kNone;
    for (int i : {0, 1}) {
      if (In(mul, i) == factor) return In(mul, 1 - i);
    }
    return kNone;
  }
  // Whether `concatenation` puts two values side by side.
  bool JoinsRows(NodeId concatenation) const {
    const Node& node = graph_.node(concatenation);
    const int last = graph_.value(node.outputs[0]).info.shape.rank() - 1;
    const int axis = node.params.as<kernels::ConcatenationParams>().axis;
    return node.inputs.size() == 2 && (axis == -1 || axis == last);
  }
  bool IsProduct(ValueId value, ValueId a, ValueId b) {
    const NodeId id = Step(value, "MUL");
    return id != kNone &&
           ((In(id, 0) == a && In(id, 1) == b) || (In(id, 0) == b && In(id, 1) == a));
  }
  // Whether these are the first and the second half of the rows of one value, which is `x` then.
  bool AreHalves(ValueId first, ValueId second) {
    x = IsHalf(first, 0);
    return x != kNone && IsHalf(second, 1) == x;
  }
  // The value whose rows' half 0 or 1 this is; else kNone.
  ValueId IsHalf(ValueId value, int which) {
    const NodeId id = graph_.producer(value);
    if (id == kNone) return kNone;
    const auto placement = kernels::FindPlacement(graph_.Describe(id));
    if (!placement.ok()) return kNone;
    const auto& outputs = graph_.node(id).outputs;
    const int index = static_cast<int>(std::ranges::find(outputs, value) - outputs.begin());
    const auto part = std::ranges::find(placement->parts, index, &kernels::PlacedPart::operand);
    const ValueId whole = In(id, placement->whole);
    const Shape &from = graph_.value(whole).info.shape, &to = graph_.value(value).info.shape;
    if (part == placement->parts.end() || from.rank() == 0) return kNone;
    Shape half = from;
    half.set(from.rank() - 1, from.dim(-1) / 2);
    const int64_t offset = which * int64_t{half.dim(-1)} * static_cast<int64_t>(sizeof(float));
    if (to != half || part->byte_offset != offset) return kNone;
    nodes.push_back(id);
    return whole;
  }
};

}  // namespace

bool RecognizeRotary(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "CONCATENATION") && !IsBare(graph, id, "ADD")) return false;
  Matcher match(graph);
  if (!match.Run(id)) return false;
  SortUnique(&match.nodes);
  if (!OnlyReadWithin(graph, match.nodes, id)) return false;
  Node node = MakeNode("FUSELITE_ROTARY", {match.x, match.cos, match.sin});
  node.params.as<RotaryParams>().width = graph.value(match.x).info.shape.dim(-1);
  return ReplacePattern(graph, id, match.nodes, std::move(node), "recognize rotary embedding",
                        context);
}

}  // namespace fuselite::fusion
