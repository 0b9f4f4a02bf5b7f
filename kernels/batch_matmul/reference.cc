#include "kernels/batch_matmul/batch_matmul.h"
#include "kernels/gemm/output_tail.h"
#include "kernels/make_kernel.h"

namespace fuselite::kernels {

Result<std::unique_ptr<Kernel>> BuildBatchMatMulReference(const OpDescription& op,
                                                          const BuildContext&) {
  FUSELITE_ASSIGN_OR_RETURN(const BatchMatMulShape shape, ResolveBatchMatMul(op));
  FUSELITE_ASSIGN_OR_RETURN(FloatTail tail, MakeFloatTail(op, Activation::kNone));
  const auto& params = op.params.as<BatchMatMulParams>();
  const int64_t x_pitch = op.inputs[0].pitch(), y_pitch = op.inputs[1].pitch();
  // Distances between consecutive rows, terms and columns.
  const int64_t x_row = params.adj_x ? 1 : x_pitch, x_term = params.adj_x ? x_pitch : 1;
  const int64_t y_term = params.adj_y ? 1 : y_pitch, y_column = params.adj_y ? y_pitch : 1;
  const int64_t x_matrix = op.inputs[0].shape.dim(-2) * x_pitch;
  const int64_t y_matrix = op.inputs[1].shape.dim(-2) * y_pitch;
  const int64_t rows = shape.columns == 0 ? 0 : shape.rows * shape.batches();
  const Work work{.units = rows,
                  .grain = GrainFor(int64_t{shape.depth} * shape.columns),
                  .scratch_bytes = shape.columns * sizeof(float)};
  return MakeKernel("batch_matmul f32 reference", work,
                    [=, tail = std::move(tail), output = op.outputs[0]](
                        const KernelArgs& args, int64_t begin, int64_t end) {
                      auto* sums = reinterpret_cast<float*>(args.scratch);
                      for (int64_t row = begin; row < end; ++row) {
                        const auto pair = shape.PairOf(row / shape.rows);
                        const auto* x = static_cast<const float*>(args.inputs[0]) +
                                        pair.x * x_matrix + row % shape.rows * x_row;
                        const auto* y =
                            static_cast<const float*>(args.inputs[1]) + pair.y * y_matrix;
                        for (int64_t c = 0; c < shape.columns; ++c) {
                          float sum = 0;
                          for (int64_t d = 0; d < shape.depth; ++d) {
                            sum += x[d * x_term] * y[d * y_term + c * y_column];
                          }
                          sums[c] = sum;
                        }
                        StoreFloatRow(tail, args, output, row, sums);
                      }
                    });
}

}  // namespace fuselite::kernels
