// CONV_2D emitted: the contract is kernels/conv2d/conv2d.h.
#pragma once

#include "kernels/operator.h"

namespace fuselite::jit {

// float32, one group, constant filters and bias. Padding is copied around the image first, into
// memory that the threads share; then every window is an affine address.
Result<std::unique_ptr<Kernel>> BuildConv2D(const kernels::OpDescription&,
                                            const kernels::BuildContext&);

}  // namespace fuselite::jit
