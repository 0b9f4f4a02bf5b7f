#include "kernels/conv2d/conv2d.h"
#include "kernels/gemm/output_tail.h"
#include "kernels/make_kernel.h"

namespace fuselite::kernels {
namespace {

// The sum of filter `o` at one window. `image` is the image's first pixel.
float WindowSum(const Conv2DShape& s, const float* image, int64_t pitch, const float* filter,
                int32_t start_y, int32_t start_x, int64_t first_channel) {
  const auto& [y, x] = s.window;
  float sum = 0;
  for (int32_t ky = y.first_tap(start_y); ky < y.last_tap(start_y); ++ky) {
    for (int32_t kx = x.first_tap(start_x); kx < x.last_tap(start_x); ++kx) {
      const int64_t pixel =
          int64_t{start_y + ky * y.dilation} * x.input + (start_x + kx * x.dilation);
      const float* values = image + pixel * pitch + first_channel;
      const float* weights = filter + (int64_t{ky} * x.filter + kx) * s.group_in;
      for (int32_t c = 0; c < s.group_in; ++c) sum += values[c] * weights[c];
    }
  }
  return sum;
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildConv2DReference(const OpDescription& op, const BuildContext&) {
  if (op.inputs[0].type != DataType::kFloat32) return BuildConv2DQuantizedReference(op);
  if (op.inputs[1].type != DataType::kFloat32) return BuildConv2DHybridReference(op);
  FUSELITE_ASSIGN_OR_RETURN(const Conv2DShape shape, ResolveConv2D(op));
  FUSELITE_ASSIGN_OR_RETURN(FloatTail tail,
                            MakeFloatTail(op, op.params.as<Conv2DParams>().activation));
  const Work work{.units = shape.pixels_out(),
                  .grain = GrainFor(shape.depth() * shape.channels_out),
                  .scratch_bytes = shape.channels_out * sizeof(float)};
  return MakeKernel(
      "conv f32 reference", work,
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
          const int32_t start_y = y.start(static_cast<int32_t>(row / x.output % y.output));
          const int32_t start_x = x.start(static_cast<int32_t>(row % x.output));
          for (int32_t o = 0; o < shape.channels_out; ++o) {
            sums[o] = WindowSum(shape, image, pitch, filters + o * shape.depth(), start_y, start_x,
                                int64_t{o / shape.group_out} * shape.group_in);
            if (bias != nullptr) sums[o] += bias[o];
          }
          StoreFloatRow(tail, args, output, row, sums);
        }
      });
}

}  // namespace fuselite::kernels
