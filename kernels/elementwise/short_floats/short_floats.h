// Elementwise operators of float16 and bfloat16, and MUL of complex64, without vectors. Every
// result is TFLite's to the bit.
#pragma once

#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/short_floats/short_float_rows.h"
#include "kernels/numbers/short_floats.h"

namespace fuselite::kernels {

// COS, FLOOR, LOGISTIC, NEG, ROUND, SIN and TANH of float16 and bfloat16, computed in float and
// rounded once; GELU of float16, which rounds after each operation.
Result<std::unique_ptr<Kernel>> BuildShortFloatUnary(const OpDescription& op);

// GELU by erfc, each operation rounded.
Half Gelu(Half x);

// ADD, SUB, MUL, DIV, SQUARED_DIFFERENCE, MAXIMUM and MINIMUM of float16 and bfloat16, computed in
// float and rounded once. What may have a fused activation is then clamped to its range, without
// one to the type's finite numbers.
Result<std::unique_ptr<Kernel>> BuildShortFloatBinary(BinaryKind kind, const OpDescription& op);

// That range; all numbers of the other kinds.
ShortFloatRange RangeOfShortFloats(BinaryKind kind, const OpDescription& op);

// MUL of complex64, without a fused activation.
Result<std::unique_ptr<Kernel>> BuildComplexMul(const OpDescription& op);

}  // namespace fuselite::kernels
