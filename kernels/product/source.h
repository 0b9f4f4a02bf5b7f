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
};

class Source {
 public:
  virtual ~Source() = default;

  virtual ImageMemory memory() const = 0;
  // What the phases need of KernelArgs::shared, from its start.
  virtual size_t shared_bytes() const { return 0; }
  // Those that must have run before Pixels() is read; they refer to this object.
  virtual std::vector<Phase> phases() const { return {}; }
  // The first image's first pixel.
  virtual const std::byte* Pixels(const KernelArgs& args) const = 0;
  // What is known of each row (of each image, where rows share it): a RowScale of rows that were
  // quantized at run time. Null where nothing is.
  virtual const std::byte* RowValues(const KernelArgs& /*args*/) const { return nullptr; }
};

// The input as it is.
class InputSource final : public Source {
 public:
  InputSource(int input, const ImageMemory& memory) : input_(input), memory_(memory) {}
  ImageMemory memory() const override { return memory_; }
  const std::byte* Pixels(const KernelArgs& args) const override {
    return static_cast<const std::byte*>(args.inputs[input_]);
  }

 private:
  int input_;
  ImageMemory memory_;
};

}  // namespace fuselite::kernels
