// TRANSPOSE_CONV: the gradient of a convolution by its input. Inputs: the output's shape [4],
// filters [O, KH, KW, I], images NHWC, an optional bias [O].
#pragma once

#include "kernels/gemm/hybrid_tail.h"
#include "kernels/operator.h"
#include "kernels/window.h"

namespace fuselite::kernels {

struct TransposeConvParams {
  Padding padding;
  int32_t stride_w, stride_h;
  Activation activation;
  DataType quantized_bias_type;
};

struct TransposeConvShape {
  // The window of the convolution that leads back: its input is this one's output.
  Window window;
  int32_t batch = 0;
  int32_t channels_in = 0, channels_out = 0;

  int64_t pixels_out() const { return int64_t{batch} * window.y.input * window.x.input; }
};

// Validates ranks, sizes and parameters; everything that a kernel relies on. kDynamicShape where
// the output's shape is not known.
Result<TransposeConvShape> ResolveTransposeConv(const OpDescription& op);

// y[n][oy][ox][o] = act(bias[o] + sum over iy, ix with 0 <= ky < KH and 0 <= kx < KW, and over c,
// of
//   x[n][iy][ix][c] * w[o][ky][kx][c]),  ky = oy + top - iy * stride_h, kx likewise.
// Top and left are the padding of a convolution from the output's size to the input's. Filters and
// biases may be run-time values. Rows (pixels) of input and output may be pitched. float32, 8-bit
// integers (int8, uint8), int16 with int8 weights, to the bit of TFLite's reference kernels; and
// float32 with int8 weights (hybrid), see MakeTransposeConvHybridTail.
Result<std::unique_ptr<Kernel>> BuildTransposeConvReference(const OpDescription&,
                                                            const BuildContext&);
// The part of the reference that takes float32 with int8 weights.
Result<std::unique_ptr<Kernel>> BuildTransposeConvHybridReference(const OpDescription&);

// Float32 activations with int8 weights are quantized image by image, asymmetrically. Unlike those
// of other products, the terms are summed in float32, in order of iy, ix, c, each being
// float(x * w) * weights_scale * scale: TFLite's kernel does so. It needs a scale for each channel.
Result<HybridTail> MakeTransposeConvHybridTail(const OpDescription& op, int32_t channels_out);

}  // namespace fuselite::kernels
