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

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/batch_matmul/int16_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"

#ifndef FUSELITE_KERNELS_BATCH_MATMUL_INT16_ROWS_ONCE_
#define FUSELITE_KERNELS_BATCH_MATMUL_INT16_ROWS_ONCE_
namespace fuselite::kernels {

// sums[c] = sum over d of x[d * x_term] * y[d * y_term + c * y_column]. x_term and y_term are 1, or
// y_column is.
struct Int16Row {
  const int16_t *x, *y;
  int64_t depth, columns, x_term, y_term, y_column;
};
using Int16RowFunction = void(const Int16Row& row, int64_t* sums);

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

void MultiplyRow(const Int16Row& row, int64_t* sums) {
  if (row.y_term == 1 && row.x_term == 1) {
    for (int64_t c = 0; c < row.columns; ++c) {
      sums[c] = Dot(row.x, row.y + c * row.y_column, row.depth);
    }
    return;
  }
  std::fill_n(sums, row.columns, 0);
  for (int64_t d = 0; d < row.depth; ++d) {
    AddTimes(row.x[d * row.x_term], row.y + d * row.y_term, row.columns, sums);
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

Result<std::unique_ptr<Kernel>> BuildBatchMatMulInt16Rows(const OpDescription& op, Isa isa) {
  constexpr auto kMultiplyRow = FUSELITE_SIMD_TABLE(MultiplyRow);
  FUSELITE_ASSIGN_OR_RETURN(Int16RowFunction* const multiply, kMultiplyRow.Require(isa));
  FUSELITE_ASSIGN_OR_RETURN(const BatchMatMulShape shape, ResolveBatchMatMul(op));
  FUSELITE_ASSIGN_OR_RETURN(
      QuantizedTail tail, MakeQuantizedTail(op, Activation::kNone, DataType::kNone, shape.columns));
  const BatchMatMulStrides s = StridesOf(op);
  const size_t sums_bytes = AlignUp(shape.columns * sizeof(int64_t));
  const Work work{.units = shape.batch.count() * shape.rows,
                  .grain = GrainFor(int64_t{shape.depth} * shape.columns / 8),
                  .scratch_bytes = sums_bytes + tail.row_bytes()};
  return MakeKernel(
      std::string("batch_matmul int16 rows ") + SimdName(isa), work,
      [=, tail = std::move(tail)](const KernelArgs& args, int64_t begin, int64_t end) {
        auto* const sums = reinterpret_cast<int64_t*>(args.scratch);
        for (int64_t row = begin; row < end; ++row) {
          const MatrixBatches::Pair pair = shape.batch.PairOf(row / shape.rows);
          multiply({.x = static_cast<const int16_t*>(args.inputs[0]) + pair.x * s.x_matrix +
                         row % shape.rows * s.x_row,
                    .y = static_cast<const int16_t*>(args.inputs[1]) + pair.y * s.y_matrix,
                    .depth = shape.depth,
                    .columns = shape.columns,
                    .x_term = s.x_term,
                    .y_term = s.y_term,
                    .y_column = s.y_column},
                   sums);
          tail.StoreRow(args, row, sums, args.scratch + sums_bytes);
        }
      });
}

}  // namespace fuselite::kernels
#endif
