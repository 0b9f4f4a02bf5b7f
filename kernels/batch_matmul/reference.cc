#include "kernels/batch_matmul/batch_matmul.h"
#include "kernels/gemm/output_tail.h"
#include "kernels/make_kernel.h"

namespace fuselite::kernels {

Result<std::unique_ptr<Kernel>> BuildBatchMatMulReference(const OpDescription& op,
                                                          const BuildContext&) {
  if (op.inputs[0].type != DataType::kFloat32) return BuildBatchMatMulQuantizedReference(op);
  if (op.inputs[1].type != DataType::kFloat32) return BuildBatchMatMulHybridReference(op);
  FUSELITE_ASSIGN_OR_RETURN(const BatchMatMulShape shape, ResolveBatchMatMul(op));
  FUSELITE_ASSIGN_OR_RETURN(FloatTail tail, MakeFloatTail(op, Activation::kNone));
  const BatchMatMulStrides s = StridesOf(op);
  const int64_t rows = shape.columns == 0 ? 0 : shape.rows * shape.batch.count();
  const Work work{.units = rows,
                  .grain = GrainFor(int64_t{shape.depth} * shape.columns),
                  .scratch_bytes = shape.columns * sizeof(float)};
  return MakeKernel("batch_matmul f32 reference", work,
                    [=, tail = std::move(tail), output = op.outputs[0]](
                        const KernelArgs& args, int64_t begin, int64_t end) {
                      auto* sums = reinterpret_cast<float*>(args.scratch);
                      for (int64_t row = begin; row < end; ++row) {
                        const auto pair = shape.batch.PairOf(row / shape.rows);
                        const auto* x = static_cast<const float*>(args.inputs[0]) +
                                        pair.x * s.x_matrix + row % shape.rows * s.x_row;
                        const auto* y =
                            static_cast<const float*>(args.inputs[1]) + pair.y * s.y_matrix;
                        for (int64_t c = 0; c < shape.columns; ++c) {
                          float sum = 0;
                          for (int64_t d = 0; d < shape.depth; ++d) {
                            sum += x[d * s.x_term] * y[d * s.y_term + c * s.y_column];
                          }
                          sums[c] = sum;
                        }
                        StoreFloatRow(tail, args, output, row, sums);
                      }
                    });
}

}  // namespace fuselite::kernels
