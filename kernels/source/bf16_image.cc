#include "kernels/source/bf16_image.h"

#include <cstring>

#include "kernels/make_kernel.h"
#include "kernels/source/transposed_source.h"

namespace fuselite::kernels {

Bf16Image::Bf16Image(const Window& window, int64_t batch, int64_t channels, int64_t pitch,
                     RoundFunction* round)
    : image_(window, channels * static_cast<int64_t>(sizeof(uint16_t))),
      batch_(batch),
      channels_(channels),
      pitch_(pitch),
      round_(round) {}

int64_t Bf16Image::grain() const {
  return GrainFor(image_.piece_bytes() / static_cast<int64_t>(2 * sizeof(uint16_t)));
}

void Bf16Image::Copy(const float* input, std::byte* copy, int64_t begin, int64_t end) const {
  image_.Make(
      reinterpret_cast<const std::byte*>(input), pitch_ * static_cast<int64_t>(sizeof(float)),
      pitch_ == channels_, copy, begin, end,
      [this](std::byte* to, int64_t pixels) { std::memset(to, 0, pixels * image_.pixel); },
      [this](const std::byte* from, std::byte* to, int64_t pixels) {
        round_(reinterpret_cast<const float*>(from), pixels * channels_,
               reinterpret_cast<uint16_t*>(to));
      });
  if (end == units()) std::memset(copy + image_bytes() * batch_, 0, sizeof(uint16_t));
}

namespace {

class RoundedSource final : public Source {
 public:
  RoundedSource(int input, const Bf16Image& image) : input_(input), image_(image) {}

  ImageMemory memory() const override {
    return {image_.pixel_bytes(), image_.row_bytes(), image_.image_bytes(), true};
  }
  size_t shared_bytes() const override { return image_.bytes(); }
  std::vector<Phase> phases() const override {
    return {{.units = image_.units(),
             .grain = image_.grain(),
             .run = [this](const KernelArgs& args, int64_t begin, int64_t end) {
               image_.Copy(static_cast<const float*>(args.inputs[input_]), args.shared, begin, end);
             }}};
  }

 private:
  int input_;
  Bf16Image image_;
};

}  // namespace

std::unique_ptr<Source> Bf16Source(int input, const ProductDescription& d, RoundFunction* round) {
  if (d.left_transposed) return TransposedBf16Source(input, d);
  return std::make_unique<RoundedSource>(
      input, Bf16Image(d.padding, d.images, d.channels_in, d.pixel_pitch, round));
}

}  // namespace fuselite::kernels
