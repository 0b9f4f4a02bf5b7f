#include "jit/product/sum_bytes.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace fuselite::jit {
namespace {

__m128i LoadFour(const uint8_t* from) {
  int32_t four;
  std::memcpy(&four, from, sizeof(four));
  return _mm_cvtsi32_si128(four);
}

// `value` in the 16 bytes [begin, end), zero in the others.
__m128i BytesIn(int64_t begin, int64_t end, uint8_t value) {
  std::array<uint8_t, 16> bytes{};
  std::fill(bytes.begin() + begin, bytes.begin() + end, value);
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes.data()));
}

}  // namespace

ByteSum::ByteSum(int64_t n, uint8_t flip)
    : n_(n),
      shift_(_mm_cvtsi32_si128(static_cast<int>(8 * (n >= 8 ? 16 - n : 8 - n)))),
      flips_(BytesIn(0, std::min<int64_t>(n, 16), flip)),
      mask_(BytesIn(16 - n % 16, 16, 0xFF)) {}

__m128i ByteSum::LongHalves(const uint8_t* run) const {
  const __m128i zero = _mm_setzero_si128();
  const auto load = [&](int64_t at) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(run + at));
    return _mm_xor_si128(bytes, flips_);
  };
  __m128i sums = _mm_sad_epu8(_mm_and_si128(load(n_ - 16), mask_), zero);
  for (int64_t i = 0; i + 16 <= n_; i += 16)
    sums = _mm_add_epi64(sums, _mm_sad_epu8(load(i), zero));
  return sums;
}

void ByteSum::AddEachShort(const kernels::ByteRows& rows, int32_t* sums) const {
  // A copy stays in registers, and a loop for each kind of run asks for it once.
  const ByteSum sum = *this;
  const auto add = [&](auto bytes_of) {
    for (int64_t i = 0; i < rows.count; ++i) {
      const __m128i bytes = _mm_xor_si128(bytes_of(rows.values + i * rows.step), sum.flips_);
      sums[i] += static_cast<int32_t>(Joined(_mm_sad_epu8(bytes, _mm_setzero_si128())));
    }
  };
  if (n_ >= 8) {
    add([&](const uint8_t* run) { return sum.Eights(run); });
  } else if (n_ >= 4) {
    add([&](const uint8_t* run) { return sum.Fours(run); });
  } else {
    add([&](const uint8_t* run) { return sum.Few(run); });
  }
}

__m128i ByteSum::Fours(const uint8_t* run) const {
  const __m128i last = _mm_srl_epi64(LoadFour(run + n_ - 4), shift_);
  return _mm_unpacklo_epi32(LoadFour(run), last);
}

// Byte by byte: memcpy of a length that is not known is a call.
__m128i ByteSum::Few(const uint8_t* run) const {
  int bytes = 0;
  if (n_ >= 1) bytes = run[0];
  if (n_ >= 2) bytes |= run[1] << 8;
  if (n_ >= 3) bytes |= run[2] << 16;
  return _mm_cvtsi32_si128(bytes);
}

}  // namespace fuselite::jit
