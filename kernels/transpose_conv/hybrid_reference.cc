#include "kernels/dynamic_quantization/dynamic_scale.h"
#include "kernels/gemm/hybrid_tail.h"
#include "kernels/make_kernel.h"
#include "kernels/transpose_conv/terms.h"

namespace fuselite::kernels {

Result<std::unique_ptr<Kernel>> BuildTransposeConvHybridReference(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const TransposeConvShape shape, ResolveTransposeConv(op));
  FUSELITE_ASSIGN_OR_RETURN(HybridTail tail, MakeTransposeConvHybridTail(op, shape.channels_out));
  const TransposeConvTerms g{
      .shape = shape, .pitch = shape.channels_in, .x_offset = 0, .weights_offset = 0};
  const auto& [y, x] = shape.window;
  const int64_t pixels_in = int64_t{y.output} * x.output, pixels_out = int64_t{y.input} * x.input;
  const size_t floats_bytes = AlignUp(shape.channels_out * sizeof(float));
  const Work work{.units = shape.batch,
                  .grain = 1,
                  .scratch_bytes = floats_bytes + pixels_in * shape.channels_in * sizeof(int16_t)};
  return MakeKernel(
      "transpose_conv hybrid int8 reference", work,
      [=, tail = std::move(tail), pitch = op.inputs[2].pitch()](const KernelArgs& args,
                                                                int64_t begin, int64_t end) {
        const auto* w = static_cast<const int8_t*>(args.inputs[1]);
        const auto* bias = tail.bias < 0 ? nullptr : static_cast<const float*>(args.inputs[3]);
        auto* sums = reinterpret_cast<float*>(args.scratch);
        auto* q = reinterpret_cast<int16_t*>(args.scratch + floats_bytes);
        for (int64_t image = begin; image < end; ++image) {
          const auto* from = static_cast<const float*>(args.inputs[2]) + image * pixels_in * pitch;
          const float scale =
              QuantizeDynamically(from, pixels_in, shape.channels_in, pitch, true, q).scale;
          for (int64_t pixel = 0; pixel < pixels_out; ++pixel) {
            g.ForChannels(pixel, [&](int32_t o, int64_t, int32_t oy, int32_t ox) {
              float sum = 0;
              g.ForTerms(0, oy, ox, o, [&](int64_t i, int64_t j) {
                sum += static_cast<float>(q[i] * w[j]) * tail.scales[o] * scale;
              });
              sums[o] = bias == nullptr ? sum : sum + bias[o];
            });
            StoreFloatRow(tail.tail, args, tail.output, image * pixels_out + pixel, sums);
          }
        }
      });
}

}  // namespace fuselite::kernels
