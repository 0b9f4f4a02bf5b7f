#include "fusion/rewrites/row_pattern.h"

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

NodeId RowPatternWalk::ReducesRows(ValueId value, std::string_view op, ValueId of) {
  const NodeId id = ReducesRows(value, op);
  return id != kNone && In(id, 0) == of ? id : kNone;
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
