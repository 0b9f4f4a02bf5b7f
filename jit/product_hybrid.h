// Kernels around matrix products of float32 activations, quantized at run time, and constant int8
// weights.
#pragma once

#include "kernels/operator.h"

namespace fuselite::jit {

// CONV_2D of one group and FULLY_CONNECTED. Up to the tail's functions, to the bit of the
// reference.
Result<std::unique_ptr<Kernel>> BuildConv2DHybrid(const kernels::OpDescription&,
                                                  const kernels::BuildContext&);
Result<std::unique_ptr<Kernel>> BuildFullyConnectedHybrid(const kernels::OpDescription&,
                                                          const kernels::BuildContext&);

}  // namespace fuselite::jit
