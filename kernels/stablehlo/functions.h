// What STABLEHLO's operators compute of two elements of one type.
#pragma once

#include <cstdint>
#include <type_traits>

namespace fuselite::kernels::stablehlo {

// Integers as unsigned ones, which may overflow.
template <class T, class F>
T Wrapped(T x, T y, F f) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(f(static_cast<uint64_t>(x), static_cast<uint64_t>(y)));
  } else {
    return static_cast<T>(f(x, y));
  }
}

struct Sum {
  template <class T>
  T operator()(T x, T y) const {
    return Wrapped(x, y, [](auto a, auto b) { return a + b; });
  }
};
struct Product {
  template <class T>
  T operator()(T x, T y) const {
    return Wrapped(x, y, [](auto a, auto b) { return a * b; });
  }
};
// Chooses x of equal values, and where either is a NaN.
struct Larger {
  template <class T>
  T operator()(T x, T y) const {
    return x < y ? y : x;
  }
};
struct Smaller {
  template <class T>
  T operator()(T x, T y) const {
    return y < x ? y : x;
  }
};

}  // namespace fuselite::kernels::stablehlo
