// LOG_SOFTMAX: the logarithm of softmax over the innermost dimension.
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

// y[r][c] = x[r][c] - m[r] - log(sum_j exp(x[r][j] - m[r])), m[r] the row's largest. float32, and
// 8 bits (kernels/log_softmax/quantized.h) in the reference; rows may be pitched; one unit is one
// row.
Result<std::unique_ptr<Kernel>> BuildLogSoftmaxReference(const OpDescription&, const BuildContext&);
Result<std::unique_ptr<Kernel>> BuildLogSoftmaxHighway(const OpDescription&, const BuildContext&);

}  // namespace fuselite::kernels
