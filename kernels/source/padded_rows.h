// Rows of images copied with the padding around them, so that windows need no care at the borders.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/window.h"
#include "runtime/support/ceil_div.h"

namespace fuselite::kernels {

// Where the images' rows belong in dense copies, which are cut to what the windows reach. A long
// row is made in pieces, so that threads share it: the images of one-dimensional convolutions have
// no other one.
struct PaddedRows {
  // Half a microsecond's copy from L2.
  static constexpr int64_t kPieceBytes = 16 << 10;

  // Pixels of the copies are `pixel` bytes long.
  PaddedRows(const Window& window, int64_t pixel)
      : height(window.y.reach()),
        width(window.x.reach()),
        input_height(window.y.input),
        input_width(window.x.input),
        top(window.y.before),
        left(window.x.before),
        pixel(pixel),
        piece(std::max<int64_t>(1, kPieceBytes / std::max<int64_t>(1, pixel))),
        pieces(std::max<int64_t>(1, CeilDiv(width, piece))) {}

  int64_t height, width;  // of a copy, in pixels
  int64_t input_height, input_width;
  int64_t top, left;
  int64_t pixel;
  int64_t piece;   // the pixels of a piece; a row's last one may have fewer
  int64_t pieces;  // of a row

  int64_t piece_bytes() const { return std::min(piece, width) * pixel; }
  // Of piece `unit` of all rows', among the pixels of all copies.
  int64_t FirstPixel(int64_t unit) const { return unit / pieces * width + unit % pieces * piece; }

  // The pixels of padding before a row's own, and those of its own that the windows reach.
  int64_t before() const { return std::min(left, width); }
  int64_t inside() const { return std::max<int64_t>(0, std::min(input_width, width - before())); }

  // Makes pieces [begin, end) of the rows of all images' copies. Pixels of the input are
  // `input_pixel` bytes apart. `fill(to, pixels)` writes padding; `copy(from, to, pixels)` pixels
  // that follow each other in both: `dense` says whether they do.
  template <class Fill, class Copy>
  void Make(const std::byte* input, int64_t input_pixel, bool dense, std::byte* copies,
            int64_t begin, int64_t end, Fill fill, Copy copy) const {
    if (begin == end) return;
    const int64_t left_end = before(), right_begin = left_end + inside();
    int64_t row = begin / pieces, x = begin % pieces * piece;
    int64_t image = row / height, y = row % height;
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t x_end = std::min(x + piece, width);
      std::byte* const to = copies + row * width * pixel;
      const bool padding = y < top || y - top >= input_height;
      // The row's own pixels in the piece.
      const int64_t first = padding ? x_end : std::clamp(left_end, x, x_end);
      const int64_t last = padding ? x_end : std::clamp(right_begin, first, x_end);
      if (first > x) fill(to + x * pixel, first - x);
      const int64_t line = (image * input_height + y - top) * input_width;
      const int64_t together = dense ? last - first : 1;
      for (int64_t at = first; at < last; at += together) {
        copy(input + (line + at - left_end) * input_pixel, to + at * pixel, together);
      }
      if (x_end > last) fill(to + last * pixel, x_end - last);
      x = x_end;
      if (x < width) continue;
      x = 0;
      ++row;
      if (++y < height) continue;
      y = 0;
      ++image;
    }
  }
};

// The windows over a copy of the image with its padding, `height` x `width`.
inline Window OverPadded(const Window& window, int64_t height, int64_t width) {
  Window padded = window;
  padded.y.input = static_cast<int32_t>(height);
  padded.x.input = static_cast<int32_t>(width);
  for (WindowAxis* axis : {&padded.y, &padded.x}) axis->before = axis->after = 0;
  return padded;
}

}  // namespace fuselite::kernels
