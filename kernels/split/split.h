// SPLIT, SPLIT_V and UNPACK: an input cut along an axis; UNPACK drops that dimension.
#pragma once

#include "kernels/movement/movement.h"

namespace fuselite::kernels {

// SPLIT takes (axis, input) and cuts into equal parts, SPLIT_V (input, sizes, axis), where one size
// may be -1: what remains.
struct SplitParams {
  int32_t num_splits;
};

struct UnpackParams {
  int32_t num;
  int32_t axis;
};

Result<Movement> PlanSplit(const OpDescription& op);
Result<Movement> PlanSplitV(const OpDescription& op);
Result<Movement> PlanUnpack(const OpDescription& op);

}  // namespace fuselite::kernels
