// BATCH_MATMUL: products of matrices, over batch dimensions that broadcast.
#pragma once

#include "kernels/operator.h"
#include "kernels/product/matrix_batches.h"

namespace fuselite::kernels {

struct BatchMatMulParams {
  bool adj_x, adj_y;  // the operand's matrices are stored transposed
  bool asymmetric_quantize_inputs;
};

struct BatchMatMulShape {
  int32_t rows = 0, depth = 0, columns = 0;
  Shape output{};
  MatrixBatches batch{};
};

// Validates ranks, sizes and parameters; everything that a kernel relies on.
Result<BatchMatMulShape> ResolveBatchMatMul(const OpDescription& op);

// Refuses matrices y that are known only at run time where packing one takes longer than its
// products without: what ReadsMatricesUnpacked, and integers of few products.
Status RequireWorthPacking(const OpDescription& op, const BatchMatMulShape& shape);

// Distances in elements between neighbours in the operands: matrices, rows, terms and columns.
struct BatchMatMulStrides {
  int64_t x_matrix, x_row, x_term;
  int64_t y_matrix, y_term, y_column;
};
BatchMatMulStrides StridesOf(const OpDescription& op);

// z[b][r][c] = sum over d of x[b][r][d] * y[b][d][c]. x is [..., rows, depth], with adj_x
// [..., depth, rows]; y is [..., depth, columns], with adj_y [..., columns, depth]. Ranks 2 to 5;
// batch dimensions broadcast as NumPy's do. Rows of all operands may be pitched. float32; the
// reference also int8 to int8 or int32, int16 to int16, and int16 with int8; and float32 with int8
// (hybrid): each row of x is quantized by itself, and scaled by its own scale whatever the batch
// dimensions are. So does XNNPACK; LiteRT's own kernels take the scales, and with asymmetric
// quantization the sums of columns, of other rows where more than one batch dimension is above 1.
Result<std::unique_ptr<Kernel>> BuildBatchMatMulReference(const OpDescription&,
                                                          const BuildContext&);
// The parts of the reference that take integers, and float32 with integers.
Result<std::unique_ptr<Kernel>> BuildBatchMatMulQuantizedReference(const OpDescription&);
Result<std::unique_ptr<Kernel>> BuildBatchMatMulHybridReference(const OpDescription&);
// Whether what follows computes it: float32 or int8 by a y of the same type that is known only at
// run time, with few rows or few columns, the other side's terms side by side; the same of few rows
// of float32 by int8; or few rows or columns of int16.
bool ReadsMatricesUnpacked(const OpDescription& op, const BatchMatMulShape& shape);
Result<std::unique_ptr<Kernel>> BuildBatchMatMulUnpacked(const OpDescription&, Isa isa);
// The part of it that takes int16.
Result<std::unique_ptr<Kernel>> BuildBatchMatMulInt16Rows(const OpDescription&, Isa isa);

}  // namespace fuselite::kernels
