// The elements of bool tensors.
#pragma once

#include <cstdint>

namespace fuselite::kernels {

// True unless its byte is 0. Files and callers may write any byte, and to read another one than 0
// and 1 as a bool is undefined.
struct Truth {
  uint8_t byte = 0;

  Truth() = default;
  Truth(bool x) : byte(x ? 1 : 0) {}
  operator bool() const { return byte != 0; }
};
static_assert(sizeof(Truth) == sizeof(bool));

}  // namespace fuselite::kernels
