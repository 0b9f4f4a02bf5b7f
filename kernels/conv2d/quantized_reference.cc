#include "kernels/conv2d/conv2d.h"
#include "kernels/gemm/dynamic_scale.h"
#include "kernels/gemm/hybrid_tail.h"
#include "kernels/gemm/quantized_operands.h"
#include "kernels/gemm/quantized_tail.h"
#include "kernels/make_kernel.h"

namespace fuselite::kernels {
namespace {

struct Geometry {
  Conv2DShape shape;
  int64_t pitch;
  int32_t x_offset, weights_offset;
};

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

template <class X, class Weights>
void PixelSums(const Geometry& g, const X* input, const Weights& weights, int64_t row,
               int64_t* sums) {
  const auto& [y, x] = g.shape.window;
  const X* image = input + row / x.output / y.output * y.input * x.input * g.pitch;
  const int32_t start_y = y.start(static_cast<int32_t>(row / x.output % y.output));
  const int32_t start_x = x.start(static_cast<int32_t>(row % x.output));
  for (int32_t o = 0; o < g.shape.channels_out; ++o) {
    sums[o] = WindowSum(g, image, weights, start_y, start_x, o);
  }
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildConv2DQuantizedReference(const OpDescription& op) {
  const auto& params = op.params.as<Conv2DParams>();
  Geometry g{.shape = {}, .pitch = op.inputs[0].pitch(), .x_offset = 0, .weights_offset = 0};
  FUSELITE_ASSIGN_OR_RETURN(g.shape, ResolveConv2D(op));
  g.x_offset = -op.inputs[0].quantization.zero_point();
  g.weights_offset = -op.inputs[1].quantization.zero_point();
  FUSELITE_ASSIGN_OR_RETURN(QuantizedTail tail,
                            MakeQuantizedTail(op, params.activation, params.quantized_bias_type, {},
                                              g.shape.channels_out));
  const size_t sums_bytes = AlignUp(g.shape.channels_out * sizeof(int64_t));
  const Work work{.units = g.shape.pixels_out(),
                  .grain = GrainFor(g.shape.depth() * g.shape.channels_out),
                  .scratch_bytes = sums_bytes + tail.row_bytes()};
  return MakeKernel(
      internal::Join("conv ", DataTypeName(op.inputs[0].type), " reference"), work,
      [g, sums_bytes, tail = std::move(tail), x_type = op.inputs[0].type,
       weights_type = op.inputs[1].type](const KernelArgs& args, int64_t begin, int64_t end) {
        auto* sums = reinterpret_cast<int64_t*>(args.scratch);
        for (int64_t row = begin; row < end; ++row) {
          WithQuantizedOperands(
              x_type, args.inputs[0], weights_type, args.inputs[1],
              [&](const auto* x, const auto& weights) { PixelSums(g, x, weights, row, sums); });
          tail.StoreRow(args, row, sums, args.scratch + sums_bytes);
        }
      });
}

Result<std::unique_ptr<Kernel>> BuildConv2DHybridReference(const OpDescription& op) {
  Geometry g{.shape = {}, .pitch = op.inputs[0].shape[3], .x_offset = 0, .weights_offset = 0};
  FUSELITE_ASSIGN_OR_RETURN(g.shape, ResolveConv2D(op));
  FUSELITE_ASSIGN_OR_RETURN(HybridTail tail, MakeConv2DHybridTail(op, g.shape));
  const bool asymmetric = Conv2DHasSeveralScales(op, g.shape);
  const int64_t pixels_in = int64_t{g.shape.window.y.input} * g.shape.window.x.input;
  const int64_t pixels_out = int64_t{g.shape.window.y.output} * g.shape.window.x.output;
  const size_t sums_bytes = AlignUp(g.shape.channels_out * sizeof(int64_t));
  const size_t floats_bytes = AlignUp(tail.row_bytes());
  // An image is quantized as a whole.
  const Work work{
      .units = pixels_out == 0 ? 0 : g.shape.batch,
      .grain = 1,
      .scratch_bytes = sums_bytes + floats_bytes + pixels_in * g.pitch * sizeof(int16_t)};
  return MakeKernel(
      internal::Join("conv hybrid ", DataTypeName(op.inputs[1].type), " reference"), work,
      [=, tail = std::move(tail), pitch = op.inputs[0].pitch(), weights_type = op.inputs[1].type](
          const KernelArgs& args, int64_t begin, int64_t end) {
        auto* sums = reinterpret_cast<int64_t*>(args.scratch);
        auto* floats = reinterpret_cast<float*>(args.scratch + sums_bytes);
        auto* quantized = reinterpret_cast<int16_t*>(args.scratch + sums_bytes + floats_bytes);
        for (int64_t image = begin; image < end; ++image) {
          const auto* x = static_cast<const float*>(args.inputs[0]) + image * pixels_in * pitch;
          const DynamicScale scale =
              QuantizeDynamically(x, pixels_in, g.pitch, pitch, asymmetric, quantized);
          for (int64_t pixel = 0; pixel < pixels_out; ++pixel) {
            WithQuantizedOperands(
                DataType::kInt16, quantized, weights_type, args.inputs[1],
                [&](const auto* q, const auto& weights) { PixelSums(g, q, weights, pixel, sums); });
            tail.StoreRow(args, image * pixels_out + pixel, sums, scale.scale, floats);
          }
        }
      });
}

}  // namespace fuselite::kernels
