// Operators of float32 over values that lie in memory as bfloat16.
//
// Products under precision=fast round their operands to bfloat16 in any case: values between them
// take half the memory when they are stored so. What an operator says of its float32 values then
// holds of these (OperatorDef::bfloat16_values); its kernels compute in float32 and round what they
// store.
#pragma once

#include <string>

#include "kernels/operator.h"

namespace fuselite::kernels {

// Whether an operand is bfloat16.
bool AnyBFloat16(const OpDescription& op);

// Whether the operator takes values of bfloat16 as it takes float32, and `op` has some. Not where
// all are of a type that TFLite's operator has, too, which rounds as it does: ADD of bfloat16.
bool HasBFloat16Values(const OpDescription& op);

// `op` as if all of these were float32.
OpDescription WithFloat32(OpDescription op);

// What a kernel of floats has in memory, for its name: "f32", or of input and output "bf16/f32".
std::string FloatsInMemory(DataType input, DataType output);

// The candidate's kernel of WithFloat32(op) between copies of the values in float32: inputs before
// it, rounded to the nearest behind it. Precondition: HasBFloat16Values(op).
Result<KernelPlan> PlanWidened(const Candidate& candidate, const OpDescription& op,
                               const PlanContext& context);

}  // namespace fuselite::kernels
