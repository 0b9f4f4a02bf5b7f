// LOG_SOFTMAX of 8-bit rows, to the bit of TFLite's reference kernel.
#pragma once

#include "kernels/log_softmax/log_softmax.h"
#include "kernels/numbers/fixed_point.h"

namespace fuselite::kernels {

// Whether scales and zero points are such as TFLite takes: the output's are 1/16 and the largest
// value.
Status CheckQuantizedLogSoftmax(const OpDescription& op);

struct QuantizedLogSoftmax {
  ExpTable exp;
  ScaledDifference difference;  // to Q5.26
  FixedPoint back;              // from Q5.26 to differences; shift <= 0

  // Differences up to this one give the smallest output; above it, one less the logarithm of the
  // sum stays within 32 bits.
  int32_t Excluded(int32_t log_sum) const;
};
Result<QuantizedLogSoftmax> MakeQuantizedLogSoftmax(const OpDescription& op);

// int8 or uint8 to the same type.
Result<std::unique_ptr<Kernel>> BuildQuantizedLogSoftmax(const OpDescription& op);
Result<std::unique_ptr<Kernel>> BuildQuantizedLogSoftmaxHighway(const OpDescription& op,
                                                                const BuildContext& context);

}  // namespace fuselite::kernels
