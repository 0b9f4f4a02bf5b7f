#include "kernels/source/volume_source.h"

#include <algorithm>
#include <cstring>

#include "kernels/make_kernel.h"
#include "kernels/source/padded_rows.h"

namespace fuselite::kernels {
namespace {

constexpr int64_t kFloat = sizeof(float);

class PaddedVolumes final : public Source {
 public:
  PaddedVolumes(int input, const ProductDescription& d)
      : input_(input),
        rows_(d.padding, d.channels_in * kFloat),
        pitch_(d.pixel_pitch * kFloat),
        volumes_(d.images),
        planes_(d.volume->reach()),
        input_planes_(d.volume->input),
        before_(d.volume->before) {}

  ImageMemory memory() const override {
    return {.pixel = rows_.pixel,
            .row = row_bytes(),
            .image = plane_bytes(),
            .dense = true,
            .volume = planes_ * plane_bytes()};
  }
  size_t shared_bytes() const override {
    return static_cast<size_t>(volumes_ * planes_ * plane_bytes());
  }
  std::vector<Phase> phases() const override {
    return {{.units = volumes_ * planes_ * plane_units(),
             .grain = GrainFor(rows_.piece_bytes() / 8),
             .run = [this](const KernelArgs& args, int64_t begin, int64_t end) {
               Copy(static_cast<const std::byte*>(args.inputs[input_]), args.shared, begin, end);
             }}};
  }

 private:
  int64_t row_bytes() const { return rows_.width * rows_.pixel; }
  int64_t plane_bytes() const { return rows_.height * row_bytes(); }
  int64_t plane_units() const { return rows_.height * rows_.pieces; }

  // Pieces [begin, end) of the rows of all planes, those of padding included.
  void Copy(const std::byte* in, std::byte* copies, int64_t begin, int64_t end) const {
    const auto fill = [&](std::byte* to, int64_t pixels) {
      std::memset(to, 0, pixels * rows_.pixel);
    };
    const auto copy = [&](const std::byte* from, std::byte* to, int64_t pixels) {
      std::memcpy(to, from, pixels * rows_.pixel);
    };
    while (begin < end) {
      const int64_t plane = begin / plane_units();
      const int64_t last = std::min(end, (plane + 1) * plane_units());
      const int64_t z = plane % planes_ - before_;
      if (z < 0 || z >= input_planes_) {
        const int64_t first = rows_.FirstPixel(begin);
        fill(copies + first * rows_.pixel, rows_.FirstPixel(last) - first);
      } else {
        // PaddedRows counts the rows of the input's planes.
        const int64_t padding = plane - (plane / planes_ * input_planes_ + z);
        rows_.Make(in, pitch_, pitch_ == rows_.pixel, copies + padding * plane_bytes(),
                   begin - padding * plane_units(), last - padding * plane_units(), fill, copy);
      }
      begin = last;
    }
  }

  int input_;
  PaddedRows rows_;
  int64_t pitch_;  // bytes
  int64_t volumes_, planes_, input_planes_, before_;
};

bool Unpadded(const WindowAxis& axis) {
  return axis.interior_begin() == 0 && axis.interior_end() == axis.output;
}

}  // namespace

std::unique_ptr<Source> VolumeSource(int input, const ProductDescription& d) {
  if (!d.padding.unpadded() || !Unpadded(*d.volume)) {
    return std::make_unique<PaddedVolumes>(input, d);
  }
  const int64_t pixel = d.pixel_pitch * kFloat, row = pixel * d.padding.x.input;
  const int64_t image = row * d.padding.y.input;
  return std::make_unique<InputSource>(input, ImageMemory{.pixel = pixel,
                                                          .row = row,
                                                          .image = image,
                                                          .dense = d.pixel_pitch == d.channels_in,
                                                          .volume = image * d.volume->input});
}

}  // namespace fuselite::kernels
