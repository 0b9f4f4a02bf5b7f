// In rows of which length a chain's inner function sees a unit's values.
#pragma once

#include "kernels/elementwise/grid.h"
#include "kernels/tail/tail.h"

namespace fuselite::kernels {

// One long row, where every operand is a scalar or lies like the values; `group` rows as one, where
// others go along the channels, of which there are too few for vectors: they are repeated in
// scratch; or the rows as they are.
struct RowView {
  bool flat = false;
  int64_t group = 1;
};

// `dense`: rows follow each other without gaps. `lanes`: of a vector.
RowView ChooseRowView(const Tail& tail, bool dense, const ElementwiseGrid& grid, int lanes);

// The tail as the inner function sees it.
Tail InRowView(Tail tail, const RowView& view);

}  // namespace fuselite::kernels
