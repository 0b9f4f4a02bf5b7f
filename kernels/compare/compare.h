// EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER and GREATER_EQUAL of values of two scales.
#pragma once

#include "kernels/numbers/quantization.h"
#include "kernels/operator.h"

namespace fuselite::kernels {

// A quantized value as a real one with 8 fraction bits.
struct RealOfQuantized {
  int32_t zero_point;
  FixedPoint scale;
  explicit RealOfQuantized(const Quantization& q)
      : zero_point(q.zero_point()), scale(ToFixedPoint(q.scale())) {}
  int32_t operator()(int32_t x) const {
    return MultiplyByQuantizedMultiplier((x - zero_point) * (1 << 8), scale.multiplier,
                                         scale.shift);
  }
};

// Which of the three gives true.
struct Comparison {
  bool less, equal, greater;
};

// int8, uint8 and int16 with scales, to the bit of the reference.
Result<std::unique_ptr<Kernel>> BuildQuantizedCompareHighway(const OpDescription& op,
                                                             const Comparison& comparison,
                                                             const BuildContext& context);

}  // namespace fuselite::kernels
