#include "jit/product/sum_bytes.h"

#include <emmintrin.h>

#include <array>
#include <cstring>

namespace fuselite::jit {

// Runs of a few channels are common: 8 and 4 bytes are summed at a time, too.
int64_t SumBytes(const uint8_t* values, int64_t n, uint8_t flip) {
  const __m128i zero = _mm_setzero_si128();
  const __m128i flips = _mm_set1_epi8(static_cast<char>(flip));
  __m128i sums = zero;
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(values + i));
    sums = _mm_add_epi64(sums, _mm_sad_epu8(_mm_xor_si128(x, flips), zero));
  }
  if (i + 8 <= n) {
    const __m128i x = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(values + i));
    sums = _mm_add_epi64(sums, _mm_sad_epu8(_mm_xor_si128(x, _mm_move_epi64(flips)), zero));
    i += 8;
  }
  if (i + 4 <= n) {
    uint32_t four;
    std::memcpy(&four, values + i, sizeof(four));
    four ^= 0x01010101u * flip;
    sums = _mm_add_epi64(sums, _mm_sad_epu8(_mm_cvtsi32_si128(static_cast<int>(four)), zero));
    i += 4;
  }
  std::array<int64_t, 2> halves;
  std::memcpy(halves.data(), &sums, sizeof(halves));
  int64_t sum = halves[0] + halves[1];
  for (; i < n; ++i) sum += values[i] ^ flip;
  return sum;
}

}  // namespace fuselite::jit
