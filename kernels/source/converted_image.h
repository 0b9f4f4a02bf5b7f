// An image of 8 or 16 bits as the integer kernels read it: padded, and in another format.
#pragma once

#include <cstdint>

#include "kernels/source/flipped_rows.h"
#include "kernels/source/padded_rows.h"
#include "kernels/source/repeated_bytes.h"
#include "runtime/tensor.h"

namespace fuselite::kernels {

// What activations are in memory when multiplied.
enum class ActivationFormat : uint8_t {
  kAsIs,     // bytes as they are
  kFlipped,  // int8 + 128: the sign bit inverted
  kWide,     // int16
};

// Dense copies of `batch` images, cut to what the windows reach; padding holds the zero point.
class ConvertedImage {
 public:
  static constexpr int64_t kSlack = 64;  // readable bytes behind the copy

  // Pixels of the input have `channels` values of `type` (int8 or uint8, or int16 with kWide) and
  // are `pitch` apart. In the copy each value stands `repeat` times, if more than once as it is.
  // The bytes are the same on every ISA.
  ConvertedImage(const Window& window, int64_t batch, int64_t channels, int64_t pitch,
                 DataType type, int32_t zero_point, ActivationFormat format, Isa isa,
                 int32_t repeat = 1);

  // These describe the copy.
  int64_t pixel_bytes() const { return channels_ * repeated_.times() * value_bytes(); }
  int64_t row_bytes() const { return pixel_bytes() * image_.width; }
  int64_t image_bytes() const { return row_bytes() * image_.height; }
  size_t bytes() const { return static_cast<size_t>(image_bytes() * batch_ + kSlack); }

  // The windows over one, which they do not leave.
  Window Padded(const Window& window) const {
    return OverPadded(window, image_.height, image_.width);
  }

  int64_t rows() const { return batch_ * image_.height; }
  // The pieces of a row: a unit is one of those of all rows.
  int64_t pieces() const { return image_.pieces; }
  int64_t grain() const;
  void Copy(const std::byte* input, std::byte* copy, int64_t begin, int64_t end) const;

 private:
  int64_t value_bytes() const { return format_ == ActivationFormat::kWide ? 2 : 1; }
  void Fill(std::byte* to, int64_t values) const;
  void Convert(const std::byte* from, std::byte* to, int64_t values) const;

  int64_t batch_, channels_, pitch_;
  DataType type_;
  int32_t zero_point_;
  ActivationFormat format_;
  FlipRowsFunction* flip_;  // for kFlipped
  RepeatedBytes repeated_;
  PaddedRows image_;
};

}  // namespace fuselite::kernels
