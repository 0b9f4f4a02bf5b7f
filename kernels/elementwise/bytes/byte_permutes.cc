#include "kernels/elementwise/bytes/byte_permutes.h"

#if defined(__x86_64__)
#include <hwy/base.h>
#include <immintrin.h>

// g++ 12 warns of values that its own header leaves undefined on purpose.
HWY_DIAGNOSTICS(push)
#if HWY_COMPILER_GCC_ACTUAL
HWY_DIAGNOSTICS_OFF(disable : 4701, ignored "-Wmaybe-uninitialized")
#endif
HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")
namespace fuselite::kernels {
namespace {

// With intrinsics, since the oldest supported Highway has no such target. Each permutation looks up
// 128 entries; the byte's top bit takes one of the two.
void MapByPermutes(std::span<const uint8_t, 256> table, const uint8_t* in, uint8_t* out,
                   int64_t n) {
  const __m512i first = _mm512_loadu_si512(&table[0]), second = _mm512_loadu_si512(&table[64]),
                third = _mm512_loadu_si512(&table[128]), fourth = _mm512_loadu_si512(&table[192]);
  const auto map = [&](__m512i x) {
    const __m512i lower = _mm512_permutex2var_epi8(first, x, second);
    const __m512i upper = _mm512_permutex2var_epi8(third, x, fourth);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), lower, upper);
  };
  constexpr int64_t kBytes = 64;
  int64_t i = 0;
  for (; i + kBytes <= n; i += kBytes) {
    _mm512_storeu_si512(out + i, map(_mm512_loadu_si512(in + i)));
  }
  if (i == n) return;
  const __mmask64 rest = (uint64_t{1} << (n - i)) - 1;
  _mm512_mask_storeu_epi8(out + i, rest, map(_mm512_maskz_loadu_epi8(rest, in + i)));
}

}  // namespace

HWY_POP_ATTRIBUTES
// Outside of them: this runs on machines without these instructions, too.
BytePermutes* BytePermutesFor(Isa isa) {
  return isa.has(Feature::kAvx512Vbmi) ? MapByPermutes : nullptr;
}

}  // namespace fuselite::kernels
HWY_DIAGNOSTICS(pop)
#else
namespace fuselite::kernels {

BytePermutes* BytePermutesFor(Isa) { return nullptr; }

}  // namespace fuselite::kernels
#endif
