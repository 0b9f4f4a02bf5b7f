// L2_NORMALIZATION: each row divided by its Euclidean norm.
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

struct L2NormalizationParams {
  Activation activation;  // kNone: TFLite takes no other
};

// y[r][c] = x[r][c] / max(sqrt(sum_j x[r][j]^2), 1e-6). float32; rows may be pitched; one unit is
// one row. int8 and uint8 with TFLite's fixed-point inverse square root: the output's scale is
// 1/128, its zero point 0 or 128.
Result<std::unique_ptr<Kernel>> BuildL2NormalizationReference(const OpDescription&,
                                                              const BuildContext&);
Result<std::unique_ptr<Kernel>> BuildL2NormalizationHighway(const OpDescription&,
                                                            const BuildContext&);

}  // namespace fuselite::kernels
