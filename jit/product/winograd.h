// CONV_2D by Winograd's algorithm, around emitted products.
#pragma once

#include "kernels/operator.h"

namespace fuselite::jit {

// What kernels::BuildWinograd takes.
Result<std::unique_ptr<Kernel>> BuildWinogradF32(const kernels::OpDescription&,
                                                 const kernels::BuildContext&);
// What kernels::BuildWinogradWith takes.
Result<std::unique_ptr<Kernel>> BuildWinogradF32With(const kernels::OpDescription& op,
                                                     const kernels::BuildContext& context,
                                                     int outputs);

}  // namespace fuselite::jit
