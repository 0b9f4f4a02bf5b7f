#include "kernels/winograd/integer_kernel.h"

#include <optional>
#include <utility>

namespace fuselite::kernels {

Status CheckIntegerWinogradPays(const ProductDescription& conv,
                                const MakeWinogradMicroKernel& micro_kernel,
                                const MakeWinogradMicroKernel& plain) {
  FUSELITE_ASSIGN_OR_RETURN(const std::optional<WinogradTile> tile,
                            ChooseWinogradTile(conv, kWinogradIntegers, micro_kernel, plain));
  if (tile) return Status();
  return Unsupported("Winograd's algorithm would take longer than a plain product");
}

Status CheckIntegerSums(int64_t channels, int64_t largest_weight) {
  if (channels <= INT32_MAX / (4 * 9 * 255 * largest_weight)) return Status();
  return Unsupported("four times the sums of ", channels, " channels are beyond 32 bits");
}

Status IntegerWinogradKernel::PlanIntegers(const PlanContext& context, const WinogradCut& cut,
                                           WinogradSides sides, const WinogradValues& images,
                                           const WinogradValues& filters,
                                           const MakeWinogradMicroKernel& micro_kernel) {
  transforms_ = FindIntegerWinogradTransforms(context.isa);
  if (transforms_ == nullptr) return NoVectorTarget(context.isa);
  images_ = images;
  filters_ = filters;
  return PlanProducts(
      cut, std::move(sides),
      internal::Join("integers ", DataTypeName(filters.type), ' ', filters.zero_point),
      micro_kernel);
}

size_t IntegerWinogradKernel::finish_bytes() const {
  return AlignUp(static_cast<size_t>(2 * row_pixels() * cut().chunk_channels) * sizeof(int32_t));
}

void IntegerWinogradKernel::TransformInput(const std::byte* const* pixels, std::byte* to,
                                           int64_t term_bytes) const {
  transforms_->input({.values = images_,
                      .pixels = pixels,
                      .channels = cut().channels_in,
                      .to = reinterpret_cast<int16_t*>(to),
                      .term_step = term_bytes / kWinogradIntegers.bytes});
}

void IntegerWinogradKernel::TransformFilter(const std::byte* taps, std::byte* to,
                                            int64_t filter_bytes) const {
  transforms_->filter({.values = filters_,
                       .taps = taps,
                       .channels = cut().channels_in,
                       .to = reinterpret_cast<int16_t*>(to),
                       .term_step = filter_bytes / kWinogradIntegers.bytes});
}

void IntegerWinogradKernel::Finish(const KernelArgs& args, const Tiles& tiles, int64_t chunk,
                                   const std::byte* sums, std::byte* scratch) const {
  auto* const outputs = reinterpret_cast<int32_t*>(scratch);
  const int64_t channel = chunk * cut().chunk_channels, channels = ChannelsOf(chunk);
  const int32_t* const bias = Bias(args);
  IntegerWinogradOutput tile{.term_step = channels, .channels = channels, .pixels = {}};
  if (bias != nullptr) tile.bias = bias + channel;
  for (int64_t t = tiles.first; t < tiles.last; ++t, sums += cut().sums_bytes()) {
    tile.sums = reinterpret_cast<const int32_t*>(sums);
    int32_t* const first = outputs + (t - tiles.first) * 2 * channels;
    for (int64_t i = 0; i < 4; ++i) {
      tile.pixels[i] = first + (i / 2 * row_pixels() + i % 2) * channels;
    }
    transforms_->output(tile);
  }
  ForCommonRows(tiles, [&](const CommonRow& common) {
    const int64_t pixel = common.i * row_pixels() + (common.tile - tiles.first) * 2 + common.j;
    StoreRows(args, {.sums = outputs + pixel * channels,
                     .row = common.row,
                     .rows = common.rows,
                     .channel = channel,
                     .channels = channels});
  });
}

}  // namespace fuselite::kernels
