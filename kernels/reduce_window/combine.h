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

// use.operator()<T, kFunction>() for `function` and the type in which `type` is computed.
template <class Use>
auto WithWindowFunction(DataType type, WindowFunction function, const Use& use) {
  const auto with = [&]<class T>() {
    switch (function) {
      case WindowFunction::kAdd: return use.template operator()<T, WindowFunction::kAdd>();
      case WindowFunction::kMul: return use.template operator()<T, WindowFunction::kMul>();
      case WindowFunction::kMinimum: return use.template operator()<T, WindowFunction::kMinimum>();
      case WindowFunction::kMaximum: return use.template operator()<T, WindowFunction::kMaximum>();
      case WindowFunction::kAll: return use.template operator()<T, WindowFunction::kAll>();
      default: return use.template operator()<T, WindowFunction::kAny>();
    }
  };
  switch (type) {
    case DataType::kFloat32: return with.template operator()<float>();
    case DataType::kFloat64: return with.template operator()<double>();
    case DataType::kUInt8: return with.template operator()<uint8_t>();
    case DataType::kInt16: return with.template operator()<int16_t>();
    case DataType::kInt32: return with.template operator()<int32_t>();
    case DataType::kInt64: return with.template operator()<int64_t>();
    default: return with.template operator()<int8_t>();
  }
}

}  // namespace fuselite::kernels
