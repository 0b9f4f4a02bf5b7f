#include "fusion/rewrites/functions/row_pattern.h"

#include <algorithm>

namespace fuselite::fusion {

bool RowPatternWalk::IsPerChannel(ValueId v) const {
  const Shape& shape = ShapeOf(v);
  const int32_t channels = ShapeOf(x_).dim(-1);
  return shape.rank() > 0 && shape.dim(-1) == channels && shape.elements() == channels;
}

bool RowPatternWalk::IsByRow(ValueId v) const {
  const Shape& shape = ShapeOf(v);
  return shape.rank() > 0 && shape.dim(-1) == 1;
}

NodeId RowPatternWalk::ReducesRows(ValueId value, std::string_view op) {
  const NodeId id = Step(Unshaped(value), op);
  if (id == kNone) return kNone;
  const Shape& shape = ShapeOf(In(id, 0));
  const int rank = shape.rank();
  const std::vector<int32_t> axes = *IntConstant(graph_, In(id, 1));
  const auto last = [&](int32_t axis) { return axis == -1 || axis == rank - 1; };
  const auto idle = [&](int32_t axis) { return shape[axis < 0 ? axis + rank : axis] == 1; };
  const bool rows = std::ranges::any_of(axes, last) && std::ranges::all_of(axes, [&](int32_t axis) {
                      return last(axis) || idle(axis);
                    });
  return rows ? id : kNone;
}

ValueId RowPatternWalk::OfWhichMean(ValueId value) {
  if (const NodeId mean = ReducesRows(value, "MEAN"); mean != kNone) return In(mean, 0);
  value = Unshaped(value);
  ValueId sum = kNone, factor = kNone;
  const NodeId quotient = Step(value, "DIV");
  if (quotient != kNone) {
    sum = In(quotient, 0);
    factor = In(quotient, 1);
  } else if (const NodeId product = Step(value, "MUL"); product != kNone) {
    const int i = ScalarConstant(graph_, In(product, 0)) ? 1 : 0;
    sum = In(product, i);
    factor = In(product, 1 - i);
  }
  const NodeId id = sum == kNone ? kNone : ReducesRows(sum, "SUM");
  if (id == kNone) return kNone;
  const auto n = static_cast<float>(ShapeOf(In(id, 0)).dim(-1));
  return IsScalar(graph_, factor, quotient != kNone ? n : 1 / n) ? In(id, 0) : kNone;
}

ValueId RowPatternWalk::OfWhichSquare(ValueId value) {
  if (value == kNone) return kNone;
  if (const NodeId square = Step(value, "SQUARE"); square != kNone) return In(square, 0);
  const NodeId product = Step(value, "MUL");
  return product != kNone && In(product, 0) == In(product, 1) ? In(product, 0) : kNone;
}

ValueId RowPatternWalk::OfWhichRoot(ValueId value) {
  const NodeId root = Step(Unshaped(value), "SQRT");
  return root == kNone ? kNone : In(root, 0);
}

ValueId RowPatternWalk::OfWhichInverseRoot(ValueId value) {
  value = Unshaped(value);
  if (const NodeId rsqrt = Step(value, "RSQRT"); rsqrt != kNone) return In(rsqrt, 0);
  const NodeId inverse = Step(value, "DIV");
  if (inverse == kNone || ScalarConstant(graph_, In(inverse, 0)) != 1.0f) return kNone;
  return OfWhichRoot(In(inverse, 1));
}

ValueId RowPatternWalk::WithoutEpsilon(ValueId value, float* epsilon) {
  const NodeId add = value == kNone ? kNone : Step(Unshaped(value), "ADD");
  if (add == kNone) return kNone;
  for (int i : {0, 1}) {
    const std::optional<float> number = ScalarConstant(graph_, In(add, 1 - i));
    if (!number) continue;
    *epsilon = *number;
    return In(add, i);
  }
  return kNone;
}

ValueId RowPatternWalk::Unshaped(ValueId value) {
  for (NodeId id = ReshapeOf(value); id != kNone; id = ReshapeOf(value)) {
    nodes.push_back(id);
    value = In(id, 0);
  }
  return value;
}

ValueId RowPatternWalk::Root(ValueId value) const {
  for (NodeId id = ReshapeOf(value); id != kNone; id = ReshapeOf(value)) value = In(id, 0);
  return value;
}

NodeId RowPatternWalk::ReshapeOf(ValueId value) const {
  const NodeId id = graph_.producer(value);
  return id != kNone && graph_.node(id).op->reshapes ? id : kNone;
}

}  // namespace fuselite::fusion
