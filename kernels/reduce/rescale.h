// From the sum of quantized terms to the output of MEAN or SUM, as TFLite's reference has it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/numbers/quantization.h"
#include "kernels/operator.h"

namespace fuselite::kernels {

// The zero points are taken off the sum, then one multiplier scales to the output and, for a mean,
// divides by the number of terms.
struct Rescale {
  int64_t input_zero_points;  // of all terms
  int32_t multiplier, shift, zero_point, min, max;

  int32_t operator()(int64_t sum) const {
    const auto centred = static_cast<int32_t>(sum - input_zero_points);
    const int32_t scaled = MultiplyByQuantizedMultiplier(centred, multiplier, shift);
    return std::clamp(scaled + zero_point, min, max);
  }
};

// Precondition: the shape rule took `op`, a MEAN or SUM of quantized values.
Rescale MakeRescale(const OpDescription& op, int64_t terms);

}  // namespace fuselite::kernels
