#include "jit/product/bf16.h"

#include <immintrin.h>

#include <algorithm>

// The rest of the file is compiled for any x86-64: who calls this has asked for the feature.
#define FUSELITE_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

namespace fuselite::jit {
namespace {

constexpr int64_t kLanes = 16;

FUSELITE_BF16 inline __mmask16 FirstLanes(int64_t count) {
  return static_cast<__mmask16>((1u << std::clamp<int64_t>(count, 0, kLanes)) - 1);
}

// Rounded, in the lower halves of the lanes.
FUSELITE_BF16 inline __m512i Words(__mmask16 lanes, __m512 values) {
  return _mm512_maskz_cvtepu16_epi32(lanes, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(values)));
}

}  // namespace

FUSELITE_BF16 void RoundToBf16(const float* from, int64_t count, uint16_t* to) {
  int64_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    const __m512 low = _mm512_loadu_ps(from + i), high = _mm512_loadu_ps(from + i + kLanes);
    _mm512_storeu_si512(to + i, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
  }
  for (; i < count; i += kLanes) {
    const __mmask16 lanes = FirstLanes(count - i);
    const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(lanes, from + i));
    _mm256_mask_storeu_epi16(to + i, lanes, reinterpret_cast<__m256i>(rounded));
  }
}

void RoundRowsToBf16(const std::byte* in, std::byte* out, const kernels::CopyDim& rows,
                     int64_t row_bytes) {
  const int64_t count = row_bytes / static_cast<int64_t>(sizeof(float));
  for (int64_t i = 0; i < rows.size; ++i, in += rows.in_stride, out += rows.out_stride) {
    auto* const to = reinterpret_cast<uint16_t*>(out);
    RoundToBf16(reinterpret_cast<const float*>(in), count, to);
    if (count % 2 != 0) to[count] = 0;
  }
}

FUSELITE_BF16 void WidenRowsOfBf16(const std::byte* in, std::byte* out,
                                   const kernels::CopyDim& rows, int64_t row_bytes) {
  const int64_t count = row_bytes / static_cast<int64_t>(sizeof(uint16_t));
  for (int64_t row = 0; row < rows.size; ++row, in += rows.in_stride, out += rows.out_stride) {
    const auto* const from = reinterpret_cast<const uint16_t*>(in);
    auto* const to = reinterpret_cast<float*>(out);
    for (int64_t i = 0; i < count; i += kLanes) {
      const __mmask16 lanes = FirstLanes(count - i);
      const __m512i words =
          _mm512_maskz_cvtepu16_epi32(lanes, _mm256_maskz_loadu_epi16(lanes, from + i));
      _mm512_mask_storeu_epi32(to + i, lanes, _mm512_maskz_slli_epi32(lanes, words, 16));
    }
  }
}

FUSELITE_BF16 void RoundToBf16Pairs(const float* even, const float* odd, int64_t count,
                                    uint32_t* to) {
  const __mmask16 has_odd = odd == nullptr ? 0 : 0xFFFF;
  const float* const second = odd == nullptr ? even : odd;
  for (int64_t i = 0; i < count; i += kLanes) {
    const __mmask16 lanes = FirstLanes(count - i);
    const __m512 low = _mm512_maskz_loadu_ps(lanes, even + i);
    const __m512 high = _mm512_maskz_loadu_ps(lanes & has_odd, second + i);
    const __m512i lower = Words(lanes, low), upper = Words(lanes, high);
    const __m512i shifted = _mm512_maskz_slli_epi32(lanes, upper, 16);
    _mm512_mask_storeu_epi32(to + i, lanes, _mm512_or_si512(lower, shifted));
  }
}

}  // namespace fuselite::jit
