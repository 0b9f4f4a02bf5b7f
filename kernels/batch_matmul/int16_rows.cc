// Few rows of int16 by matrices that are known only at run time, which are read where they lie.
#include <algorithm>
#include <string>
#include <utility>

#include "kernels/batch_matmul/batch_matmul.h"
#include "kernels/gemm/quantized_tail.h"
#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"
#include "kernels/simd.h"
#include "kernels/unpacked/int16_rows.h"

namespace fuselite::kernels {
namespace {

// A matrix of up to so many results goes to the output at once: of few columns, a row's share of
// its requantization would take longer than its sums.
constexpr int64_t kTogether = 1024;

}  // namespace

Result<std::unique_ptr<Kernel>> BuildBatchMatMulInt16Rows(const OpDescription& op, Isa isa) {
  FUSELITE_ASSIGN_OR_RETURN(const Int16RowFunctions* const functions, FindInt16Rows(isa));
  FUSELITE_ASSIGN_OR_RETURN(const BatchMatMulShape shape, ResolveBatchMatMul(op));
  const int64_t matrices = shape.batch.count(), columns = shape.columns;
  const bool dense = op.outputs[0].pitch() == columns;
  const bool together = op.tail.empty() && dense && shape.rows * columns <= kTogether;
  const int64_t rows = together ? std::max(shape.rows, 1) : 1;
  OpDescription stored = op;
  if (together) {
    FUSELITE_ASSIGN_OR_RETURN(stored.outputs[0].shape, MakeShape({matrices, rows * columns}));
  }
  FUSELITE_ASSIGN_OR_RETURN(QuantizedTail tail, MakeQuantizedTail(stored, Activation::kNone,
                                                                  DataType::kNone, rows * columns));
  const BatchMatMulStrides s = StridesOf(op);
  const size_t sums_bytes = AlignUp(rows * columns * sizeof(int64_t));
  const size_t tail_bytes = AlignUp(tail.row_bytes());
  const Work work{.units = columns == 0 ? 0 : matrices * shape.rows / rows,
                  .grain = GrainFor(rows * columns * shape.depth / 8),
                  .scratch_bytes = sums_bytes + tail_bytes + shape.depth * sizeof(int16_t)};
  return MakeKernel(
      std::string("batch_matmul int16 rows ") + SimdName(isa), work,
      [=, tail = std::move(tail)](const KernelArgs& args, int64_t begin, int64_t end) {
        auto* const sums = reinterpret_cast<int64_t*>(args.scratch);
        for (int64_t unit = begin; unit < end; ++unit) {
          const int64_t first = unit * rows;
          const MatrixBatches::Pair pair = shape.batch.PairOf(first / shape.rows);
          functions->shorts(
              {.x = static_cast<const int16_t*>(args.inputs[0]) + pair.x * s.x_matrix +
                    first % shape.rows * s.x_row,
               .y = static_cast<const int16_t*>(args.inputs[1]) + pair.y * s.y_matrix,
               .rows = rows,
               .depth = shape.depth,
               .columns = columns,
               .x_row = s.x_row,
               .x_term = s.x_term,
               .y_term = s.y_term,
               .y_column = s.y_column,
               .gathered = reinterpret_cast<int16_t*>(args.scratch + sums_bytes + tail_bytes)},
              sums);
          tail.StoreRow(args, unit, sums, args.scratch + sums_bytes);
        }
      });
}

}  // namespace fuselite::kernels
