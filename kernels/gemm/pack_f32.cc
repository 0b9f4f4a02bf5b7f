#include <algorithm>
#include <cstring>

#include "kernels/gemm/gemm_f32.h"

namespace fuselite::kernels {
namespace {

// Rows k of one panel whose columns lie side by side in the source.
void CopyRows(const GemmSource& source, int64_t first, int64_t width, int panel, float* to) {
  for (int64_t k = 0; k < source.depth; ++k, to += panel) {
    std::memcpy(to, source.base + k * source.k_stride + first, width * sizeof(float));
    std::fill(to + width, to + panel, 0.0f);
  }
}

// Any strides. Sixteen terms at a time: a cache line of each column, and 16 * panel floats written.
void Transpose(const GemmSource& source, int64_t first, int64_t width, int panel, float* to) {
  constexpr int64_t kTerms = 16;
  for (int64_t k0 = 0; k0 < source.depth; k0 += kTerms) {
    const int64_t terms = std::min(kTerms, source.depth - k0);
    float* block = to + k0 * panel;
    for (int64_t n = 0; n < width; ++n) {
      const float* column = source.base + (first + n) * source.n_stride + k0 * source.k_stride;
      for (int64_t k = 0; k < terms; ++k) block[k * panel + n] = column[k * source.k_stride];
    }
    for (int64_t k = 0; k < terms; ++k) {
      std::fill(block + k * panel + width, block + (k + 1) * panel, 0.0f);
    }
  }
}

}  // namespace

void PackPanelsF32(const GemmSource& source, int panel, int64_t begin, int64_t end, float* packed) {
  for (int64_t p = begin; p < end; ++p) {
    const int64_t first = p * panel;
    const int64_t width = std::min<int64_t>(panel, source.columns - first);
    float* to = packed + first * source.depth;
    if (source.n_stride == 1) {
      CopyRows(source, first, width, panel, to);
    } else {
      Transpose(source, first, width, panel, to);
    }
  }
}

}  // namespace fuselite::kernels
