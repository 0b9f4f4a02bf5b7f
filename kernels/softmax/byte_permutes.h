// SOFTMAX of long rows of bytes by AVX512-VBMI's permutations of whole vectors. A row's elements
// differ from its largest by 256 numbers at most: their exponentials are looked up 64 at a time,
// summed by dot products, and what they become is made once for a row.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/numbers/fixed_point.h"
#include "runtime/cpu/isa.h"

namespace fuselite::kernels {

struct PermutedSoftmax {
  // Rows whose sums are taken on together.
  static constexpr int64_t kRows = 16;
  // The reciprocal of larger sums would be that of one that saturates.
  static constexpr int64_t kMaxRow = 4095;

  // `is_signed`: of int8, to int8; else of uint8.
  PermutedSoftmax(const ExpTable& exp, bool is_signed);

  int64_t n = 0, in_pitch = 0, out_pitch = 0;
  // FixedOneOverOnePlus of `rows` values, at most kRows of 64 aligned bytes.
  void (*reciprocals)(int32_t* values, int64_t rows) = nullptr;

  alignas(64) std::array<int32_t, 256> exps;
  // The bytes of what each exponential adds to the sum, the lowest ones first.
  alignas(64) std::array<std::array<uint8_t, 256>, 3> terms;
  // Exponentials from `seen` on, a multiple of 16, never give more than the least result; terms
  // from `summed` on are 0.
  int seen = 0, summed = 0;
  uint8_t in_flip, out_flip;
};

// `rows` rows, at most PermutedSoftmax::kRows.
using SoftmaxPermutes = void(const PermutedSoftmax& p, const uint8_t* in, uint8_t* out,
                             int64_t rows);

// The one for `p`; null where `isa` does not have the instructions.
SoftmaxPermutes* SoftmaxPermutesFor(const PermutedSoftmax& p, Isa isa);

}  // namespace fuselite::kernels
