// The scalar kernels of convolutions, of floats, of integers, and of floats quantized at run time:
// pixel by pixel of the output.
#pragma once

#include <type_traits>
#include <utility>

#include "kernels/dynamic_quantization/dynamic_scale.h"
#include "kernels/gemm/hybrid_tail.h"
#include "kernels/gemm/output_tail.h"
#include "kernels/gemm/quantized_operands.h"
#include "kernels/gemm/quantized_tail.h"
#include "kernels/make_kernel.h"

namespace fuselite::kernels {

// How the activations lie in memory, and what is added to both operands: 0 to floats. `Shape` has
// `batch`, `window`, `channels_out` and pixels_out().
template <class Shape>
struct PixelGeometry {
  Shape shape;
  int64_t pitch;
  int32_t x_offset = 0, weights_offset = 0;

  // The taps of output pixel `row` that lie inside of the image: `take(values, tap)` with the first
  // value of the input's pixel under tap number `tap`. Those outside hold zeros, or zero points.
  template <class X, class Take>
  void ForEachTap(const X* input, int64_t row, Take take) const {
    const auto& [y, x] = shape.window;
    const X* image = input + row / x.output / y.output * y.input * x.input * pitch;
    const int32_t start_y = y.start(static_cast<int32_t>(row / x.output % y.output));
    const int32_t start_x = x.start(static_cast<int32_t>(row % x.output));
    for (int32_t ky = y.first_tap(start_y); ky < y.last_tap(start_y); ++ky) {
      for (int32_t kx = x.first_tap(start_x); kx < x.last_tap(start_x); ++kx) {
        const int64_t pixel =
            int64_t{start_y + ky * y.dilation} * x.input + (start_x + kx * x.dilation);
        take(image + pixel * pitch, int64_t{ky} * x.filter + kx);
      }
    }
  }
  // One term of a sum: of floats, or of integers in 64 bits.
  template <class Sum, class X, class Weight>
  Sum Term(X value, Weight weight) const {
    if constexpr (std::is_floating_point_v<Sum>) {
      return value * weight;
    } else {
      return Sum{value + x_offset} * (weight + weights_offset);
    }
  }
};

// `sums(geometry, x, weights, row, to)` leaves the sums of all channels of output pixel `row` at
// the float* `to`; a pixel costs `terms` multiply-adds a channel.
template <class Shape, class Sums>
std::unique_ptr<Kernel> MakeFloatPixels(std::string_view name, const OpDescription& op,
                                        const Shape& shape, int64_t terms, FloatTail tail,
                                        Sums sums) {
  const PixelGeometry<Shape> geometry{.shape = shape, .pitch = op.inputs[0].pitch()};
  const Work work{.units = shape.pixels_out(),
                  .grain = GrainFor(terms * shape.channels_out),
                  .scratch_bytes = shape.channels_out * sizeof(float)};
  return MakeKernel(internal::Join(name, " f32 reference"), work,
                    [=, tail = std::move(tail), output = op.outputs[0], biased = op.has_input(2)](
                        const KernelArgs& args, int64_t begin, int64_t end) {
                      const auto* bias =
                          biased ? static_cast<const float*>(args.inputs[2]) : nullptr;
                      auto* to = reinterpret_cast<float*>(args.scratch);
                      for (int64_t row = begin; row < end; ++row) {
                        sums(geometry, static_cast<const float*>(args.inputs[0]),
                             static_cast<const float*>(args.inputs[1]), row, to);
                        for (int32_t o = 0; bias != nullptr && o < shape.channels_out; ++o)
                          to[o] += bias[o];
                        StoreFloatRow(tail, args, output, row, to);
                      }
                    });
}

// The kernel for integers, whose sums are int64_t.
template <class Shape, class Sums>
std::unique_ptr<Kernel> MakeQuantizedPixels(std::string_view name, const OpDescription& op,
                                            const Shape& shape, int64_t terms, QuantizedTail tail,
                                            Sums sums) {
  const PixelGeometry<Shape> geometry{.shape = shape,
                                      .pitch = op.inputs[0].pitch(),
                                      .x_offset = -op.inputs[0].quantization.zero_point(),
                                      .weights_offset = -op.inputs[1].quantization.zero_point()};
  const size_t sums_bytes = AlignUp(shape.channels_out * sizeof(int64_t));
  const Work work{.units = shape.pixels_out(),
                  .grain = GrainFor(terms * shape.channels_out),
                  .scratch_bytes = sums_bytes + tail.row_bytes()};
  return MakeKernel(
      internal::Join(name, " ", DataTypeName(op.inputs[0].type), " reference"), work,
      [=, tail = std::move(tail), x_type = op.inputs[0].type, weights_type = op.inputs[1].type](
          const KernelArgs& args, int64_t begin, int64_t end) {
        auto* to = reinterpret_cast<int64_t*>(args.scratch);
        for (int64_t row = begin; row < end; ++row) {
          WithQuantizedOperands(
              x_type, args.inputs[0], weights_type, args.inputs[1],
              [&](const auto* x, const auto& weights) { sums(geometry, x, weights, row, to); });
          tail.StoreRow(args, row, to, args.scratch + sums_bytes);
        }
      });
}

// The kernel for float32 activations, of which every image is quantized as a whole.
template <class Shape, class Sums>
std::unique_ptr<Kernel> MakeHybridPixels(std::string_view name, const OpDescription& op,
                                         const Shape& shape, bool asymmetric, HybridTail tail,
                                         Sums sums) {
  const PixelGeometry<Shape> geometry{.shape = shape, .pitch = op.inputs[0].shape[3]};
  const auto& [y, x] = shape.window;
  const int64_t pixels_in = int64_t{y.input} * x.input, pixels_out = int64_t{y.output} * x.output;
  const size_t sums_bytes = AlignUp(shape.channels_out * sizeof(int64_t));
  const size_t floats_bytes = AlignUp(tail.row_bytes());
  const Work work{
      .units = pixels_out == 0 ? 0 : shape.batch,
      .grain = 1,
      .scratch_bytes = sums_bytes + floats_bytes + pixels_in * geometry.pitch * sizeof(int16_t)};
  return MakeKernel(
      internal::Join(name, " hybrid ", DataTypeName(op.inputs[1].type), " reference"), work,
      [=, tail = std::move(tail), pitch = op.inputs[0].pitch(), weights_type = op.inputs[1].type](
          const KernelArgs& args, int64_t begin, int64_t end) {
        auto* to = reinterpret_cast<int64_t*>(args.scratch);
        auto* floats = reinterpret_cast<float*>(args.scratch + sums_bytes);
        auto* quantized = reinterpret_cast<int16_t*>(args.scratch + sums_bytes + floats_bytes);
        for (int64_t image = begin; image < end; ++image) {
          const auto* from = static_cast<const float*>(args.inputs[0]) + image * pixels_in * pitch;
          const DynamicScale scale =
              QuantizeDynamically(from, pixels_in, geometry.pitch, pitch, asymmetric, quantized);
          for (int64_t pixel = 0; pixel < pixels_out; ++pixel) {
            WithQuantizedOperands(
                DataType::kInt16, quantized, weights_type, args.inputs[1],
                [&](const auto* q, const auto& weights) { sums(geometry, q, weights, pixel, to); });
            tail.StoreRow(args, image * pixels_out + pixel, to, scale.scale, floats);
          }
        }
      });
}

}  // namespace fuselite::kernels
