// Shifts of integers by numbers of places that are values of a run.
#pragma once

#include <type_traits>

namespace fuselite::kernels {

// Negative numbers of places and those from the type's width on, which LiteRT leaves undefined,
// give 0.
template <class T>
T ShiftedLeft(T x, T places) {
  constexpr int kBits = 8 * sizeof(T);
  if (places < 0 || places >= kBits) return 0;
  return static_cast<T>(static_cast<std::make_unsigned_t<T>>(x) << places);
}

}  // namespace fuselite::kernels
