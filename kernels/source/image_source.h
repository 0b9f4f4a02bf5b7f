// The images that products read: the input itself, or a copy that is padded, brought to another
// format, or quantized.
#pragma once

#include <memory>

#include "kernels/product/description.h"
#include "kernels/product/source.h"
#include "kernels/source/converted_image.h"
#include "kernels/source/quantized_image.h"

namespace fuselite::kernels {

// float32: the input itself where no window reaches into padding, else a copy with zeros around it.
// `input` is the operator's input that holds the values, here and below.
std::unique_ptr<Source> FloatSource(int input, const ProductDescription& description, Isa isa);

// The same of bfloat16. Precondition: no volume, and the left side is not transposed.
std::unique_ptr<Source> BFloat16Source(int input, const ProductDescription& description, Isa isa);

// 8-bit activations, or 16-bit ones without `dot`, as dot products (bytes, 4 at a time) read them
// where `dot`, or as pair products (int16) do. The input itself where it can be read in groups of
// four bytes, which must not reach behind the last pixel, or is a single row, which the code then
// has to read to the byte; `flips` tells whether it has to turn int8 into uint8.
struct ByteSource {
  std::unique_ptr<Source> source;
  int64_t value_bytes = 1;
  bool flips = false;
  bool to_the_byte = false;
};
ByteSource MakeByteSource(int input, const ProductDescription& description, const TensorInfo& info,
                          Isa isa, bool dot);

// How the activations of a hybrid product are quantized: to `bytes`, or to int16.
QuantizedImage::Layout HybridLayout(const ProductDescription& description, bool bytes);

// An image whose channels each stand `repeat` times, for depthwise convolutions with multipliers.
// The windows' padding holds the zero point.
std::unique_ptr<Source> RepeatedSource(int input, const ConvertedImage& image);

// float32 activations, quantized at run time; `layout` is that of input `input`.
class QuantizedSource final : public Source {
 public:
  QuantizedSource(int input, const QuantizedImage::Layout& layout, Isa isa)
      : input_(input), image_(layout, isa) {}

  ImageMemory memory() const override {
    return {image_.pixel_bytes(), image_.row_bytes(), image_.image_bytes(), true};
  }
  size_t shared_bytes() const override { return image_.shared_bytes(); }
  std::vector<Phase> phases() const override;
  SourcePlaces places() const override {
    return {.row_values_at = static_cast<int64_t>(image_.scales_at())};
  }

 private:
  int input_;
  QuantizedImage image_;
};

}  // namespace fuselite::kernels
