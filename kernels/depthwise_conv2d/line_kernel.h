// Convolutions line by line, around whoever computes a line.
#pragma once

#include "kernels/depthwise_conv2d/line_convolution.h"
#include "kernels/operator.h"

namespace fuselite::kernels {

// The outputs of all images, as the lines see them. `pitch`: elements between pixels.
struct LineOutputs {
  int64_t images = 0, height = 0, width = 0, pitch = 0;
};

// Inputs 1 and 2 of the operation are filters and the bias, or none. Unless both are constants they
// are packed at each run. kUnsupported for such filters in parts of bytes.
Result<KernelPlan> PlanLineKernel(const OpDescription& described, const LineOutputs& outputs,
                                  std::shared_ptr<const Source> source,
                                  std::shared_ptr<const LineConvolution> lines,
                                  const PlanContext& context);

}  // namespace fuselite::kernels
