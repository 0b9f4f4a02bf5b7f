// SLICE and STRIDED_SLICE: a box of the input.
#pragma once

#include "kernels/movement/movement.h"

namespace fuselite::kernels {

// Bit i of a mask is about entry i of begin, end and strides.
struct StridedSliceParams {
  int32_t begin_mask = 0;        // begin[i] does not count: from the start
  int32_t end_mask = 0;          // end[i] does not count: to the end
  int32_t ellipsis_mask = 0;     // entry i stands for all dimensions that no other entry names
  int32_t new_axis_mask = 0;     // entry i adds a dimension of size 1
  int32_t shrink_axis_mask = 0;  // entry i picks one index and drops the dimension
  bool offset = false;           // end counts from begin
};

// (input, begin, size); a size of -1 reaches to the end.
Result<Movement> PlanSlice(const OpDescription& op);
// (input, begin, end, strides); strides may be negative.
Result<Movement> PlanStridedSlice(const OpDescription& op);

}  // namespace fuselite::kernels
