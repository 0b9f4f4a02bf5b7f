// The left side of a product in the form that a micro-kernel reads, and the phases that bring it
// into that form.
#pragma once

#include <vector>

#include "kernels/product/phase.h"
#include "kernels/window.h"

namespace fuselite::kernels {

// Images as a source leaves them: from a pixel to the next, a row, an image. Matrices are images of
// one row, whose pixels are the matrix's rows.
struct ImageMemory {
  int64_t pixel = 0, row = 0, image = 0;  // bytes
  bool dense = false;                     // no gaps between the values of neighbouring pixels
  int64_t volume = 0;  // bytes from a volume to the next, whose planes are images
};

// How a row of activations was quantized at run time: x ~ scale * (u - zero_point), u an unsigned
// byte. Of int16 the zero point is taken off already, and 0.
struct RowScale {
  float scale;
  int32_t zero_point;
};

// Where a run finds what a source leaves.
struct SourcePlaces {
  int input = -1;              // an input as it is; negative: KernelArgs::shared, from its start
  int64_t row_values_at = -1;  // in KernelArgs::shared; negative: nothing is known of rows

  // The first image's first pixel.
  const std::byte* Pixels(const KernelArgs& args) const {
    return input < 0 ? args.shared : static_cast<const std::byte*>(args.inputs[input]);
  }
  // What is known of each row (of each image, where rows share it): a RowScale of rows that were
  // quantized at run time. Null where nothing is.
  const std::byte* RowValues(const KernelArgs& args) const {
    return row_values_at < 0 ? nullptr : args.shared + row_values_at;
  }
};

class Source {
 public:
  virtual ~Source() = default;

  virtual ImageMemory memory() const = 0;
  // What the phases need of KernelArgs::shared, from its start.
  virtual size_t shared_bytes() const { return 0; }
  // The phases that must have run before the pixels are read; they refer to this object.
  virtual std::vector<Phase> phases() const { return {}; }
  virtual SourcePlaces places() const { return {}; }
};

// The input as it is.
class InputSource final : public Source {
 public:
  InputSource(int input, const ImageMemory& memory) : input_(input), memory_(memory) {}
  ImageMemory memory() const override { return memory_; }
  SourcePlaces places() const override { return {.input = input_}; }

 private:
  int input_;
  ImageMemory memory_;
};

}  // namespace fuselite::kernels
