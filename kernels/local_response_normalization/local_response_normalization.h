// LOCAL_RESPONSE_NORMALIZATION: x[c] * (bias + alpha * sum of x[k]^2)^-beta, over the channels k
// from c - radius up to but without c + radius: TFLite's reference leaves out the last one.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/operator.h"

namespace fuselite::kernels {

struct LocalResponseParams {
  int32_t radius;
  float bias, alpha, beta;
};

// float32 [batch, height, width, channels], dense, no tail. Squares are added in the order of
// channels; one unit is one pixel.
Result<std::unique_ptr<Kernel>> BuildLocalResponseReference(const OpDescription&,
                                                            const BuildContext&);
// The same sums; powers are within a last bit of the exact ones, with a beta of 0.5 or 0.75 within
// three.
Result<std::unique_ptr<Kernel>> BuildLocalResponseHighway(const OpDescription&,
                                                          const BuildContext&);

}  // namespace fuselite::kernels
