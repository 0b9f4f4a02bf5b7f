#include "kernels/softmax/byte_permutes.h"

#include <cstring>

#include "kernels/softmax/quantized.h"

#if defined(__x86_64__)
#include <hwy/base.h>
#include <immintrin.h>
#endif

namespace fuselite::kernels {

PermutedSoftmax::PermutedSoftmax(const ExpTable& exp, bool is_signed)
    : exps(exp.values), in_flip(is_signed ? 0x7F : 0xFF), out_flip(is_signed ? 0x80 : 0) {
  // Sums are at least 1: a result is at most the exponential over 2^23, rounded.
  constexpr int32_t kLeastSeen = 1 << 22;
  for (int i = 0; i < 256; ++i) {
    const int32_t term = RoundingDivideByPowerOfTwo(exps[i], 12);
    for (int byte = 0; byte < 3; ++byte) {
      terms[byte][i] = static_cast<uint8_t>(term >> (8 * byte));
    }
    if (exps[i] >= kLeastSeen) seen = i / 16 * 16 + 16;
    if (term != 0) summed = i + 1;
  }
}

}  // namespace fuselite::kernels

#if defined(__x86_64__)
// g++ 12 warns of values that its own header leaves undefined on purpose.
HWY_DIAGNOSTICS(push)
#if HWY_COMPILER_GCC_ACTUAL
HWY_DIAGNOSTICS_OFF(disable : 4701, ignored "-Wmaybe-uninitialized")
#endif
HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")
namespace fuselite::kernels {
namespace {

constexpr int64_t kBytes = 64;

// The first 64 kVectors of 256 entries, of which all others are like the last one of these.
template <int kVectors>
class Lookup {
 public:
  HWY_INLINE explicit Lookup(const uint8_t* table) {
    for (int i = 0; i < kVectors; ++i) table_[i] = _mm512_load_si512(table + i * kBytes);
  }
  static HWY_INLINE __m512i Index(__m512i below) {
    if constexpr (kVectors == 4) return below;
    return _mm512_min_epu8(below, _mm512_set1_epi8(static_cast<char>(kVectors * kBytes - 1)));
  }
  HWY_INLINE __m512i operator()(__m512i index) const {
    if constexpr (kVectors == 1) return _mm512_permutexvar_epi8(index, table_[0]);
    const __m512i lower = _mm512_permutex2var_epi8(table_[0], index, table_[1]);
    if constexpr (kVectors == 2) return lower;
    const __m512i upper = _mm512_permutex2var_epi8(table_[2], index, table_[3]);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), lower, upper);
  }

 private:
  __m512i table_[kVectors];
};

// The last bytes of a row.
HWY_INLINE __mmask64 RestOf(int64_t n) {
  return n % kBytes == 0 ? ~uint64_t{0} : (uint64_t{1} << n % kBytes) - 1;
}

