#include <algorithm>

#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/gemm/output_tail.h"
#include "kernels/make_kernel.h"

namespace fuselite::kernels {
namespace {

// The sums of all channels at one window. `image` is the image's first pixel.
void WindowSums(const DepthwiseConv2DShape& s, const float* image, int64_t pitch,
                const float* filters, int32_t start_y, int32_t start_x, float* sums) {
  const auto& [y, x] = s.window;
  std::fill_n(sums, s.channels_out, 0.0f);
  for (int32_t ky = y.first_tap(start_y); ky < y.last_tap(start_y); ++ky) {
    for (int32_t kx = x.first_tap(start_x); kx < x.last_tap(start_x); ++kx) {
      const int64_t pixel =
          int64_t{start_y + ky * y.dilation} * x.input + (start_x + kx * x.dilation);
      const float* values = image + pixel * pitch;
      const float* weights = filters + (int64_t{ky} * x.filter + kx) * s.channels_out;
      for (int32_t o = 0; o < s.channels_out; ++o) {
        sums[o] += values[o / s.multiplier] * weights[o];
      }
    }
  }
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildDepthwiseConv2DReference(const OpDescription& op,
                                                              const BuildContext&) {
  if (op.inputs[0].type != DataType::kFloat32) return BuildDepthwiseConv2DQuantizedReference(op);
  if (op.inputs[1].type != DataType::kFloat32) return BuildDepthwiseConv2DHybridReference(op);
  FUSELITE_ASSIGN_OR_RETURN(const DepthwiseConv2DShape shape, ResolveDepthwiseConv2D(op));
  FUSELITE_ASSIGN_OR_RETURN(FloatTail tail,
                            MakeFloatTail(op, op.params.as<DepthwiseConv2DParams>().activation));
  const Work work{.units = shape.pixels_out(),
                  .grain = GrainFor(int64_t{shape.window.taps()} * shape.channels_out),
                  .scratch_bytes = shape.channels_out * sizeof(float)};
  return MakeKernel(
      "depthwise f32 reference", work,
      [shape, tail = std::move(tail), pitch = op.inputs[0].pitch(), output = op.outputs[0],
       biased = op.has_input(2)](const KernelArgs& args, int64_t begin, int64_t end) {
        const auto* filters = static_cast<const float*>(args.inputs[1]);
        const auto* bias = biased ? static_cast<const float*>(args.inputs[2]) : nullptr;
        auto* sums = reinterpret_cast<float*>(args.scratch);
        const auto& [y, x] = shape.window;
        for (int64_t row = begin; row < end; ++row) {
          const int64_t n = row / x.output / y.output;
          const auto* image =
              static_cast<const float*>(args.inputs[0]) + n * y.input * x.input * pitch;
          WindowSums(shape, image, pitch, filters,
                     y.start(static_cast<int32_t>(row / x.output % y.output)),
                     x.start(static_cast<int32_t>(row % x.output)), sums);
          for (int32_t o = 0; bias != nullptr && o < shape.channels_out; ++o) sums[o] += bias[o];
          StoreFloatRow(tail, args, output, row, sums);
        }
      });
}

}  // namespace fuselite::kernels
