// Products of float32 activations, quantized at run time, and int8 weights.
#pragma once

#include "jit/tail/dequantize_emitter.h"
#include "kernels/gemm/hybrid_tail.h"
#include "kernels/operator.h"
#include "kernels/product/description.h"

namespace fuselite::jit {

// CONV_2D, FULLY_CONNECTED and BATCH_MATMUL. Up to the tail's functions, to the bit of the
// reference.
Result<kernels::KernelPlan> PlanProductHybrid(const kernels::OpDescription&,
                                              const kernels::PlanContext&);

// FULLY_CONNECTED, unless its rows are so few that others read its weights faster.
Result<kernels::KernelPlan> PlanFullyConnectedHybrid(const kernels::OpDescription&,
                                                     const kernels::PlanContext&);

// Whether the operands are what hybrid kernels take: float32, int8 or int4 weights, and a float32
// output.
Status CheckHybridOperands(const kernels::OpDescription& op, Isa isa);

struct FloatRows {
  int64_t line_rows = 1;         // as DivideFloatTail takes them
  bool row_zero_points = false;  // of Dequantization
  bool per_row = true;
};
// What becomes of the sums of a hybrid operator.
Result<FloatOutput> MakeFloatOutput(const kernels::OpDescription& op,
                                    kernels::Activation activation, kernels::HybridTail tail,
                                    const FloatRows& rows);

}  // namespace fuselite::jit
