// AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D: images NHWC, padding left out of every window.
#pragma once

#include "kernels/operator.h"
#include "kernels/window.h"

namespace fuselite::kernels {

struct PoolParams {
  Padding padding;
  int32_t stride_w, stride_h;
  int32_t filter_width, filter_height;
  Activation activation;
  // Not in the file: set by rewrites that fold a PAD into MAX_POOL_2D. Every window keeps a tap.
  ExtraPadding extra_padding{};
};

enum class PoolKind { kAverage, kMax, kL2 };

struct PoolShape {
  Window window;
  int32_t batch = 0, channels = 0;
  int64_t pixels_out() const { return int64_t{batch} * window.y.output * window.x.output; }
};

PoolKind PoolKindOf(const OperatorDef& op);
Result<PoolShape> ResolvePool(const OpDescription& op);

// The taps of one output pixel: `rows` x `columns` of the input, never empty, from `first` on.
struct PoolTaps {
  int64_t first;  // pixel of the input
  int32_t rows, columns;
  int32_t count() const { return rows * columns; }
};
PoolTaps TapsOf(const PoolShape& shape, int64_t pixel_out);

// A unit is an output pixel, or a row of them. float32: sums in row-major order of the window,
// divided by the number of taps, then the clamp of the fused activation, then the tail. Average and
// maximum of int8, uint8 and int16: input and output have the same scale; the mean is rounded half
// away from zero (int8, int16) or up (uint8).
Result<std::unique_ptr<Kernel>> BuildPoolReference(const OpDescription&, const BuildContext&);
Result<std::unique_ptr<Kernel>> BuildPoolHighway(const OpDescription&, const BuildContext&);
Result<std::unique_ptr<Kernel>> BuildIntegerPoolHighway(const OpDescription&, const BuildContext&);
// Dense images of few channels, no tail.
Result<std::unique_ptr<Kernel>> BuildPoolRows(const OpDescription&, const BuildContext&);

}  // namespace fuselite::kernels
