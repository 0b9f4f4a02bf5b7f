// MediaPipe's MaxPoolingWithArgmax2D and MaxUnpooling2D, in float32: a pool that tells which tap of
// its window is the largest, and its way back. Images NHWC.
#pragma once

#include "kernels/operator.h"
#include "kernels/window.h"

namespace fuselite::kernels {

struct UnpoolParams {
  Padding padding;
  int32_t stride_w, stride_h, filter_width, filter_height;
  Activation activation;  // of the pool
};

// The pool's windows on its input.
struct PooledImages {
  Window window;
  int32_t batch, channels;
};
Result<PooledImages> ResolvePooled(const OpDescription& op);

// y = act(the largest tap), the first of equal ones; output 1 is the tap's number in its window,
// row by row, plus 0.1: whoever cuts the fraction off is safe from roundings.
Result<std::unique_ptr<Kernel>> BuildMaxPoolWithArgmax(const OpDescription& op,
                                                       const BuildContext&);
Result<std::unique_ptr<Kernel>> BuildMaxPoolWithArgmaxHighway(const OpDescription& op,
                                                              const BuildContext&);
// Output [N, H * filter_height, W * filter_width, C]: each element of input 0 at the tap that input
// 1 names, 0 elsewhere; where windows overlap the last one counts. A run fails on a tap outside of
// the output.
Result<std::unique_ptr<Kernel>> BuildMaxUnpool(const OpDescription& op, const BuildContext&);
// Where windows lie side by side.
Result<std::unique_ptr<Kernel>> BuildMaxUnpoolHighway(const OpDescription& op, const BuildContext&);

}  // namespace fuselite::kernels
