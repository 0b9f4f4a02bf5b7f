#include "kernels/conv2d/conv2d.h"
#include "kernels/gemm/quantized_pixels.h"

namespace fuselite::kernels {
namespace {

using Geometry = PixelGeometry<Conv2DShape>;

// The sum of filter `o` at one window of `image`. Padding is the zero point, so that it adds
// nothing.
template <class X, class Weights>
int64_t WindowSum(const Geometry& g, const X* image, const Weights& weights, int32_t start_y,
                  int32_t start_x, int32_t o) {
  const auto& [y, x] = g.shape.window;
  const int64_t first_channel = int64_t{o / g.shape.group_out} * g.shape.group_in;
  int64_t sum = 0;
  for (int32_t ky = y.first_tap(start_y); ky < y.last_tap(start_y); ++ky) {
    for (int32_t kx = x.first_tap(start_x); kx < x.last_tap(start_x); ++kx) {
      const int64_t pixel =
          int64_t{start_y + ky * y.dilation} * x.input + (start_x + kx * x.dilation);
      const X* values = image + pixel * g.pitch + first_channel;
      const int64_t tap = o * g.shape.depth() + (int64_t{ky} * x.filter + kx) * g.shape.group_in;
      for (int32_t c = 0; c < g.shape.group_in; ++c) {
        sum += int64_t{values[c] + g.x_offset} * (weights[tap + c] + g.weights_offset);
      }
    }
  }
  return sum;
}

struct PixelSums {
  template <class X, class Weights>
  void operator()(const Geometry& g, const X* input, const Weights& weights, int64_t row,
                  int64_t* sums) const {
    for (int32_t o = 0; o < g.shape.channels_out; ++o) {
      sums[o] = WindowSum(g, g.Image(input, row), weights, g.StartY(row), g.StartX(row), o);
    }
  }
};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildConv2DQuantizedReference(const OpDescription& op) {
  const auto& params = op.params.as<Conv2DParams>();
  FUSELITE_ASSIGN_OR_RETURN(const Conv2DShape shape, ResolveConv2D(op));
  FUSELITE_ASSIGN_OR_RETURN(
      QuantizedTail tail,
      MakeQuantizedTail(op, params.activation, params.quantized_bias_type, shape.channels_out));
  return MakeQuantizedPixels("conv", op, shape, shape.depth(), std::move(tail), PixelSums{});
}

Result<std::unique_ptr<Kernel>> BuildConv2DHybridReference(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const Conv2DShape shape, ResolveConv2D(op));
  FUSELITE_ASSIGN_OR_RETURN(HybridTail tail, MakeConv2DHybridTail(op, shape));
  return MakeHybridPixels("conv", op, shape, Conv2DHasSeveralScales(op, shape), std::move(tail),
                          PixelSums{});
}

}  // namespace fuselite::kernels
