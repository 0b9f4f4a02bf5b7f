// Patterns that work on the rows of a value: on what lies along its innermost dimension.
#pragma once

#include "fusion/match.h"

namespace fuselite::fusion {

// `x_` is the value whose rows are meant; a pattern sets it before it asks.
class RowPatternWalk : public PatternWalk {
 public:
  using PatternWalk::PatternWalk;

 protected:
  const Shape& ShapeOf(ValueId v) const { return graph_.value(v).info.shape; }

  // Whether the value has one float for each element of a row, the same for all rows.
  bool IsPerChannel(ValueId v) const;
  // Whether the value has one element for each row, and repeats along it.
  bool IsByRow(ValueId v) const;
  // The node that makes `value`, kept or not, by SUM or MEAN (`op`) over the innermost dimension
  // and dimensions of size 1, which becomes part of the pattern; else kNone.
  NodeId ReducesRows(ValueId value, std::string_view op);
  // What has these means of its rows, kept or not: of MEAN, of SUM / n or of SUM * (1/n); kNone
  // where `value` is none of them.
  ValueId OfWhichMean(ValueId value);
  // What has this square: of SQUARE, or of a product of one value by itself; else kNone, as for
  // kNone.
  ValueId OfWhichSquare(ValueId value);

  // What has this square root; else kNone.
  ValueId OfWhichRoot(ValueId value);
  // What has this inverse square root, RSQRT or 1 / SQRT; else kNone.
  ValueId OfWhichInverseRoot(ValueId value);
  // What a number, which `*epsilon` becomes, was added to; else kNone, as for kNone.
  ValueId WithoutEpsilon(ValueId value, float* epsilon);

  // What `value` was before it was reshaped; the reshapes become part of the pattern.
  ValueId Unshaped(ValueId value);
  ValueId Root(ValueId value) const;

  ValueId x_ = kNone;

 private:
  NodeId ReshapeOf(ValueId value) const;
};

}  // namespace fuselite::fusion
