#include "kernels/source/padded_image.h"

#include <algorithm>
#include <cstring>

namespace fuselite::kernels {

PaddedImage::PaddedImage(const Window& window, int64_t batch, int64_t pixel_bytes,
                         int64_t pitch_bytes, Isa isa, int fill)
    : needed_(!window.unpadded()),
      batch_(batch),
      pitch_(pitch_bytes),
      fill_(fill),
      loops_(CopyLoopsFor(isa)),
      image_(window, pixel_bytes) {}

void PaddedImage::CopyShortRows(const std::byte* input, std::byte* copy, int64_t begin,
                                int64_t end) const {
  std::memset(copy + begin * row_bytes(), fill_, (end - begin) * row_bytes());
  const int64_t in_row = image_.input_width * pitch_, inside = image_.inside() * image_.pixel;
  for (int64_t row = begin; row < end;) {
    const int64_t image = row / image_.height, first = row % image_.height;
    const int64_t last = std::min(image_.height, first + end - row);
    const int64_t top = std::max(first, image_.top);
    const int64_t bottom = std::min(last, image_.top + image_.input_height);
    if (top < bottom) {
      loops_.rows(input + (image * image_.input_height + top - image_.top) * in_row,
                  copy + (row - first + top) * row_bytes() + image_.before() * image_.pixel,
                  {bottom - top, in_row, row_bytes()}, inside);
    }
    row += last - first;
  }
}

void PaddedImage::Copy(const std::byte* input, std::byte* copy, int64_t begin, int64_t end) const {
  // Rows up to this are filled together and copied by one loop: a call for each of their three
  // parts would take longer.
  constexpr int64_t kShortRow = 256;
  if (pitch_ == image_.pixel && row_bytes() <= kShortRow) {
    return CopyShortRows(input, copy, begin, end);
  }
  image_.Make(
      input, pitch_, pitch_ == image_.pixel, copy, begin, end,
      [&](std::byte* to, int64_t pixels) { std::memset(to, fill_, pixels * image_.pixel); },
      [&](const std::byte* from, std::byte* to, int64_t pixels) {
        std::memcpy(to, from, pixels * image_.pixel);
      });
}

}  // namespace fuselite::kernels
