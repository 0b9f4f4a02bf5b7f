#include "kernels/source/image_source.h"

#include <algorithm>

#include "kernels/source/padded_image.h"
#include "kernels/source/transposed_source.h"
#include "kernels/source/volume_source.h"

namespace fuselite::kernels {

namespace {

// The rows of each image that windows read: the first `read` of every `stride`. A 1x1 filter with
// strides of two reads half of them.
struct ReadRows {
  int64_t stride = 1, read = 1;

  static ReadRows Of(const ProductDescription& d) {
    // A part that leaves taps out begins at any row.
    if (d.parts.size() != 1 || !d.parts.front().taps.empty()) return {};
    const WindowAxis& y = d.parts.front().window.y;
    return {y.stride, std::min<int64_t>(y.stride, int64_t{y.filter - 1} * y.dilation + 1)};
  }

  bool Has(int64_t row) const { return row % stride < read; }

  // Calls f(first, last) for the runs of such rows in [begin, end), of images of `height` rows.
  template <class F>
  void ForEach(int64_t begin, int64_t end, int64_t height, F f) const {
    if (read == stride) return f(begin, end);
    while (begin < end) {
      const int64_t image_end = std::min(end, begin - begin % height + height);
      const int64_t at = begin % height % stride;
      if (at < read) f(begin, std::min(begin + read - at, image_end));
      begin = std::min(begin + stride - at, image_end);
    }
  }
};

// A copy that Copy(from, to, begin, end) makes by pieces of rows: PaddedImage, ConvertedImage.
template <class Image>
class CopiedSource final : public Source {
 public:
  CopiedSource(int input, const Image& image, ReadRows rows = {})
      : input_(input), image_(image), rows_(rows) {}

  ImageMemory memory() const override {
    return {image_.pixel_bytes(), image_.row_bytes(), image_.image_bytes(), true};
  }
  size_t shared_bytes() const override { return image_.bytes(); }
  std::vector<Phase> phases() const override {
    return {{.units = image_.rows() * image_.pieces(),
             .grain = image_.grain(),
             .run = [this](const KernelArgs& args, int64_t begin, int64_t end) {
               CopyRead(static_cast<const std::byte*>(args.inputs[input_]), args.shared, begin,
                        end);
             }}};
  }

 private:
  // Those of units [begin, end) that are read.
  void CopyRead(const std::byte* from, std::byte* to, int64_t begin, int64_t end) const {
    const int64_t height = image_.image_bytes() / std::max<int64_t>(1, image_.row_bytes());
    if (image_.pieces() == 1) {
      return rows_.ForEach(begin, end, height, [&](int64_t first, int64_t last) {
        image_.Copy(from, to, first, last);
      });
    }
    for (int64_t unit = begin; unit < end; ++unit) {
      if (rows_.Has(unit / image_.pieces() % height)) image_.Copy(from, to, unit, unit + 1);
    }
  }

  int input_;
  Image image_;
  ReadRows rows_;
};

std::unique_ptr<Source> InputItself(int input, const ProductDescription& d, int64_t value_bytes) {
  const int64_t pixel = d.pixel_pitch * value_bytes;
  const int64_t row = pixel * d.padding.x.input, image = row * d.padding.y.input;
  return std::make_unique<InputSource>(
      input, ImageMemory{pixel, row, image, d.pixel_pitch == d.channels_in});
}

std::unique_ptr<Source> PaddedSource(int input, const ProductDescription& d, int64_t value_bytes,
                                     Isa isa) {
  const PaddedImage image(d.padding, d.images, d.channels_in * value_bytes,
                          d.pixel_pitch * value_bytes, isa);
  if (!image.needed()) return InputItself(input, d, value_bytes);
  return std::make_unique<CopiedSource<PaddedImage>>(input, image, ReadRows::Of(d));
}

}  // namespace

std::unique_ptr<Source> FloatSource(int input, const ProductDescription& d, Isa isa) {
  if (d.left_transposed) return TransposedSource(input, d);
  if (d.volume) return VolumeSource(input, d);
  return PaddedSource(input, d, sizeof(float), isa);
}

std::unique_ptr<Source> BFloat16Source(int input, const ProductDescription& d, Isa isa) {
  return PaddedSource(input, d, sizeof(uint16_t), isa);
}

ByteSource MakeByteSource(int input, const ProductDescription& d, const TensorInfo& info, Isa isa,
                          bool dot) {
  const bool is_signed = info.type == DataType::kInt8;
  const WindowAxis& x = d.parts.front().window.x;
  const ActivationFormat format = !dot        ? ActivationFormat::kWide
                                  : is_signed ? ActivationFormat::kFlipped
                                              : ActivationFormat::kAsIs;
  const int64_t value_bytes = dot ? 1 : 2;
  if (d.left_transposed) {
    return {.source = TransposedSource(input, d, info.type, format), .value_bytes = value_bytes};
  }
  // The runs of a row that lie in one piece (DepthRuns).
  const bool rows_follow = x.dilation == 1 && d.groups == 1 && d.pixel_pitch == d.channels_in;
  const int64_t run = d.group_in() * (rows_follow && d.parts.size() == 1 ? x.filter : 1);
  const bool whole_groups = run * BitWidth(info.type) / 8 % 4 == 0;
  const int64_t rows = int64_t{x.output} * d.parts.front().window.y.output * d.images;
  const bool single = d.parts.size() == 1 && rows == 1;
  const bool reads_as_is =
      dot ? whole_groups || single : info.type == DataType::kInt16 && whole_groups;
  if (d.padding.unpadded() && reads_as_is) {
    return {.source = InputItself(input, d, value_bytes),
            .value_bytes = value_bytes,
            .flips = is_signed,
            .to_the_byte = !whole_groups};
  }
  const ConvertedImage image(d.padding, d.images, d.channels_in, d.pixel_pitch, info.type,
                             info.quantization.zero_point(), format, isa);
  return {.source = std::make_unique<CopiedSource<ConvertedImage>>(input, image, ReadRows::Of(d)),
          .value_bytes = value_bytes};
}

QuantizedImage::Layout HybridLayout(const ProductDescription& d, bool bytes) {
  QuantizedImage::Layout layout =
      QuantizedImage::LayoutFor(d.padding, d.images, d.channels_in, d.pixel_pitch);
  if (d.hybrid->scale_per_row) {  // each row is an image then
    layout.images = d.padding.x.input;
    layout.width = 1;
  }
  layout.asymmetric = d.hybrid->asymmetric;
  layout.bytes = bytes;
  return layout;
}

std::unique_ptr<Source> RepeatedSource(int input, const ConvertedImage& image) {
  return std::make_unique<CopiedSource<ConvertedImage>>(input, image);
}

std::vector<Phase> QuantizedSource::phases() const {
  std::vector<Phase> phases;
  for (int phase = 0; phase < image_.phases(); ++phase) {
    phases.push_back({.units = image_.units(),
                      .grain = image_.grain(),
                      .run = [this, phase](const KernelArgs& args, int64_t begin, int64_t end) {
                        image_.Run(static_cast<const float*>(args.inputs[input_]), args.shared,
                                   phase, begin, end);
                      }});
  }
  return phases;
}

}  // namespace fuselite::kernels
