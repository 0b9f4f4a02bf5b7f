// Kernels around matrix products of float32 activations, quantized at run time, and int8 weights.
#pragma once

#include "jit/gemm_s8.h"
#include "kernels/gemm/hybrid_tail.h"
#include "kernels/operator.h"

namespace fuselite::jit {

// CONV_2D of one group and FULLY_CONNECTED. Up to the tail's functions, to the bit of the
// reference.
Result<std::unique_ptr<Kernel>> BuildConv2DHybrid(const kernels::OpDescription&,
                                                  const kernels::BuildContext&);
Result<std::unique_ptr<Kernel>> BuildFullyConnectedHybrid(const kernels::OpDescription&,
                                                          const kernels::BuildContext&);

// BATCH_MATMUL, whose right operand may be known only at run time. Likewise.
Result<std::unique_ptr<Kernel>> BuildBatchMatMulHybrid(const kernels::OpDescription&,
                                                       const kernels::BuildContext&);

// Whether the operands are what hybrid kernels take: float32, int8 or int4 weights, which may have
// to be `constant`, and a float32 output.
Status CheckHybridOperands(const kernels::OpDescription& op, Isa isa, bool constant = true);

struct FloatRows {
  int64_t line_rows = 1;         // of a line in the sense of FuseTail
  bool row_zero_points = false;  // of Dequantization
  bool per_row = true;
};
// What becomes of the sums of a hybrid operator.
Result<FloatOutput> MakeFloatOutput(const kernels::OpDescription& op,
                                    kernels::Activation activation, kernels::HybridTail tail,
                                    const FloatRows& rows);

// The part of a matrix product that does not depend on where its rows lie, which are asymmetric
// where they have zero points of their own.
Result<GemmS8Problem> HybridProblemOf(const kernels::OpDescription& op,
                                      kernels::Activation activation, kernels::HybridTail tail,
                                      FloatRows rows, Isa isa);

}  // namespace fuselite::jit
