#include "kernels/source/bf16_image.h"

#include <algorithm>
#include <cstring>

#include "kernels/make_kernel.h"
#include "kernels/source/transposed_source.h"
#include "runtime/support/ceil_div.h"

namespace fuselite::kernels {
namespace {

// A quarter of a microsecond, which is little beside the shortest parallel region.
constexpr int64_t kPieceValues = 4096;

}  // namespace

Bf16Image::Bf16Image(const Window& window, int64_t batch, int64_t channels, int64_t pitch,
                     RoundFunction* round)
    : round_(round),
      batch_(batch),
      channels_(channels),
      pitch_(pitch),
      height_(window.y.reach()),
      width_(window.x.reach()),
      input_height_(window.y.input),
      input_width_(window.x.input),
      top_(window.y.before),
      left_(window.x.before) {
  piece_ = std::max<int64_t>(1, kPieceValues / std::max<int64_t>(1, channels_));
  pieces_ = CeilDiv(width_, piece_);
}

int64_t Bf16Image::grain() const { return GrainFor(std::min(piece_, width_) * channels_ / 2); }

void Bf16Image::Copy(const float* input, std::byte* copy, int64_t begin, int64_t end) const {
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t row = unit / pieces_, first = unit % pieces_ * piece_;
    auto* to = reinterpret_cast<uint16_t*>(copy + row * row_bytes() + first * pixel_bytes());
    CopyPiece(input, to, row, first, std::min(first + piece_, width_));
  }
  if (end == units()) std::memset(copy + image_bytes() * batch_, 0, sizeof(uint16_t));
}

void Bf16Image::CopyPiece(const float* input, uint16_t* to, int64_t row, int64_t begin,
                          int64_t end) const {
  const int64_t y = row % height_ - top_;
  const bool inside = y >= 0 && y < input_height_;
  // The image's pixels among the piece's.
  const int64_t first = inside ? std::clamp(left_, begin, end) : end;
  const int64_t last = inside ? std::clamp(left_ + input_width_, first, end) : end;
  to = std::fill_n(to, (first - begin) * channels_, uint16_t{0});
  const int64_t line = (row / height_ * input_height_ + y) * input_width_;
  const bool dense = pitch_ == channels_;
  const int64_t pixels = dense ? last - first : 1;  // that one call rounds
  for (int64_t x = first; x < last; x += pixels, to += pixels * channels_) {
    round_(input + (line + x - left_) * pitch_, pixels * channels_, to);
  }
  std::fill_n(to, (end - last) * channels_, uint16_t{0});
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
