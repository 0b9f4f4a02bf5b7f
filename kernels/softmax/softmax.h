// SOFTMAX: exp(beta x) normalized over the innermost dimension.
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

struct SoftmaxParams {
  float beta;
};

// y[r][c] = exp(beta (x[r][c] - m[r])) / sum_j exp(beta (x[r][j] - m[r])), m[r] the row's largest:
// the subtraction keeps the exponentials within [0, 1]. One unit is one row. Any rank from
// 1 up; rows may be pitched. float32, float16 and quantized (kernels/softmax/quantized.h). The
// reference rounds exponentials of float16 before it divides them by the sum of those that are not
// rounded, as LiteRT does; vectors round the quotient alone.
Result<std::unique_ptr<Kernel>> BuildSoftmaxReference(const OpDescription&, const BuildContext&);
Result<std::unique_ptr<Kernel>> BuildSoftmaxHighway(const OpDescription&, const BuildContext&);

}  // namespace fuselite::kernels
