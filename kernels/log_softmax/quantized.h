// LOG_SOFTMAX of 8-bit rows, to the bit of TFLite's reference kernel.
#pragma once

#include "kernels/log_softmax/log_softmax.h"

namespace fuselite::kernels {

// Whether scales and zero points are such as TFLite takes: the output's are 1/16 and the largest
// value.
Status CheckQuantizedLogSoftmax(const OpDescription& op);

// int8 or uint8 to the same type.
Result<std::unique_ptr<Kernel>> BuildQuantizedLogSoftmax(const OpDescription& op);

}  // namespace fuselite::kernels
