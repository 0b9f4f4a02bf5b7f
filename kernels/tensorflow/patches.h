// FlexExtractImagePatches, TensorFlow's: the pixels of each window of an image side by side.
#pragma once

#include "kernels/operator.h"
#include "kernels/window.h"

namespace fuselite::kernels {

// Images NHWC; output[n, y, x] has the window's taps row by row, the channels of each together,
// zeros where a tap lies outside.
struct PatchesParams {
  Padding padding;
  int32_t filter[2], stride[2], dilation[2];  // height, width
};

// The windows on the input, of 4 dimensions.
Result<Window> ResolvePatches(const OpDescription& op);

}  // namespace fuselite::kernels
