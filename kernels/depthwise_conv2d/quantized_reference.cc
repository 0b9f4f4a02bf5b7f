#include <algorithm>

#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/gemm/quantized_pixels.h"

namespace fuselite::kernels {
namespace {

// Padding is the zero point: it adds nothing.
struct PixelSums {
  template <class X, class Weights>
  void operator()(const PixelGeometry<DepthwiseConv2DShape>& g, const X* input,
                  const Weights& weights, int64_t row, int64_t* sums) const {
    const auto& [y, x] = g.shape.window;
    const X* image = g.Image(input, row);
    const int32_t start_y = g.StartY(row), start_x = g.StartX(row);
    std::fill_n(sums, g.shape.channels_out, 0);
    for (int32_t ky = y.first_tap(start_y); ky < y.last_tap(start_y); ++ky) {
      for (int32_t kx = x.first_tap(start_x); kx < x.last_tap(start_x); ++kx) {
        const int64_t pixel =
            int64_t{start_y + ky * y.dilation} * x.input + (start_x + kx * x.dilation);
        const X* values = image + pixel * g.pitch;
        const int64_t tap = (int64_t{ky} * x.filter + kx) * g.shape.channels_out;
        for (int32_t o = 0; o < g.shape.channels_out; ++o) {
          sums[o] += int64_t{values[o / g.shape.multiplier] + g.x_offset} *
                     (weights[tap + o] + g.weights_offset);
        }
      }
    }
  }
};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildDepthwiseConv2DQuantizedReference(const OpDescription& op) {
  const auto& params = op.params.as<DepthwiseConv2DParams>();
  FUSELITE_ASSIGN_OR_RETURN(const DepthwiseConv2DShape shape, ResolveDepthwiseConv2D(op));
  FUSELITE_ASSIGN_OR_RETURN(
      QuantizedTail tail,
      MakeQuantizedTail(op, params.activation, DataType::kNone, shape.channels_out));
  return MakeQuantizedPixels("depthwise", op, shape, shape.window.taps(), std::move(tail),
                             PixelSums{});
}

Result<std::unique_ptr<Kernel>> BuildDepthwiseConv2DHybridReference(const OpDescription& op) {
  const auto& params = op.params.as<DepthwiseConv2DParams>();
  FUSELITE_ASSIGN_OR_RETURN(const DepthwiseConv2DShape shape, ResolveDepthwiseConv2D(op));
  FUSELITE_ASSIGN_OR_RETURN(HybridTail tail,
                            MakeHybridTail(op, params.activation, shape.channels_out));
  return MakeHybridPixels("depthwise", op, shape, /*asymmetric=*/true, std::move(tail),
                          PixelSums{});
}

}  // namespace fuselite::kernels
