// FUSELITE_HEADS_MATMUL: for each head of attention a product of matrices, of rows that hold all
// heads side by side, as the layers around attention give and take them. BATCH_MATMUL has the rows
// of a head behind each other instead. Made by rewrites.
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

struct HeadsMatMulParams {
  int32_t heads;
  bool adj_y;  // the heads' matrices y are stored transposed
};

struct HeadsMatMulShape {
  int64_t rows = 0;
  int32_t heads = 0, depth = 0, columns = 0;  // of a head
  Shape output{};
};

// Validates ranks, sizes and parameters; everything that a kernel relies on.
Result<HeadsMatMulShape> ResolveHeadsMatMul(const OpDescription& op);

// z[r][h * columns + c] = sum over d of x[r][h * depth + d] * y[d][h * columns + c], with adj_y
// ... * y[c][h * depth + d]. x is [..., heads * depth], y [..., heads * columns] of `depth` rows,
// with adj_y [..., heads * depth] of `columns` rows; z has the dimensions of x but the last one.
// Rows of all three may be pitched. int8, scaled as BATCH_MATMUL is.
Result<std::unique_ptr<Kernel>> BuildHeadsMatMulReference(const OpDescription&,
                                                          const BuildContext&);

}  // namespace fuselite::kernels
