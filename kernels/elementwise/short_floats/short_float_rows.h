// Elementwise operators of float16 and bfloat16 with vectors of floats.
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

// COS and SIN of float16, FLOOR, LOGISTIC, ROUND and TANH, rows pitched or not, one pass of
// functions of vectors of floats, and GELU of float16 from a table: the reference's results
// (kernels/elementwise/short_floats/short_floats.h) but for the signs of zeros, which every value
// of the types was tried for. kUnsupported for other functions.
Result<KernelPlan> PlanShortFloatUnaryRows(const OpDescription& op, const PlanContext& context);

// Where results are cut off; a NaN stays one.
struct ShortFloatRange {
  float low, high;
};
// `kind` of inputs 0 and 1, which broadcast, rows pitched or not: x + y, x - y, x * y, x / y,
// (x - y)^2, x > y ? x : y, x < y ? x : y, or, reversed, the extremes that give x where a NaN is in
// the way: computed in float, cut off and rounded: the
// reference's bits but for those of NaNs. kUnsupported for other kinds.
Result<std::unique_ptr<Kernel>> BuildShortFloatRows(BinaryKind kind, const OpDescription& op,
                                                    const ShortFloatRange& range,
                                                    const BuildContext& context);

}  // namespace fuselite::kernels
