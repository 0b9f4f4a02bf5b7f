// STABLEHLO_REDUCE_WINDOW: (input, initial value), windows over the input spread by base_dilations
// and padded with the initial value. Which function combines them, another subgraph says
// (kernels/stablehlo/region.h).
#pragma once

#include "kernels/reduce_window/reduce_window.h"

namespace fuselite::kernels {

struct StablehloReduceWindowParams {
  int32_t subgraph;
  WindowFunction function;
  IntList sizes, strides, base_dilations, window_dilations;
  PairList padding;  // before the first and behind the last, for each dimension
};

}  // namespace fuselite::kernels
