#include <algorithm>

#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/gemm/reference_pixels.h"

namespace fuselite::kernels {
namespace {

struct PixelSums {
  template <class X, class Weights, class Sum>
  void operator()(const PixelGeometry<DepthwiseConv2DShape>& g, const X* input,
                  const Weights& weights, int64_t row, Sum* sums) const {
    const DepthwiseConv2DShape& s = g.shape;
    std::fill_n(sums, s.channels_out, Sum{0});
    g.ForEachTap(input, row, [&](const X* values, int64_t tap) {
      for (int32_t o = 0; o < s.channels_out; ++o) {
        sums[o] +=
            g.template Term<Sum>(values[o / s.multiplier], weights[tap * s.channels_out + o]);
      }
    });
  }
};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildDepthwiseConv2DReference(const OpDescription& op,
                                                              const BuildContext&) {
  const Activation activation = op.params.as<DepthwiseConv2DParams>().activation;
  FUSELITE_ASSIGN_OR_RETURN(const DepthwiseConv2DShape shape, ResolveDepthwiseConv2D(op));
  if (op.inputs[0].type != DataType::kFloat32) {
    FUSELITE_ASSIGN_OR_RETURN(
        QuantizedTail tail, MakeQuantizedTail(op, activation, DataType::kNone, shape.channels_out));
    return MakeQuantizedPixels("depthwise", op, shape, shape.window.taps(), std::move(tail),
                               PixelSums{});
  }
  if (op.inputs[1].type != DataType::kFloat32) {
    FUSELITE_ASSIGN_OR_RETURN(HybridTail tail, MakeHybridTail(op, activation, shape.channels_out));
    return MakeHybridPixels("depthwise", op, shape, /*asymmetric=*/true, std::move(tail),
                            PixelSums{});
  }
  FUSELITE_ASSIGN_OR_RETURN(FloatTail tail, MakeFloatTail(op, activation));
  return MakeFloatPixels("depthwise", op, shape, shape.window.taps(), std::move(tail), PixelSums{});
}

}  // namespace fuselite::kernels
