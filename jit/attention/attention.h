// Attention whose products multiply bfloat16, for precision=fast.
#pragma once

#include "kernels/operator.h"

namespace fuselite::jit {

// FUSELITE_ATTENTION of float32: queries, keys, weights and values are rounded to bfloat16, scores
// and means are sums in float32. kUnsupported for so few queries that packing keys and values would
// not be repaid, and for caches, of which masks may hide the most.
Result<kernels::KernelPlan> PlanAttentionBf16(const kernels::OpDescription&,
                                              const kernels::PlanContext&);

}  // namespace fuselite::jit
