#include "kernels/gemm/output_tail.h"
#include "kernels/gemm/quantized_operands.h"
#include "kernels/gemm/quantized_tail.h"
#include "kernels/make_kernel.h"
#include "kernels/transpose_conv/terms.h"

namespace fuselite::kernels {
namespace {

Result<std::unique_ptr<Kernel>> BuildFloat(const OpDescription& op, const TransposeConvTerms& g) {
  FUSELITE_ASSIGN_OR_RETURN(FloatTail tail,
                            MakeFloatTail(op, op.params.as<TransposeConvParams>().activation));
  const Work work{.units = g.shape.pixels_out(),
                  .grain = GrainFor(int64_t{g.shape.channels_in} * g.shape.channels_out),
                  .scratch_bytes = g.shape.channels_out * sizeof(float)};
  return MakeKernel(
      "transpose_conv f32 reference", work,
      [g, tail = std::move(tail), output = op.outputs[0], biased = op.has_input(3)](
          const KernelArgs& args, int64_t begin, int64_t end) {
        const auto* w = static_cast<const float*>(args.inputs[1]);
        const auto* x = static_cast<const float*>(args.inputs[2]);
        const auto* bias = biased ? static_cast<const float*>(args.inputs[3]) : nullptr;
        auto* sums = reinterpret_cast<float*>(args.scratch);
        for (int64_t row = begin; row < end; ++row) {
          g.ForChannels(row, [&](int32_t o, int64_t image, int32_t oy, int32_t ox) {
            float sum = 0;
            g.ForTerms(image, oy, ox, o, [&](int64_t i, int64_t j) { sum += x[i] * w[j]; });
            sums[o] = bias == nullptr ? sum : sum + bias[o];
          });
          StoreFloatRow(tail, args, output, row, sums);
        }
      });
}

Result<std::unique_ptr<Kernel>> BuildQuantized(const OpDescription& op,
                                               const TransposeConvTerms& g) {
  const auto& params = op.params.as<TransposeConvParams>();
  FUSELITE_ASSIGN_OR_RETURN(
      QuantizedTail tail,
      MakeQuantizedTail(op, params.activation, params.quantized_bias_type, g.shape.channels_out));
  const size_t sums_bytes = AlignUp(g.shape.channels_out * sizeof(int64_t));
  const Work work{.units = g.shape.pixels_out(),
                  .grain = GrainFor(int64_t{g.shape.channels_in} * g.shape.channels_out),
                  .scratch_bytes = sums_bytes + tail.row_bytes()};
  return MakeKernel(
      internal::Join("transpose_conv ", DataTypeName(op.inputs[2].type), " reference"), work,
      [g, sums_bytes, tail = std::move(tail), w_type = op.inputs[1].type,
       x_type = op.inputs[2].type](const KernelArgs& args, int64_t begin, int64_t end) {
        auto* sums = reinterpret_cast<int64_t*>(args.scratch);
        for (int64_t row = begin; row < end; ++row) {
          WithQuantizedOperands(
              x_type, args.inputs[2], w_type, args.inputs[1], [&](const auto* x, const auto& w) {
                g.ForChannels(row, [&](int32_t o, int64_t image, int32_t oy, int32_t ox) {
                  sums[o] = 0;
                  g.ForTerms(image, oy, ox, o, [&](int64_t i, int64_t j) {
                    sums[o] += int64_t{x[i] + g.x_offset} * (w[j] + g.weights_offset);
                  });
                });
              });
          tail.StoreRow(args, row, sums, args.scratch + sums_bytes);
        }
      });
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildTransposeConvReference(const OpDescription& op,
                                                            const BuildContext&) {
  TransposeConvTerms g{
      .shape = {}, .pitch = op.inputs[2].pitch(), .x_offset = 0, .weights_offset = 0};
  FUSELITE_ASSIGN_OR_RETURN(g.shape, ResolveTransposeConv(op));
  if (op.inputs[1].type == DataType::kFloat32) return BuildFloat(op, g);
  if (op.inputs[2].type == DataType::kFloat32) return BuildTransposeConvHybridReference(op);
  g.x_offset = -op.inputs[2].quantization.zero_point();
  g.weights_offset = -op.inputs[1].quantization.zero_point();
  return BuildQuantized(op, g);
}

}  // namespace fuselite::kernels
