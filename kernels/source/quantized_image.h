// Images of float32, quantized at run time, as the integer kernels read them: dense, padded,
// unsigned bytes with a zero point or int16 without.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gemm/short_rows.h"
#include "kernels/product/source.h"
#include "kernels/source/padded_rows.h"
#include "kernels/source/repeated_bytes.h"

namespace fuselite::kernels {

// The first phases of a kernel: they leave the images, one behind the other, in `shared`. An image
// has one scale; rows of a matrix are images of one pixel.
class QuantizedImage {
 public:
  struct Layout {
    int64_t images = 0, height = 1, width = 1;
    int64_t channels = 0, pitch = 0;                   // of a pixel
    int64_t top = 0, bottom = 0, left = 0, right = 0;  // pixels of padding, which is zero
    bool asymmetric = false;
    bool bytes = true;   // else int16
    int32_t repeat = 1;  // times that each byte stands there

    // The windows over the padded image, which they do not leave.
    Window Padded(const Window& window) const {
      return OverPadded(window, top + height + bottom, left + width + right);
    }
  };
  // Padded to what the windows reach.
  static Layout LayoutFor(const Window& window, int64_t images, int64_t channels, int64_t pitch);

  // `isa` has a vector target.
  QuantizedImage(const Layout& layout, Isa isa);

  // These describe the result.
  int64_t pixel_bytes() const { return l_.channels * l_.repeat * (l_.bytes ? 1 : 2); }
  int64_t row_bytes() const { return pixel_bytes() * (l_.left + l_.width + l_.right); }
  int64_t image_bytes() const { return row_bytes() * (l_.top + l_.height + l_.bottom); }

  int phases() const { return groups_.several_chunks() ? 2 : 1; }
  int64_t units() const { return groups_.chunks(); }
  int64_t grain() const;
  size_t shared_bytes() const;
  void Run(const float* x, std::byte* shared, int phase, int64_t begin, int64_t end) const;

  // Where each image has its RowScale, once the source has run.
  size_t scales_at() const { return scales_at_; }

 private:
  // Images of one pixel without padding: nothing to find out for each.
  bool rows_only() const { return image_bytes() == pixel_bytes(); }
  void ConvertRows(const float* x, std::byte* shared, int64_t begin, int64_t end) const;
  void Convert(const float* x, std::byte* shared, int64_t unit) const;
  void ConvertPixels(const float* from, int64_t pixels, const DynamicScale& scale,
                     std::byte* to) const;
  void ConvertRepeated(const float* from, int64_t n, const DynamicScale& scale, uint8_t* to) const;
  // Returns what is behind.
  std::byte* Fill(std::byte* to, int64_t pixels, const DynamicScale& scale) const;

  Layout l_;
  const ShortRowFunctions* functions_;
  RepeatedBytes repeated_;
  DynamicGroups groups_;
  size_t scales_at_ = 0, ranges_at_ = 0;
};

}  // namespace fuselite::kernels
