#include "kernels/source/transposed_source.h"

#include <algorithm>

#include "kernels/make_kernel.h"
#include "kernels/numbers/short_floats.h"

namespace fuselite::kernels {

namespace {

// A unit writes so many rows. The values of a row of the input that they take fill a cache line
// (of floats) or a part of one, so that no line is fetched by more than four units.
constexpr int64_t kRowsOfUnit = 16;

// From(value) is what stands in the rows for a value of the input.
template <class In, class Out, class From>
class Transposed final : public Source {
 public:
  Transposed(int input, const ProductDescription& d, From from)
      : input_(input),
        rows_(d.matrix_rows()),
        depth_(d.channels_in),
        pitch_(d.pixel_pitch),
        matrices_(d.left_matrices()),
        from_(from) {}

  ImageMemory memory() const override {
    const auto pixel = depth_ * static_cast<int64_t>(sizeof(Out));
    const int64_t all = matrices_ * rows_ * pixel;
    return {.pixel = pixel, .row = all, .image = all, .dense = true};
  }
  size_t shared_bytes() const override {
    return static_cast<size_t>(memory().image + ConvertedImage::kSlack);
  }
  std::vector<Phase> phases() const override {
    const int64_t units = (rows_ + kRowsOfUnit - 1) / kRowsOfUnit;
    return {{.units = matrices_ * units,
             .grain = GrainFor(kRowsOfUnit * depth_),
             .run = [this, units](const KernelArgs& args, int64_t begin, int64_t end) {
               for (int64_t unit = begin; unit < end; ++unit) {
                 CopyRows(args, unit / units, unit % units * kRowsOfUnit);
               }
             }}};
  }

 private:
  void CopyRows(const KernelArgs& args, int64_t matrix, int64_t row) const {
    const In* from = static_cast<const In*>(args.inputs[input_]) + matrix * depth_ * pitch_ + row;
    Out* to = reinterpret_cast<Out*>(args.shared) + (matrix * rows_ + row) * depth_;
    const int64_t rows = std::min(kRowsOfUnit, rows_ - row);
    for (int64_t d = 0; d < depth_; ++d) {
      for (int64_t r = 0; r < rows; ++r) to[r * depth_ + d] = from_(from[d * pitch_ + r]);
    }
  }

  int input_;
  int64_t rows_, depth_, pitch_, matrices_;
  From from_;
};

template <class In, class Out, class From>
std::unique_ptr<Source> Make(int input, const ProductDescription& d, From from) {
  return std::make_unique<Transposed<In, Out, From>>(input, d, from);
}

}  // namespace

std::unique_ptr<Source> TransposedSource(int input, const ProductDescription& d) {
  return Make<float, float>(input, d, [](float x) { return x; });
}

std::unique_ptr<Source> TransposedBf16Source(int input, const ProductDescription& d) {
  return Make<float, uint16_t>(input, d, FloatToBFloat16);
}

std::unique_ptr<Source> TransposedSource(int input, const ProductDescription& d, DataType type,
                                         ActivationFormat format) {
  const auto widen = [](auto x) { return static_cast<int16_t>(x); };
  switch (format) {
    case ActivationFormat::kAsIs:
      return Make<uint8_t, uint8_t>(input, d, [](uint8_t x) { return x; });
    case ActivationFormat::kFlipped:
      return Make<uint8_t, uint8_t>(input, d,
                                    [](uint8_t x) { return static_cast<uint8_t>(x ^ 0x80); });
    case ActivationFormat::kWide: break;
  }
  if (type == DataType::kInt16) return Make<int16_t, int16_t>(input, d, widen);
  if (type == DataType::kInt8) return Make<int8_t, int16_t>(input, d, widen);
  return Make<uint8_t, int16_t>(input, d, widen);
}

}  // namespace fuselite::kernels
