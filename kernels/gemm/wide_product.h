// The matrix product of 16-bit activations, summed in 64 bits: made of parts whose sums fit into
// 32.
#pragma once

#include <algorithm>

#include "kernels/gemm/gemm_s16.h"
#include "kernels/gemm/wide_row.h"

namespace fuselite::kernels {

struct WideProduct {
  const GemmS16* gemm = nullptr;
  const WideRowFunctions* rows = nullptr;
  int64_t exact_terms = 0;  // ExactTerms of the weights
  // For 16-bit weights: the packed high bytes stand so many values behind the packed low ones.
  // Otherwise 0.
  int64_t high_values = 0;

  // Whether one call of `gemm` sums `depth` terms exactly: Multiply is not needed then.
  bool FitsNarrow(int64_t depth) const { return high_values == 0 && depth <= exact_terms; }

  // totals[r * pitch + n] = the sums of `block`, whose `c` is scratch with rows side by side and
  // whose bias is left to the tail.
  void Multiply(GemmS16Block block, int64_t* totals, int64_t pitch) const {
    const int64_t n = block.columns;
    bool first = true;
    for (int shift = 0; shift <= (high_values > 0 ? 8 : 0); shift += 8) {
      for (block.first = 0; block.first < block.depth; block.first += block.terms) {
        block.terms = std::min(exact_terms, block.depth - block.first);
        gemm->run(block);
        for (int64_t r = 0; r < block.rows; ++r) {
          rows->add(block.c + r * block.c_pitch, n, shift, first, totals + r * pitch);
        }
        first = false;
      }
      block.b += high_values;
    }
    if (!first) return;
    for (int64_t r = 0; r < block.rows; ++r) std::fill_n(totals + r * pitch, n, int64_t{0});
  }
};

}  // namespace fuselite::kernels
