#include "jit/source/converted_image.h"

#include <emmintrin.h>

#include <algorithm>
#include <cstring>

#include "kernels/make_kernel.h"

namespace fuselite::jit {

namespace {

void Flip(const uint8_t* from, uint8_t* to, int64_t n) {
  const __m128i sign = _mm_set1_epi8(static_cast<char>(0x80));
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), _mm_xor_si128(x, sign));
  }
  for (; i < n; ++i) to[i] = from[i] ^ 0x80;
}

template <bool is_signed>
void Widen(const uint8_t* from, int16_t* to, int64_t n) {
  const __m128i zero = _mm_setzero_si128();
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    const __m128i high = is_signed ? _mm_cmplt_epi8(x, zero) : zero;
    auto* out = reinterpret_cast<__m128i*>(to + i);
    _mm_storeu_si128(out, _mm_unpacklo_epi8(x, high));
    _mm_storeu_si128(out + 1, _mm_unpackhi_epi8(x, high));
  }
  for (; i < n; ++i) to[i] = is_signed ? static_cast<int8_t>(from[i]) : from[i];
}

// 16 values at a time, in registers. Returns how many are done.
int64_t RepeatTwice(const uint8_t* from, int64_t n, uint8_t* to) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    auto* out = reinterpret_cast<__m128i*>(to + 2 * i);
    _mm_storeu_si128(out, _mm_unpacklo_epi8(x, x));
    _mm_storeu_si128(out + 1, _mm_unpackhi_epi8(x, x));
  }
  return i;
}

int64_t RepeatFourTimes(const uint8_t* from, int64_t n, uint8_t* to) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    const __m128i low = _mm_unpacklo_epi8(x, x), high = _mm_unpackhi_epi8(x, x);
    auto* out = reinterpret_cast<__m128i*>(to + 4 * i);
    _mm_storeu_si128(out, _mm_unpacklo_epi16(low, low));
    _mm_storeu_si128(out + 1, _mm_unpackhi_epi16(low, low));
    _mm_storeu_si128(out + 2, _mm_unpacklo_epi16(high, high));
    _mm_storeu_si128(out + 3, _mm_unpackhi_epi16(high, high));
  }
  return i;
}

// In stores of eight, which go on into what the next values overwrite; nothing behind the end.
void Repeat(const uint8_t* from, int64_t n, int32_t repeat, uint8_t* to) {
  int64_t i = 0;
  if (repeat == 2) i = RepeatTwice(from, n, to);
  if (repeat == 4) i = RepeatFourTimes(from, n, to);
  for (; (n - i - 1) * repeat >= 8; ++i) {
    const uint64_t eight = from[i] * 0x0101010101010101u;
    for (int32_t done = 0; done < repeat; done += 8) {
      std::memcpy(to + i * repeat + done, &eight, 8);
    }
  }
  for (; i < n; ++i) std::memset(to + i * repeat, from[i], repeat);
}

}  // namespace

ConvertedImage::ConvertedImage(const kernels::Window& window, int64_t batch, int64_t channels,
                               int64_t pitch, DataType type, int32_t zero_point,
                               ActivationFormat format, int32_t repeat)
    : batch_(batch),
      channels_(channels),
      pitch_(pitch),
      is_signed_(type == DataType::kInt8),
      zero_point_(zero_point),
      format_(format),
      repeat_(repeat),
      image_(window) {}

// Copying takes little, but the rows of a small image may lie in the caches of the threads that
// computed them: each fetches its own again where the ranges are small.
int64_t ConvertedImage::grain() const { return kernels::GrainFor(4 * row_bytes()); }

void ConvertedImage::CopyRows(const std::byte* input, std::byte* copy, int64_t begin,
                              int64_t end) const {
  image_.Make(
      input, pitch_, pitch_ == channels_, copy, pixel_bytes(), begin, end,
      [&](std::byte* to, int64_t pixels) { Fill(to, pixels * channels_ * repeat_); },
      [&](const std::byte* from, std::byte* to, int64_t pixels) {
        Convert(from, to, pixels * channels_);
      });
}

void ConvertedImage::Fill(std::byte* to, int64_t values) const {
  if (format_ == ActivationFormat::kWide) {
    std::fill_n(reinterpret_cast<int16_t*>(to), values, static_cast<int16_t>(zero_point_));
  } else {
    const int flip = format_ == ActivationFormat::kFlipped ? 0x80 : 0;
    std::memset(to, (zero_point_ ^ flip) & 0xFF, values);
  }
}

void ConvertedImage::Convert(const std::byte* from, std::byte* to, int64_t values) const {
  const auto* bytes = reinterpret_cast<const uint8_t*>(from);
  switch (format_) {
    case ActivationFormat::kAsIs:
      if (repeat_ == 1) {
        std::memcpy(to, from, values);
      } else {
        Repeat(bytes, values, repeat_, reinterpret_cast<uint8_t*>(to));
      }
      break;
    case ActivationFormat::kFlipped: Flip(bytes, reinterpret_cast<uint8_t*>(to), values); break;
    case ActivationFormat::kWide:
      auto* words = reinterpret_cast<int16_t*>(to);
      is_signed_ ? Widen<true>(bytes, words, values) : Widen<false>(bytes, words, values);
      break;
  }
}

}  // namespace fuselite::jit
