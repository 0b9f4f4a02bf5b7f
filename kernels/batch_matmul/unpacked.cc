// Products of few rows or columns, which are read where they lie.
#include "kernels/batch_matmul/batch_matmul.h"
#include "kernels/make_kernel.h"
#include "kernels/simd.h"
#include "kernels/unpacked/unpacked_product.h"

namespace fuselite::kernels {
namespace {

// Fewer do not repay packing the others at each run: on a Zen 4, from 2 to 5 of them; of int16,
// whose packing takes 1.4 ns for each value, some 20.
constexpr int64_t kWorthPacking = 4, kWorthPackingInt16 = 16;
// Two columns of bytes, or one of fewer terms than a vector has, are worth packing for so many rows
// (0.7 microseconds for each matrix). One is not: 512 rows by a column of 16 terms take 0.8
// microseconds instead of 1.7, of 256 terms 1.8 instead of 7.9 (Zen 5).
constexpr int64_t kWorthPackingFewColumns = 32, kLeastTerms = 8;

// Whether each column of y is multiplied by the rows of x, instead of each row of x by the columns
// of y.
bool GoesDown(DataType type, const BatchMatMulShape& shape, const BatchMatMulStrides& strides) {
  const bool dense = strides.x_term == 1 && strides.x_row == shape.depth;
  const bool fewer = shape.columns <= shape.rows || strides.y_term != 1;
  const bool many = type != DataType::kFloat32 && shape.rows >= kWorthPackingFewColumns &&
                    (shape.columns > 1 || shape.depth < kLeastTerms);
  return dense && shape.columns < kWorthPacking && fewer && !many;
}

// Whether the columns of y lie beside each other.
bool GoesAcross(const BatchMatMulStrides& strides) {
  return strides.y_column == 1 && strides.y_term > 1;
}

}  // namespace

bool ReadsMatricesUnpacked(const OpDescription& op, const BatchMatMulShape& shape) {
  const DataType type = op.inputs[0].type;
  const bool hybrid = type == DataType::kFloat32 && op.inputs[1].type == DataType::kInt8;
  if (!hybrid && type != op.inputs[1].type) return false;
  if (op.inputs[1].constant() || shape.depth == 0) return false;
  const BatchMatMulStrides strides = StridesOf(op);
  if (type == DataType::kInt16) {
    if (strides.y_term == 1 && shape.columns < kWorthPacking) return true;
    return shape.rows < kWorthPackingInt16 && (strides.y_term == 1 || strides.y_column == 1);
  }
  if (type != DataType::kFloat32 && type != DataType::kInt8) return false;
  if (!hybrid && GoesDown(type, shape, strides)) return true;
  if (type == DataType::kFloat32 && !hybrid && GoesAcross(strides)) {
    return shape.rows < kWorthPacking;
  }
  return strides.y_term == 1 && strides.y_column == shape.depth && shape.rows < kWorthPacking;
}

Result<std::unique_ptr<Kernel>> BuildBatchMatMulUnpacked(const OpDescription& op, Isa isa) {
  if (op.inputs[0].type == DataType::kInt16) return BuildBatchMatMulInt16Rows(op, isa);
  FUSELITE_ASSIGN_OR_RETURN(const BatchMatMulShape shape, ResolveBatchMatMul(op));
  const BatchMatMulStrides s = StridesOf(op);
  const bool hybrid = op.inputs[0].type != op.inputs[1].type;
  const bool down = !hybrid && GoesDown(op.inputs[0].type, shape, s);
  FUSELITE_ASSIGN_OR_RETURN(
      const UnpackedProduct product,
      UnpackedProduct::Make(
          op,
          {.channels = shape.columns,
           .depth = shape.depth,
           .down = down,
           .line_step = down ? s.y_term : s.x_term,
           .term_step = !down && GoesAcross(s) ? s.y_term : 0,
           .asymmetric = op.params.as<BatchMatMulParams>().asymmetric_quantize_inputs},
          isa));
  const int64_t lines = down ? shape.columns : shape.rows;
  const UnpackedUnits units{.lines = shape.batch.count() * lines,
                            .others = down ? shape.rows : shape.columns};
  return MakeKernel(internal::Join("batch_matmul ", product.types(), " unpacked ", SimdName(isa)),
                    {.units = units.count(),
                     .grain = units.grain(shape.depth),
                     .scratch_bytes = product.scratch_bytes()},
                    [=](const KernelArgs& args, int64_t begin, int64_t end) {
                      units.ForEachLine(begin, end, [&](int64_t unit, int64_t first, int64_t n) {
                        const int64_t batch = unit / lines, line = unit % lines;
                        const MatrixBatches::Pair pair = shape.batch.PairOf(batch);
                        const int64_t x = pair.x * s.x_matrix, y = pair.y * s.y_matrix;
                        if (down) {
                          product.Run(args, y + line * s.y_column, x + first * s.x_row, n,
                                      batch * shape.rows + first, line);
                        } else {
                          product.Run(args, x + line * s.x_row, y + first * s.y_column, n,
                                      batch * shape.rows + line, first);
                        }
                      });
                    });
}

}  // namespace fuselite::kernels
