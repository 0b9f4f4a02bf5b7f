// One row by weights that are read where they lie.
#pragma once

#include <cstdint>

#include "runtime/cpu/isa.h"

namespace fuselite::kernels {

// sums[u] = sum over k of x[k] (w[u * depth + k] - w_zero), u < units. No alignment is needed.
struct UnpackedRow {
  const void* x;  // float, or int16 with its zero point taken off
  const void* w;
  int64_t depth, units;
  int32_t w_zero;
  void* sums;  // float or int32, which wraps around
  // For floats_across: values from the weights of one k to those of the next.
  int64_t term_step = 0;
};
struct UnpackedFunctions {
  void (*floats)(const UnpackedRow& row);
  // The weights of one k lie beside each other, w[k * term_step + u]; sums in the order of k.
  void (*floats_across)(const UnpackedRow& row);
  void (*int8)(const UnpackedRow& row);
  void (*uint8)(const UnpackedRow& row);
};

// The functions with vectors of `isa`; null below SSSE3.
const UnpackedFunctions* FindUnpackedFunctions(Isa isa);
// The reference: sums in the order of k.
const UnpackedFunctions& ScalarUnpackedFunctions();

}  // namespace fuselite::kernels
