#include "kernels/fully_connected/fully_connected.h"
#include "kernels/gemm/quantized_operands.h"
#include "kernels/gemm/quantized_tail.h"
#include "kernels/make_kernel.h"

namespace fuselite::kernels {

Result<std::unique_ptr<Kernel>> BuildFullyConnectedQuantizedReference(const OpDescription& op) {
  const auto& params = op.params.as<FullyConnectedParams>();
  FUSELITE_ASSIGN_OR_RETURN(const FullyConnectedShape shape, ResolveFullyConnected(op));
  FUSELITE_ASSIGN_OR_RETURN(QuantizedTail tail,
                            MakeQuantizedTail(op, params.activation, params.quantized_bias_type,
                                              {.scaling = SumScaling::kReal}, shape.units));
  const size_t sums_bytes = AlignUp(shape.units * sizeof(int64_t));
  const Work work{.units = shape.rows,
                  .grain = GrainFor(int64_t{shape.depth} * shape.units),
                  .scratch_bytes = sums_bytes + tail.row_bytes()};
  const int64_t pitch = op.inputs[0].row_pitch ? op.inputs[0].row_pitch : shape.depth;
  const int32_t x_offset = -op.inputs[0].quantization.zero_point();
  const int32_t w_offset = -op.inputs[1].quantization.zero_point();
  return MakeKernel(
      internal::Join("fully_connected ", DataTypeName(op.inputs[0].type), " reference"), work,
      [=, tail = std::move(tail), x_type = op.inputs[0].type, w_type = op.inputs[1].type](
          const KernelArgs& args, int64_t begin, int64_t end) {
        auto* sums = reinterpret_cast<int64_t*>(args.scratch);
        for (int64_t row = begin; row < end; ++row) {
          WithQuantizedOperands(x_type, args.inputs[0], w_type, args.inputs[1],
                                [&](const auto* x, const auto& w) {
                                  for (int64_t u = 0; u < shape.units; ++u) {
                                    int64_t sum = 0;
                                    for (int64_t d = 0; d < shape.depth; ++d) {
                                      sum += int64_t{x[row * pitch + d] + x_offset} *
                                             (w[u * shape.depth + d] + w_offset);
                                    }
                                    sums[u] = sum;
                                  }
                                });
          tail.StoreRow(args, row, sums, args.scratch + sums_bytes);
        }
      });
}

}  // namespace fuselite::kernels
