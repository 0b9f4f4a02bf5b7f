// What the references of both integer forms of LSTM share: one row of the batch, its states, and
// TFLite's arithmetic on sums.
#pragma once

#include <algorithm>

#include "kernels/lstm/integer.h"
#include "kernels/numbers/fixed_point.h"
#include "kernels/operator.h"

namespace fuselite::kernels {

// Row `b` of the batch. States are variables: they are bound as inputs and written in place.
class IntegerLstmRow {
 protected:
  IntegerLstmRow(const LstmShape& shape, const KernelArgs& args, int64_t b)
      : s_(shape),
        args_(args),
        h_(const_cast<int8_t*>(In<int8_t>(kLstmOutputState)) + b * shape.outputs),
        c_(const_cast<int16_t*>(In<int16_t>(kLstmCellState)) + b * shape.cells) {}

  template <class T>
  const T* In(int i) const {
    return static_cast<const T*>(args_.inputs[i]);
  }

  static int32_t Scale(int32_t x, const FixedPoint& by) {
    return MultiplyByQuantizedMultiplier(x, by.multiplier, by.shift);
  }

  // start + sum of weights (values - zero_point), which wraps around as TFLite's 32-bit sums do.
  static int32_t Dot(const int8_t* weights, const int8_t* values, int64_t n, int32_t zero_point,
                     int32_t start) {
    auto sum = static_cast<uint32_t>(start);
    for (int64_t i = 0; i < n; ++i) {
      sum += static_cast<uint32_t>(weights[i] * (values[i] - zero_point));
    }
    return static_cast<int32_t>(sum);
  }

  // What leaves a projection: within 8 bits, then within `clip`.
  static int8_t Clipped(int32_t y, int32_t clip) {
    return static_cast<int8_t>(std::clamp(std::clamp(y, -128, 127), -clip, clip));
  }

  const LstmShape& s_;
  const KernelArgs& args_;
  int8_t* const h_;
  int16_t* const c_;
};

}  // namespace fuselite::kernels
