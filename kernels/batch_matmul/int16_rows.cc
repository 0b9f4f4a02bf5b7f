// Few rows of int16 by matrices that are known only at run time, which are read where they lie:
// sums are of 64 bits, as TFLite's.
//
// The loops are plain ones that the compiler turns into vectors of each target (this file is
// compiled with -O3).
#include <algorithm>
#include <string>
#include <utility>

#include "kernels/batch_matmul/batch_matmul.h"
#include "kernels/gemm/quantized_tail.h"
#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/batch_matmul/int16_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"

#ifndef FUSELITE_KERNELS_BATCH_MATMUL_INT16_ROWS_ONCE_
#define FUSELITE_KERNELS_BATCH_MATMUL_INT16_ROWS_ONCE_
namespace fuselite::kernels {

// sums[r * columns + c] = sum over d of x[r * x_row + d * x_term] * y[d * y_term + c * y_column].
// y_term or y_column is 1.
struct Int16Rows {
  const int16_t *x, *y;
  int64_t rows, depth, columns;
  int64_t x_row, x_term, y_term, y_column;
  int16_t* gathered;  // room for a row of x
};
using Int16RowsFunction = void(const Int16Rows& rows, int64_t* sums);

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {

// A product of two int16 fits into 32 bits.
HWY_INLINE int64_t Dot(const int16_t* HWY_RESTRICT x, const int16_t* HWY_RESTRICT y,
                       int64_t depth) {
  int64_t sum = 0;
  for (int64_t d = 0; d < depth; ++d) sum += int32_t{x[d]} * y[d];
  return sum;
}

HWY_INLINE void AddTimes(int32_t x, const int16_t* HWY_RESTRICT y, int64_t columns,
                         int64_t* HWY_RESTRICT sums) {
  for (int64_t c = 0; c < columns; ++c) sums[c] += x * y[c];
}

HWY_INLINE const int16_t* Gathered(const Int16Rows& p, const int16_t* x) {
  if (p.x_term == 1) return x;
  for (int64_t d = 0; d < p.depth; ++d) p.gathered[d] = x[d * p.x_term];
  return p.gathered;
}

void MultiplyRows(const Int16Rows& p, int64_t* sums) {
  const int16_t* x = p.x;
  for (int64_t r = 0; r < p.rows; ++r, x += p.x_row, sums += p.columns) {
    if (p.y_term == 1) {
      const int16_t* const row = Gathered(p, x);
      for (int64_t c = 0; c < p.columns; ++c) sums[c] = Dot(row, p.y + c * p.y_column, p.depth);
      continue;
    }
    std::fill_n(sums, p.columns, 0);
    for (int64_t d = 0; d < p.depth; ++d) {
      AddTimes(x[d * p.x_term], p.y + d * p.y_term, p.columns, sums);
    }
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

namespace {

// A matrix of up to so many results goes to the output at once: of few columns, a row's share of
// its requantization would take longer than its sums.
constexpr int64_t kTogether = 1024;

}  // namespace

Result<std::unique_ptr<Kernel>> BuildBatchMatMulInt16Rows(const OpDescription& op, Isa isa) {
  constexpr auto kMultiplyRows = FUSELITE_SIMD_TABLE(MultiplyRows);
  FUSELITE_ASSIGN_OR_RETURN(Int16RowsFunction* const multiply, kMultiplyRows.Require(isa));
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
          multiply({.x = static_cast<const int16_t*>(args.inputs[0]) + pair.x * s.x_matrix +
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
#endif