// The smallest of a row's bytes, flipped, in all lanes.
HWY_INLINE __m512i LeastOf(const uint8_t* x, int64_t n, __m512i flip) {
  __m512i least = _mm512_set1_epi8(-1);
  int64_t i = 0;
  for (; i + kBytes < n; i += kBytes) {
    least = _mm512_min_epu8(least, _mm512_xor_si512(_mm512_loadu_si512(x + i), flip));
  }
  const __mmask64 rest = RestOf(n);
  const __m512i last = _mm512_xor_si512(_mm512_maskz_loadu_epi8(rest, x + i), flip);
  least = _mm512_mask_min_epu8(least, rest, least, last);
  const __m256i half =
      _mm256_min_epu8(_mm512_castsi512_si256(least), _mm512_extracti64x4_epi64(least, 1));
  const __m128i quarter =
      _mm_min_epu8(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
  const __m128i words = _mm_min_epu8(quarter, _mm_srli_epi16(quarter, 8));
  return _mm512_broadcastb_epi8(_mm_minpos_epu16(words));
}

// The sum of a row's terms.
template <int kVectors>
HWY_INLINE int64_t SumOf(const PermutedSoftmax& p, const uint8_t* x, __m512i flip, __m512i least) {
  const Lookup<kVectors> low(p.terms[0].data()), middle(p.terms[1].data()), high(p.terms[2].data());
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i sums[3] = {};
  const auto add = [&](__m512i bytes, __mmask64 present) {
    const __m512i below = _mm512_sub_epi8(_mm512_xor_si512(bytes, flip), least);
    const __m512i index = Lookup<kVectors>::Index(below);
    const __m512i counted = _mm512_maskz_mov_epi8(present, ones);
    sums[0] = _mm512_dpbusd_epi32(sums[0], low(index), counted);
    sums[1] = _mm512_dpbusd_epi32(sums[1], middle(index), counted);
    sums[2] = _mm512_dpbusd_epi32(sums[2], high(index), counted);
  };
  int64_t i = 0;
  for (; i + kBytes < p.n; i += kBytes) add(_mm512_loadu_si512(x + i), ~uint64_t{0});
  const __mmask64 rest = RestOf(p.n);
  add(_mm512_maskz_loadu_epi8(rest, x + i), rest);
  const __m512i upper = _mm512_add_epi32(_mm512_slli_epi32(sums[2], 8), sums[1]);
  return _mm512_reduce_add_epi32(_mm512_add_epi32(_mm512_slli_epi32(upper, 8), sums[0]));
}

// What the first `count` exponentials become in a row of this scale, as in NonNegativeScale.
HWY_INLINE void MakeResults(const PermutedSoftmax& p, const SoftmaxScale& scale, int count,
                            uint8_t* to) {
  if (count == 0) return;
  const int64_t nudge_of_one = (int64_t{1} << 30) + (int64_t{1} << (30 + scale.shift));
  const __m512i multiplier = _mm512_set1_epi64(scale.scale);
  const __m512i nudge = _mm512_set1_epi64(nudge_of_one);
  const __m128i right = _mm_cvtsi32_si128(scale.shift - 1);
  const __m128i flip = _mm_set1_epi8(static_cast<char>(p.out_flip));
  for (int i = 0; i < count; i += 16) {
    const __m512i e = _mm512_load_si512(&p.exps[i]);
    const __m512i even = _mm512_add_epi64(_mm512_mul_epi32(e, multiplier), nudge);
    const __m512i odd =
        _mm512_add_epi64(_mm512_mul_epi32(_mm512_srli_epi64(e, 32), multiplier), nudge);
    const __m512i high = _mm512_mask_mov_epi32(_mm512_srli_epi64(even, 32), 0xAAAA, odd);
    const __m128i bytes = _mm512_cvtusepi32_epi8(_mm512_srl_epi32(high, right));
    _mm_store_si128(reinterpret_cast<__m128i*>(to + i), _mm_xor_si128(bytes, flip));
  }
}

template <int kVectors>
HWY_INLINE void StoreResults(const PermutedSoftmax& p, const uint8_t* x, const uint8_t* results,
                             __m512i flip, __m512i least, uint8_t* y) {
  const Lookup<kVectors> lookup(results);
  const auto map = [&](__m512i bytes) {
    const __m512i below = _mm512_sub_epi8(_mm512_xor_si512(bytes, flip), least);
    return lookup(Lookup<kVectors>::Index(below));
  };
  int64_t i = 0;
  for (; i + kBytes < p.n; i += kBytes) {
    _mm512_storeu_si512(y + i, map(_mm512_loadu_si512(x + i)));
  }
  const __mmask64 rest = RestOf(p.n);
  _mm512_mask_storeu_epi8(y + i, rest, map(_mm512_maskz_loadu_epi8(rest, x + i)));
}

// Step by step for all rows: what one waits for, others give.
template <int kVectors>
void SoftmaxRowsByPermutes(const PermutedSoftmax& p, const uint8_t* in, uint8_t* out,
                           int64_t rows) {
  constexpr int64_t kRows = PermutedSoftmax::kRows;
  constexpr int64_t kResults = kVectors * kBytes;
  alignas(64) uint8_t results[kRows][kResults];
  alignas(64) int32_t scales[kRows] = {};
  int shifts[kRows];
  uint8_t least_of[kRows];
  const __m512i flip = _mm512_set1_epi8(static_cast<char>(p.in_flip));
  for (int64_t r = 0; r < rows; ++r) {
    const uint8_t* const x = in + r * p.in_pitch;
    const __m512i least = LeastOf(x, p.n, flip);
    least_of[r] = static_cast<uint8_t>(_mm_cvtsi128_si32(_mm512_castsi512_si128(least)));
    const ReciprocalParts parts = PartsOfSum(SumOf<kVectors>(p, x, flip, least), 8);
    scales[r] = parts.fraction;
    shifts[r] = parts.bits_over_unit;
  }
  p.reciprocals(scales, rows);
  for (int64_t r = 0; r < rows; ++r) {
    const int seen = shifts[r] > 31 ? 0 : p.seen;
    std::memset(results[r] + seen, p.out_flip, kResults - seen);
    MakeResults(p, {scales[r], shifts[r]}, seen, results[r]);
  }
  for (int64_t r = 0; r < rows; ++r) {
    StoreResults<kVectors>(p, in + r * p.in_pitch, results[r], flip,
                           _mm512_set1_epi8(static_cast<char>(least_of[r])), out + r * p.out_pitch);
  }
}

}  // namespace

HWY_POP_ATTRIBUTES
// Outside of them: this runs on machines without these instructions, too.
SoftmaxPermutes* SoftmaxPermutesFor(const PermutedSoftmax& p, Isa isa) {
  if (!isa.has(Feature::kAvx512Vbmi) || !isa.has(Feature::kAvx512Vnni)) return nullptr;
  if (p.summed < 64) return SoftmaxRowsByPermutes<1>;
  return p.summed < 128 ? SoftmaxRowsByPermutes<2> : SoftmaxRowsByPermutes<4>;
}

}  // namespace fuselite::kernels
HWY_DIAGNOSTICS(pop)
#else
namespace fuselite::kernels {

SoftmaxPermutes* SoftmaxPermutesFor(const PermutedSoftmax&, Isa) { return nullptr; }

}  // namespace fuselite::kernels
#endif
