#include "kernels/source/converted_image.h"

#include <algorithm>
#include <cstring>

#include "kernels/make_kernel.h"

namespace fuselite::kernels {

namespace {

// Plain loops, of which the compiler makes vectors (-O3).
template <class In>
void Widen(const In* __restrict from, int16_t* __restrict to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[i];
}

}  // namespace

ConvertedImage::ConvertedImage(const Window& window, int64_t batch, int64_t channels, int64_t pitch,
                               DataType type, int32_t zero_point, ActivationFormat format, Isa isa,
                               int32_t repeat)
    : batch_(batch),
      channels_(channels),
      pitch_(pitch),
      type_(type),
      zero_point_(zero_point),
      format_(format),
      flip_(FlipRowsFor(isa)),
      repeated_(repeat, isa),
      image_(window, pixel_bytes()) {}

// Copying takes little, but the rows of a small image may lie in the caches of the threads that
// computed them: each fetches its own again where the ranges are small.
int64_t ConvertedImage::grain() const { return GrainFor(4 * image_.piece_bytes()); }

void ConvertedImage::Copy(const std::byte* input, std::byte* copy, int64_t begin,
                          int64_t end) const {
  image_.Make(
      input, pitch_ * BitWidth(type_) / 8, pitch_ == channels_, copy, begin, end,
      [&](std::byte* to, int64_t pixels) { Fill(to, pixels * channels_ * repeated_.times()); },
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
      if (repeated_.times() == 1) {
        std::memcpy(to, from, values);
      } else {
        repeated_.Run(bytes, values, reinterpret_cast<uint8_t*>(to));
      }
      break;
    case ActivationFormat::kFlipped: flip_(from, to, {1, values, values}, values); break;
    case ActivationFormat::kWide:
      auto* words = reinterpret_cast<int16_t*>(to);
      if (type_ == DataType::kInt16) {
        std::memcpy(to, from, values * sizeof(int16_t));
      } else if (type_ == DataType::kInt8) {
        Widen(reinterpret_cast<const int8_t*>(from), words, values);
      } else {
        Widen(bytes, words, values);
      }
      break;
  }
}

}  // namespace fuselite::kernels
