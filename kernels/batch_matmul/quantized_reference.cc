#include "kernels/batch_matmul/batch_matmul.h"
#include "kernels/dynamic_quantization/dynamic_scale.h"
#include "kernels/gemm/hybrid_tail.h"
#include "kernels/gemm/quantized_operands.h"
#include "kernels/gemm/quantized_tail.h"
#include "kernels/make_kernel.h"

namespace fuselite::kernels {

Result<std::unique_ptr<Kernel>> BuildBatchMatMulQuantizedReference(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const BatchMatMulShape shape, ResolveBatchMatMul(op));
  FUSELITE_ASSIGN_OR_RETURN(
      QuantizedTail tail, MakeQuantizedTail(op, Activation::kNone, DataType::kNone, shape.columns));
  const BatchMatMulStrides s = StridesOf(op);
  const int32_t x_offset = -op.inputs[0].quantization.zero_point();
  const int32_t y_offset = -op.inputs[1].quantization.zero_point();
  const int64_t rows = shape.columns == 0 ? 0 : shape.rows * shape.batch.count();
  const size_t sums_bytes = AlignUp(shape.columns * sizeof(int64_t));
  const Work work{.units = rows,
                  .grain = GrainFor(int64_t{shape.depth} * shape.columns),
                  .scratch_bytes = sums_bytes + tail.row_bytes()};
  return MakeKernel(
      internal::Join("batch_matmul ", DataTypeName(op.inputs[0].type), " reference"), work,
      [=, tail = std::move(tail), x_type = op.inputs[0].type, y_type = op.inputs[1].type](
          const KernelArgs& args, int64_t begin, int64_t end) {
        auto* sums = reinterpret_cast<int64_t*>(args.scratch);
        for (int64_t row = begin; row < end; ++row) {
          const MatrixBatches::Pair pair = shape.batch.PairOf(row / shape.rows);
          const int64_t x_base = pair.x * s.x_matrix + row % shape.rows * s.x_row;
          const int64_t y_base = pair.y * s.y_matrix;
          WithQuantizedOperands(x_type, args.inputs[0], y_type, args.inputs[1],
                                [&](const auto* x, const auto& y) {
                                  for (int64_t c = 0; c < shape.columns; ++c) {
                                    int64_t sum = 0;
                                    for (int64_t d = 0; d < shape.depth; ++d) {
                                      sum += int64_t{x[x_base + d * s.x_term] + x_offset} *
                                             (y[y_base + d * s.y_term + c * s.y_column] + y_offset);
                                    }
                                    sums[c] = sum;
                                  }
                                });
          tail.StoreRow(args, row, sums, args.scratch + sums_bytes);
        }
      });
}

Result<std::unique_ptr<Kernel>> BuildBatchMatMulHybridReference(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const BatchMatMulShape shape, ResolveBatchMatMul(op));
  FUSELITE_ASSIGN_OR_RETURN(HybridTail tail, MakeHybridTail(op, Activation::kNone, shape.columns));
  const BatchMatMulStrides s = StridesOf(op);
  const size_t sums_bytes = AlignUp(shape.columns * sizeof(int64_t));
  const size_t floats_bytes = AlignUp(tail.row_bytes());
  const Work work{.units = shape.columns == 0 ? 0 : shape.rows * shape.batch.count(),
                  .grain = GrainFor(int64_t{shape.depth} * shape.columns),
                  .scratch_bytes = sums_bytes + floats_bytes + shape.depth * sizeof(int16_t)};
  return MakeKernel(
      "batch_matmul hybrid int8 reference", work,
      [=, tail = std::move(tail),
       asymmetric = op.params.as<BatchMatMulParams>().asymmetric_quantize_inputs](
          const KernelArgs& args, int64_t begin, int64_t end) {
        auto* sums = reinterpret_cast<int64_t*>(args.scratch);
        auto* floats = reinterpret_cast<float*>(args.scratch + sums_bytes);
        auto* quantized = reinterpret_cast<int16_t*>(args.scratch + sums_bytes + floats_bytes);
        for (int64_t row = begin; row < end; ++row) {
          const MatrixBatches::Pair pair = shape.batch.PairOf(row / shape.rows);
          const auto* x = static_cast<const float*>(args.inputs[0]) + pair.x * s.x_matrix +
                          row % shape.rows * s.x_row;
          // Terms as rows of one value: with adj_x they are not neighbours.
          const DynamicScale scale =
              QuantizeDynamically(x, shape.depth, 1, s.x_term, asymmetric, quantized);
          const auto* y = static_cast<const int8_t*>(args.inputs[1]) + pair.y * s.y_matrix;
          for (int64_t c = 0; c < shape.columns; ++c) {
            sums[c] = 0;
            for (int64_t d = 0; d < shape.depth; ++d) {
              sums[c] += int64_t{quantized[d]} * y[d * s.y_term + c * s.y_column];
            }
          }
          tail.StoreRow(args, row, sums, scale.scale, floats);
        }
      });
}

}  // namespace fuselite::kernels
