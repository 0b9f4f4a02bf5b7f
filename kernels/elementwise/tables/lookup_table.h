// Functions of one quantized value, made of the scalar calls of TFLite's reference kernels, so that
// they have their bits; and such functions as tables.
#pragma once

#include <functional>
#include <vector>

#include "kernels/numbers/interpolated_table.h"
#include "kernels/operator.h"

namespace fuselite::kernels {

// A unary operator whose input and output are both int8, uint8 or int16, as a function from
// quantized values to ones within the type's range. Fails where TFLite's kernel does: on scales
// that it does not take.
Result<std::function<int32_t(int32_t)>> MakeQuantizedFunction(const OpDescription& op);

// Whether a run fails on values below the zero point, as TFLite's do: SQRT and RSQRT, where the
// type has such values.
bool FailsOnNegatives(const OpDescription& op);

// The 256 entries of a unary operator whose input and output are int8, or uint8: entry uint8(x) is
// uint8(y). Fails where the operator FailsOnNegatives().
Result<std::vector<uint8_t>> MakeLookupTable(const OpDescription& op);

// The table of an int16 operator that TFLite interpolates (EXP, GELU, LOG, RSQRT); fails for
// others.
Result<InterpolatedTable<float>> MakeInterpolatedTable(const OpDescription& op);

// A unary operator that has such a table, with vectors.
Result<std::unique_ptr<Kernel>> BuildInterpolated(const OpDescription& op, Isa isa);

// The kernel of a unary operator of int8 or int16 that also fails where it should, by a table of
// all values. No tail.
Result<KernelPlan> PlanReferenceLookup(const OpDescription& op);

}  // namespace fuselite::kernels
