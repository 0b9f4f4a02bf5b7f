// FlexResizeBicubic, TensorFlow's: images NHWC of another height and width, by cubic convolution
// over 4x4 pixels.
#pragma once

#include <array>
#include <vector>

#include "kernels/operator.h"
#include "kernels/resize/resize.h"

namespace fuselite::kernels {

// What one coordinate is made of: the pixels from `first` on, those outside of the image taken from
// its edge.
struct CubicTaps {
  int32_t first;  // from -2 on
  std::array<float, 4> weights;
};
// As TensorFlow has them: the kernel of Keys in steps of 1/1024, with a = -1/2 where
// half_pixel_centers is set, when pixels outside of the image have no weight and the rest is scaled
// to a sum of 1, and with a = -3/4 otherwise.
std::vector<CubicTaps> CubicTapsOf(int32_t in, int32_t out, ResizeParams params);

Result<std::unique_ptr<Kernel>> BuildBicubicReference(const OpDescription&, const BuildContext&);
// The same sums in the same order, but for fused multiply-adds.
Result<KernelPlan> PlanBicubicHighway(const OpDescription&, const PlanContext&);

}  // namespace fuselite::kernels
