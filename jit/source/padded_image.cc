#include "jit/source/padded_image.h"

#include <cstring>

namespace fuselite::jit {

PaddedImage::PaddedImage(const kernels::Window& window, int64_t batch, int64_t pixel_bytes,
                         int64_t pitch_bytes, int fill)
    : needed_(!window.unpadded()),
      batch_(batch),
      pixel_(pixel_bytes),
      pitch_(pitch_bytes),
      fill_(fill),
      image_(window) {}

void PaddedImage::CopyRows(const std::byte* input, std::byte* copy, int64_t begin,
                           int64_t end) const {
  image_.Make(
      input, pitch_, pitch_ == pixel_, copy, pixel_, begin, end,
      [&](std::byte* to, int64_t pixels) { std::memset(to, fill_, pixels * pixel_); },
      [&](const std::byte* from, std::byte* to, int64_t pixels) {
        std::memcpy(to, from, pixels * pixel_);
      });
}

}  // namespace fuselite::jit
