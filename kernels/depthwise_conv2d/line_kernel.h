// Convolutions line by line, around whoever computes a line.
#pragma once

#include "kernels/depthwise_conv2d/line_convolution.h"
#include "kernels/operator.h"

namespace fuselite::kernels {

// The outputs of all images, as the lines see them. `pitch`: elements between pixels.
struct LineOutputs {
  int64_t images = 0, height = 0, width = 0, pitch = 0;
};

// Inputs 1 and 2 of the operation are constant filters and the bias, or none.
KernelPlan PlanLineKernel(const LineOutputs& outputs, std::shared_ptr<const Source> source,
                          std::shared_ptr<const LineConvolution> lines, const PlanContext& context);

}  // namespace fuselite::kernels
