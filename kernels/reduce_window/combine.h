// The functions of windows on two values.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/reduce_window/reduce_window.h"

namespace fuselite::kernels {

// f(x, y). Integers wrap around; the extreme of two equal values is the first of them, and that of
// a NaN and any other value the second.
template <WindowFunction kFunction, class T>
constexpr T Combine(T x, T y) {
  using Number = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
  if constexpr (kFunction == WindowFunction::kAdd) {
    return static_cast<T>(static_cast<Number>(x) + static_cast<Number>(y));
  } else if constexpr (kFunction == WindowFunction::kMul) {
    return static_cast<T>(static_cast<Number>(x) * static_cast<Number>(y));
  } else if constexpr (kFunction == WindowFunction::kMinimum) {
    return x <= y ? x : y;
  } else if constexpr (kFunction == WindowFunction::kMaximum) {
    return x >= y ? x : y;
  } else if constexpr (kFunction == WindowFunction::kAll) {
    return static_cast<T>(x != 0 && y != 0);
  } else {
    return static_cast<T>(x != 0 || y != 0);
  }
}

}  // namespace fuselite::kernels
