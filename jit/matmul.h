// FULLY_CONNECTED and BATCH_MATMUL emitted: the contracts are in kernels/.
#pragma once

#include "kernels/operator.h"

namespace fuselite::jit {

// float32. Constant weights are packed once; weights known only at run time are packed at each run,
// which takes at least kRowsWorthPacking rows to repay (fewer are refused).
inline constexpr int64_t kRowsWorthPacking = 4;

Result<std::unique_ptr<Kernel>> BuildFullyConnected(const kernels::OpDescription&,
                                                    const kernels::BuildContext&);

// float32; the left operand is not transposed.
Result<std::unique_ptr<Kernel>> BuildBatchMatMul(const kernels::OpDescription&,
                                                 const kernels::BuildContext&);

}  // namespace fuselite::jit
