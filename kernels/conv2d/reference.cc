#include "kernels/conv2d/conv2d.h"
#include "kernels/gemm/reference_pixels.h"

namespace fuselite::kernels {
namespace {

struct PixelSums {
  template <class X, class Weights, class Sum>
  void operator()(const PixelGeometry<Conv2DShape>& g, const X* input, const Weights& weights,
                  int64_t row, Sum* sums) const {
    const Conv2DShape& s = g.shape;
    for (int32_t o = 0; o < s.channels_out; ++o) {
      const int64_t first_channel = int64_t{o / s.group_out} * s.group_in;
      Sum sum = 0;
      g.ForEachTap(input, row, [&](const X* values, int64_t tap) {
        const int64_t first = o * s.depth() + tap * s.group_in;
        for (int32_t c = 0; c < s.group_in; ++c) {
          sum += g.template Term<Sum>(values[first_channel + c], weights[first + c]);
        }
      });
      sums[o] = sum;
    }
  }
};

Result<std::unique_ptr<Kernel>> BuildQuantized(const OpDescription& op, const Conv2DShape& shape) {
  const auto& params = op.params.as<Conv2DParams>();
  FUSELITE_ASSIGN_OR_RETURN(
      QuantizedTail tail,
      MakeQuantizedTail(op, params.activation, params.quantized_bias_type, shape.channels_out));
  return MakeQuantizedPixels("conv", op, shape, shape.depth(), std::move(tail), PixelSums{});
}

Result<std::unique_ptr<Kernel>> BuildHybrid(const OpDescription& op, const Conv2DShape& shape) {
  FUSELITE_ASSIGN_OR_RETURN(HybridTail tail, MakeConv2DHybridTail(op, shape));
  return MakeHybridPixels("conv", op, shape, Conv2DHasSeveralScales(op, shape), std::move(tail),
                          PixelSums{});
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildConv2DReference(const OpDescription& op, const BuildContext&) {
  FUSELITE_ASSIGN_OR_RETURN(const Conv2DShape shape, ResolveConv2D(op));
  if (op.inputs[0].type != DataType::kFloat32) return BuildQuantized(op, shape);
  if (op.inputs[1].type != DataType::kFloat32) return BuildHybrid(op, shape);
  FUSELITE_ASSIGN_OR_RETURN(FloatTail tail,
                            MakeFloatTail(op, op.params.as<Conv2DParams>().activation));
  return MakeFloatPixels("conv", op, shape, shape.depth(), std::move(tail), PixelSums{});
}

}  // namespace fuselite::kernels
