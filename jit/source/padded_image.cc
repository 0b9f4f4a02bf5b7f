#include "jit/source/padded_image.h"

#include <cstring>
#include <type_traits>

namespace fuselite::jit {

PaddedImage::PaddedImage(const kernels::Window& window, int64_t batch, int64_t pixel_bytes,
                         int64_t pitch_bytes, int fill)
    : needed_(!window.unpadded()),
      batch_(batch),
      pixel_(pixel_bytes),
      pitch_(pitch_bytes),
      fill_(fill),
      image_(window) {}

namespace {

// Rows below this are filled together, and copied by moves of 16 bytes: a call for each of their
// three parts would take longer.
constexpr int64_t kShortRow = 256;

// `bytes` from `from` to `to`, without a call.
inline void CopyShort(const std::byte* from, std::byte* to, int64_t bytes) {
  const auto move = [&](int64_t at, auto size) { std::memcpy(to + at, from + at, size); };
  using std::integral_constant;
  if (bytes >= 16) {
    for (int64_t at = 0; at + 16 < bytes; at += 16) move(at, integral_constant<size_t, 16>());
    return move(bytes - 16, integral_constant<size_t, 16>());
  }
  if (bytes >= 8) {
    move(0, integral_constant<size_t, 8>());
    return move(bytes - 8, integral_constant<size_t, 8>());
  }
  if (bytes >= 4) {
    move(0, integral_constant<size_t, 4>());
    return move(bytes - 4, integral_constant<size_t, 4>());
  }
  for (int64_t at = 0; at < bytes; ++at) to[at] = from[at];
}

}  // namespace

void PaddedImage::CopyRows(const std::byte* input, std::byte* copy, int64_t begin,
                           int64_t end) const {
  if (row_bytes() <= kShortRow) {
    std::memset(copy + begin * row_bytes(), fill_, (end - begin) * row_bytes());
    return image_.Make(
        input, pitch_, pitch_ == pixel_, copy, pixel_, begin, end, [](std::byte*, int64_t) {},
        [&](const std::byte* from, std::byte* to, int64_t pixels) {
          CopyShort(from, to, pixels * pixel_);
        });
  }
  image_.Make(
      input, pitch_, pitch_ == pixel_, copy, pixel_, begin, end,
      [&](std::byte* to, int64_t pixels) { std::memset(to, fill_, pixels * pixel_); },
      [&](const std::byte* from, std::byte* to, int64_t pixels) {
        std::memcpy(to, from, pixels * pixel_);
      });
}

}  // namespace fuselite::jit
