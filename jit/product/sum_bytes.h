// Sums of bytes, as the zero points of weights need them.
#pragma once

#include <emmintrin.h>

#include <cstdint>

#include "kernels/product/byte_groups.h"

namespace fuselite::jit {

// Adds up runs of n bytes, each XORed with `flip`, as unsigned values. Reads nothing beside them:
// the last bytes of a run are loaded together with some before them, which are shifted or masked
// away.
class ByteSum {
 public:
  ByteSum(int64_t n, uint8_t flip);

  // Two sums, in 64 bits each, whose sum is the run's.
  __m128i Halves(const uint8_t* run) const;
  static int64_t Joined(__m128i halves) {
    return _mm_cvtsi128_si64(_mm_add_epi64(halves, _mm_unpackhi_epi64(halves, halves)));
  }
  int64_t operator()(const uint8_t* run) const { return Joined(Halves(run)); }
  // Adds the sum of each row's run to `sums`. Precondition: n < 16; longer ones are summed by
  // kernels::AddByteSums.
  void AddEachShort(const kernels::ByteRows& rows, int32_t* sums) const;

 private:
  __m128i LongHalves(const uint8_t* run) const;
  // Runs of 8 to 15 and of 4 to 7 bytes: the first 8 or 4, and behind them the others.
  __m128i Eights(const uint8_t* run) const {
    const __m128i last = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(run + n_ - 8));
    return _mm_unpacklo_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(run)),
                              _mm_srl_epi64(last, shift_));
  }
  __m128i Fours(const uint8_t* run) const;
  __m128i Few(const uint8_t* run) const;

  int64_t n_;
  __m128i shift_;  // bits of the last load that belong to the first
  __m128i flips_;
  __m128i mask_;  // the bytes of a long run's last load that no load before it has
};

inline __m128i ByteSum::Halves(const uint8_t* run) const {
  if (n_ >= 16) return LongHalves(run);
  const __m128i bytes = n_ >= 8 ? Eights(run) : n_ >= 4 ? Fours(run) : Few(run);
  return _mm_sad_epu8(_mm_xor_si128(bytes, flips_), _mm_setzero_si128());
}

}  // namespace fuselite::jit
