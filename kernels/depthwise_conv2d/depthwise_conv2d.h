// DEPTHWISE_CONV_2D: images NHWC, each channel with `multiplier` filters of its own:
// filters [1, KH, KW, C * multiplier], an optional bias [C * multiplier], a fused activation.
#pragma once

#include "kernels/operator.h"
#include "kernels/window.h"

namespace fuselite::kernels {

struct DepthwiseConv2DParams {
  Padding padding;
  int32_t stride_w, stride_h;
  int32_t depth_multiplier;
  Activation activation;
  int32_t dilation_w, dilation_h;
  ExtraPadding extra_padding;  // not in the file: set by rewrites that fold a PAD
};

struct DepthwiseConv2DShape {
  Window window;
  int32_t batch = 0;
  int32_t channels_in = 0, channels_out = 0;
  int32_t multiplier = 1;  // channels_out / channels_in, whatever the parameter says

  int64_t pixels_out() const { return int64_t{batch} * window.y.output * window.x.output; }
};

// Validates ranks, sizes and parameters; everything that a kernel relies on.
Result<DepthwiseConv2DShape> ResolveDepthwiseConv2D(const OpDescription& op);

// y[n][oy][ox][o] = act(bias[o] + sum over ky, kx of
//   x[n][oy * stride_h - top + ky * dilation_h][ox * stride_w - left + kx * dilation_w]
//    [o / multiplier] * w[0][ky][kx][o]), positions outside of the image being zero. Filters and
// biases may be run-time values. Rows (pixels) of input and output may be pitched. float32; the
// reference also 8-bit integers (int8, uint8) and int16 with int8 weights, to the bit of TFLite's
// reference kernels, int4 weights among them; and float32 with int8 weights (hybrid): each image is
// quantized by itself, asymmetrically.
Result<std::unique_ptr<Kernel>> BuildDepthwiseConv2DReference(const OpDescription&,
                                                              const BuildContext&);
// float32, and what the 8-bit part takes.
Result<KernelPlan> PlanDepthwiseConv2DHighway(const OpDescription&, const PlanContext&);
// The part of the Highway version that takes 8-bit activations, or float32 ones that it quantizes,
// with constant 8-bit or 4-bit weights.
Result<KernelPlan> PlanDepthwiseConv2DHighwayS8(const OpDescription&, const PlanContext&);

}  // namespace fuselite::kernels
