// FUSELITE_WEIGHT_ONLY_FULLY_CONNECTED: FULLY_CONNECTED of float32 by weights that the model has
// as small integers or float16 and dequantizes: what takes the time of one row is reading them, so
// they stay as small as they are. Made by rewrites.
#pragma once

#include "kernels/fully_connected/fully_connected.h"
#include "kernels/operator.h"

namespace fuselite::kernels {

// Inputs and parameters are FULLY_CONNECTED's; the weights are constants of int8 or int4 with a
// scale, or one for each unit, and zero points of 0, or of float16:
//   y[r][u] = act(bias[u] + scale[u] * sum over d of x[r][d] * w[u][d])
// so that a weight is never rounded, and the scale once a sum. float32; input rows may be pitched
// where the innermost dimension is the depth; output rows may be.
Result<FullyConnectedShape> ResolveWeightOnly(const OpDescription& op);

// One unit is a row.
Result<std::unique_ptr<Kernel>> BuildWeightOnlyReference(const OpDescription&, const BuildContext&);
// One row alone, with AVX2 or NEON: others read floats again and again, which are then worth their
// memory. One unit is a panel of units.
Result<KernelPlan> PlanWeightOnlyHighway(const OpDescription&, const PlanContext&);

// The scale of each unit; ones for float16.
std::vector<float> WeightOnlyScales(const OpDescription& op, int64_t units);

}  // namespace fuselite::kernels
