// Kernels around quantized matrix products: convolutions and fully connected layers with 8-bit
// activations and constant 8-bit weights.
#pragma once

#include <optional>

#include "jit/converted_image.h"
#include "jit/gemm_s8.h"
#include "kernels/operator.h"

namespace fuselite::jit {

// CONV_2D of one group and FULLY_CONNECTED: int8 or uint8 with weights of the same type. To the
// bit of the reference.
Result<std::unique_ptr<Kernel>> BuildConv2DInt8(const kernels::OpDescription&,
                                                const kernels::BuildContext&);
Result<std::unique_ptr<Kernel>> BuildFullyConnectedInt8(const kernels::OpDescription&,
                                                        const kernels::BuildContext&);

// Whether inputs 0 to 2 of `op` are what these kernels take: 8-bit activations, constant weights of
// the same type, a constant int32 bias or none.
Status CheckInt8Operands(const kernels::OpDescription& op);

}  // namespace fuselite::jit
