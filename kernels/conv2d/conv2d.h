// CONV_2D: images NHWC with filters [O, KH, KW, C / groups], an optional bias [O] and a fused
// activation.
#pragma once

#include "kernels/gemm/hybrid_tail.h"
#include "kernels/operator.h"
#include "kernels/window.h"

namespace fuselite::kernels {

struct Conv2DParams {
  Padding padding;
  int32_t stride_w, stride_h;
  Activation activation;
  int32_t dilation_w, dilation_h;
  DataType quantized_bias_type;
  ExtraPadding extra_padding;  // not in the file: set by rewrites that fold a PAD
};

// A convolution's sizes, resolved. Group g takes the input channels [g, g + 1) * group_in and gives
// the output channels [g, g + 1) * group_out.
struct Conv2DShape {
  Window window;
  int32_t batch = 0;
  int32_t channels_in = 0, channels_out = 0;
  int32_t groups = 1;
  int32_t group_in = 0, group_out = 0;

  int64_t pixels_out() const { return int64_t{batch} * window.y.output * window.x.output; }
  // The terms of one sum.
  int64_t depth() const { return int64_t{window.taps()} * group_in; }
};

// Validates ranks, sizes and parameters; everything that a kernel relies on.
Result<Conv2DShape> ResolveConv2D(const OpDescription& op);

// y[n][oy][ox][o] = act(bias[o] + sum over ky, kx, c of
//   x[n][oy * stride_h - top + ky * dilation_h][ox * stride_w - left + kx * dilation_w][first + c]
//   * w[o][ky][kx][c]),   first = o / group_out * group_in,
// positions outside of the image being zero. Filters and biases may be run-time values. Rows
// (pixels) of input and output may be pitched. float32; the reference also 8-bit integers (int8,
// uint8) and int16 with int8 weights, to the bit of TFLite's reference kernels, int4 weights among
// them; and float32 with int8 or int4 weights (hybrid).
Result<std::unique_ptr<Kernel>> BuildConv2DReference(const OpDescription&, const BuildContext&);

// Whether what follows computes it, rather than a product whose filters are packed. For floats the
// layer alone decides, whatever the number of pixels; bytes also want rows to pack.
bool ReadsFiltersUnpacked(const OpDescription& op);
Result<std::unique_ptr<Kernel>> BuildConv2DUnpacked(const OpDescription& op, Isa isa);

// Float32 activations with integer weights are quantized image by image; asymmetrically where the
// filters' scales differ or there are groups, otherwise symmetrically with the first scale.
bool Conv2DHasSeveralScales(const OpDescription& op, const Conv2DShape& shape);
Result<HybridTail> MakeConv2DHybridTail(const OpDescription& op, const Conv2DShape& shape);

}  // namespace fuselite::kernels
