// ADD, SUB, MUL, DIV, PRELU and SQUARED_DIFFERENCE of quantized values, to the bit of TFLite's
// reference kernels (kernels/elementwise/quantized/quantized_functions.h).
#pragma once

#include "kernels/elementwise/elementwise.h"

namespace fuselite::kernels {

// Whether the operands' scales and zero points are such as TFLite takes.
Status CheckQuantizedBinary(BinaryKind kind, const OpDescription& op);

// A quantized ADD or SUB as a stage on the values of input `flowing_input`; stage->operand.input is
// the other input's index in `op`. False where that broadcasts in a way that no stage can say, or
// the flowing one broadcasts.
bool QuantizedSumStage(const OpDescription& op, int flowing_input, TailStage* stage,
                       int64_t* rows_per_batch);

// No tail.
Result<KernelPlan> PlanQuantizedBinary(BinaryKind kind, const OpDescription& op,
                                       const PlanContext& context, TailCandidate candidate);

// MUL of int16 to 8 bits: the product of fractions of 2^15, rounded to 16 and then to 8 bits, plus
// the output's zero point; scales do not matter. Operands of one shape.
bool IsNarrowingMul(BinaryKind kind, const OpDescription& op);
Status InferNarrowingMul(OpDescription& op);
Result<std::unique_ptr<Kernel>> BuildNarrowingMul(const OpDescription& op);

// The vector version over any two shapes that broadcast. Of all but DIV; of int16 ADD, SUB and MUL.
Result<KernelPlan> PlanQuantizedRows(BinaryKind kind, const OpDescription& op,
                                     const PlanContext& context);

}  // namespace fuselite::kernels
