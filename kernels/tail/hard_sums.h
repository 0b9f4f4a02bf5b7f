// Sums of two numbers out of two lists whose fractions are small: what FindFloatSum searches with.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/cpu/isa.h"
#include "runtime/support/function_ref.h"

namespace fuselite::kernels {

// Fractions in units of 2^-32, which wrap around when they are added.
struct SumPlaces {
  static constexpr int kMost = 256;  // the values of a byte
  alignas(64) std::array<uint32_t, kMost> x{}, y{};
  int x_count = 0, y_count = 0;
};

// Calls `use` with the indices of each x and y whose sum, as a number with a sign, is at most
// `limit`. Few of them are expected.
// Precondition: `isa` has vectors.
void ForEachHardSum(const SumPlaces& places, int32_t limit, Isa isa,
                    FunctionRef<void(int x, int y)> use);

}  // namespace fuselite::kernels
