// The images that emitted products read: the input itself, or a copy that is padded, brought to
// another format, or quantized.
#pragma once

#include <memory>

#include "jit/source/converted_image.h"
#include "jit/source/quantized_image.h"
#include "kernels/product/description.h"
#include "kernels/product/source.h"

namespace fuselite::jit {

// float32: the input itself where no window reaches into padding, else a copy with zeros around it.
// `input` is the operator's input that holds the values, here and below.
std::unique_ptr<kernels::Source> FloatSource(int input,
                                             const kernels::ProductDescription& description);

// float32 as products of bfloat16 read it: rounded, with zeros around the image. A value is read
// by no more than the pairs of its own run (GemmSpec), so nothing lies behind the last pixel.
std::unique_ptr<kernels::Source> Bf16Source(int input,
                                            const kernels::ProductDescription& description);

// 8-bit activations, as dot products (bytes, 4 at a time) or pair products (int16) of `isa` read
// them. The input itself where it can be read in groups of four bytes, which must not reach behind
// the last pixel, or is a single row, which the code then has to read to the byte; `flips` tells
// whether it has to turn int8 into uint8.
struct ByteSource {
  std::unique_ptr<kernels::Source> source;
  int64_t value_bytes = 1;
  bool flips = false;
  bool to_the_byte = false;
};
ByteSource MakeByteSource(int input, const kernels::ProductDescription& description,
                          const TensorInfo& info, Isa isa);

// An image whose channels each stand `repeat` times, for depthwise convolutions with multipliers.
// The windows' padding holds the zero point.
std::unique_ptr<kernels::Source> RepeatedSource(int input, const ConvertedImage& image);

// float32 activations, quantized at run time; `layout` is that of input `input`.
class QuantizedSource final : public kernels::Source {
 public:
  QuantizedSource(int input, const QuantizedImage::Layout& layout, Isa isa)
      : input_(input), image_(layout, isa) {}

  kernels::ImageMemory memory() const override {
    return {image_.pixel_bytes(), image_.row_bytes(), image_.image_bytes(), true};
  }
  size_t shared_bytes() const override { return image_.shared_bytes(); }
  std::vector<kernels::Phase> phases() const override;
  kernels::SourcePlaces places() const override {
    return {.row_values_at = static_cast<int64_t>(image_.scales_at())};
  }

 private:
  int input_;
  QuantizedImage image_;
};

}  // namespace fuselite::jit
