// RESHAPE, SQUEEZE, EXPAND_DIMS, DENSIFY: other dimensions for the same elements in the same order.
// BITCAST: another type for the same bytes.
#pragma once

#include "kernels/movement/movement.h"

namespace fuselite::kernels {

// `new_shape` counts where there is no shape operand; one entry may be -1: what remains. [0] stands
// for a scalar, as old converters wrote it.
struct ReshapeParams {
  IntList new_shape;
};

// The dimensions to drop, all of size 1; none named: every one of size 1.
struct SqueezeParams {
  IntList squeeze_dims;
};

// A copy of all elements. Rows of either side may be pitched; of both only where the rows are of
// one length.
Result<Movement> PlanReshape(const OpDescription& op);

// A copy of all bytes. An innermost dimension of as many narrow elements as one wide element has
// comes or goes with the type. Dense operands of whole bytes.
Result<Movement> PlanBitcast(const OpDescription& op);

}  // namespace fuselite::kernels
