// Functions of two rows of integers, truth values or floats, with vectors: the arithmetic that
// wraps around, extremes, logic, shifts and comparisons.
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

enum class TypedFunction {
  kAdd,
  kSub,
  kMul,
  kMaximum,
  kMinimum,
  kSquaredDifference,
  kAnd,
  kOr,
  kShiftLeft,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
};

// The kernel that computes `function` of inputs 0 and 1, which broadcast, rows pitched or not: the
// bits of the scalar functions of kernels/elementwise/typed/typed_map.h. Integers wrap around.
// Comparisons give bool (floats with a NaN are unequal and in no order), the others the inputs'
// type; the extreme of a NaN and a number is the first of them. Refuses the types that a function
// has no vectors for.
Result<std::unique_ptr<Kernel>> BuildTypedRows(TypedFunction function, const OpDescription& op,
                                               const BuildContext& context);

}  // namespace fuselite::kernels
