#include "kernels/winograd/winograd_kernel.h"

#include <algorithm>
#include <utility>

#include "kernels/product/constant.h"

namespace fuselite::kernels {
namespace {

// A range of units is worth a thread's attention when it takes about a microsecond.
constexpr double kGrainMultiplies = 16e3;

}  // namespace

WinogradSides InputAsItIs(const ProductDescription& conv, std::vector<std::byte> padding) {
  const auto& [y, x] = conv.padding;
  const auto value_bytes = static_cast<int64_t>(padding.size()) / conv.channels_in;
  const int64_t pixel = conv.pixel_pitch * value_bytes, row = x.input * pixel;
  const ImageMemory memory{.pixel = pixel, .row = row, .image = y.input * row};
  return {.images = std::make_shared<InputSource>(0, memory),
          .window = conv.padding,
          .padding = std::move(padding),
          .filter_value_bytes = value_bytes};
}

Status WinogradKernel::PlanProducts(const WinogradCut& cut, WinogradSides sides,
                                    std::string transform,
                                    const MakeWinogradMicroKernel& micro_kernel) {
  sides_ = std::move(sides);
  memory_ = sides_.images->memory();
  places_ = sides_.images->places();
  cut_ = cut;
  transform_ = std::move(transform);
  filter_bytes_ = kWinogradFilter * kWinogradFilter * cut.channels_in * sides_.filter_value_bytes;
  const int64_t last = cut.channels_out - (cut.chunks() - 1) * cut.chunk_channels;
  for (const int64_t channels : {cut.chunk_channels, last}) {
    ProductProblem problem = WinogradProduct(cut, channels);
    FUSELITE_ASSIGN_OR_RETURN(auto kernel, micro_kernel(WinogradDepth(cut), problem));
    FUSELITE_ASSIGN_OR_RETURN(Product product,
                              Product::Plan(std::move(problem), std::move(kernel), 1));
    products_.push_back(std::move(product));
    if (last == cut.chunk_channels) break;
  }
  name_ = products_.front().name();
  for (int term = 0; term < cut.tile.terms(); ++term) {
    turns_.push_back({term, cut.tile.FilterOf(term)});
  }
  std::ranges::stable_sort(turns_, {}, &Turn::filter);
  phases_ = sides_.images->phases();
  phases_.push_back(
      {.units = cut_.blocks() * cut_.chunks(), .grain = grain_of_own_phase(), .run = nullptr});
  shared_bytes_ = sides_.images->shared_bytes();
  scratch_bytes_ = sums_at() + sums_bytes() + finish_bytes();
  return Status();
}

Status WinogradKernel::Build(const OpDescription& op, const BuildContext& context) {
  for (Product& product : products_) {
    FUSELITE_ASSIGN_OR_RETURN(product, product.Build());
  }
  const TensorInfo& filters = op.inputs[1];
  const PackRequest request{.source = filters.data,
                            .source_bytes = filters.bytes(),
                            .source2 = nullptr,
                            .source2_bytes = 0,
                            .layout = Layout(),
                            .bytes = PackedBytes()};
  FUSELITE_ASSIGN_OR_RETURN(packed_, context.Pack(request, [&](std::byte* to) {
    Pack(ReadableConstant(filters).as<std::byte>(), to);
  }));
  return Status();
}

int64_t WinogradKernel::grain_of_own_phase() const {
  const double unit = static_cast<double>(cut_.block_tiles * cut_.tile.terms() * cut_.channels_in) *
                      static_cast<double>(cut_.chunk_channels);
  return std::max<int64_t>(1, static_cast<int64_t>(kGrainMultiplies / unit));
}

Status WinogradKernel::Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const {
  if (phase + 1 < phases()) return PhasedKernel::Run(args, phase, begin, end);
  RunUnits(args, begin, end);
  return Status();
}

void WinogradKernel::RunUnits(const KernelArgs& args, int64_t begin, int64_t end) const {
  int64_t transformed = -1;
  const std::byte* const sums = args.scratch + sums_at();
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t block = unit / cut_.chunks(), chunk = unit % cut_.chunks();
    const int64_t first = block * cut_.block_tiles;
    const Tiles tiles{first, std::min(cut_.tiles, first + cut_.block_tiles)};
    if (block != transformed) TransformInputs(args, tiles);
    transformed = block;
    Multiply(args, tiles, chunk);
    Finish(args, tiles, chunk, sums, args.scratch + sums_at() + sums_bytes());
  }
}

size_t WinogradKernel::PackedBytes() const {
  return static_cast<size_t>(cut_.chunks() - 1) * ChunkBytes(products_.front()) +
         ChunkBytes(products_.back());
}

std::string WinogradKernel::Layout() const {
  std::string layout =
      internal::Join("winograd ", transform_, ' ', cut_.tile.outputs, '/', cut_.tile.stride, " k",
                     cut_.channels_in, " n", cut_.channels_out);
  for (const Product& product : products_) layout += ' ' + product.layout();
  return layout;
}

void WinogradKernel::Pack(const std::byte* filters, std::byte* to) const {
  std::vector<std::byte> transformed;
  const int64_t row = cut_.channels_in * cut_.value_bytes;
  for (int64_t chunk = 0; chunk < cut_.chunks(); ++chunk) {
    const Product& product = ProductOf(chunk);
    const int64_t first = chunk * cut_.chunk_channels, count = ChannelsOf(chunk);
    transformed.resize(static_cast<size_t>(cut_.tile.filters() * count * row));
    for (int64_t n = 0; n < count; ++n) {
      TransformFilter(filters + (first + n) * filter_bytes_, transformed.data() + n * row,
                      count * row);
    }
    const std::byte* from = transformed.data();
    for (int f = 0; f < cut_.tile.filters(); ++f, from += count * row) {
      product.Pack({from, 1, cut_.channels_in, nullptr}, to, 0, product.panels());
      to += AlignUp(product.packed_bytes());
    }
  }
}

void WinogradKernel::TransformInputs(const KernelArgs& args, const Tiles& tiles) const {
  const auto& [y, x] = window();
  const std::byte* const images = places_.Pixels(args);
  const int inputs = cut_.tile.inputs(), stride = cut_.tile.stride;
  const int64_t step_y = cut_.y.dilation, step_x = cut_.x.dilation;
  std::byte* to = args.scratch;
  for (int64_t t = tiles.first; t < tiles.last; ++t, to += cut_.channels_in * cut_.value_bytes) {
    const Place place = PlaceOf(t);
    const std::byte* const image = images + place.image * memory_.image;
    const std::byte* pixels[kMaxWinogradTerms];
    const std::byte** pixel = pixels;
    for (int i = 0; i < inputs; ++i) {
      const int64_t iy = place.y * stride - y.before + i * step_y;
      const bool inside = iy >= 0 && iy < y.input;
      for (int j = 0; j < inputs; ++j) {
        const int64_t ix = place.x * stride - x.before + j * step_x;
        *pixel++ = inside && ix >= 0 && ix < x.input ? image + iy * memory_.row + ix * memory_.pixel
                                                     : sides_.padding.data();
      }
    }
    TransformInput(pixels, to, cut_.term_bytes());
  }
}

// In a block that is not full, rows up to the end of the product's last tile are computed and
// ignored.
void WinogradKernel::Multiply(const KernelArgs& args, const Tiles& tiles, int64_t chunk) const {
  const Product& product = ProductOf(chunk);
  const std::byte* const packed =
      packed_->data() + static_cast<size_t>(chunk) * ChunkBytes(products_.front());
  const auto filter_bytes = static_cast<int64_t>(AlignUp(product.packed_bytes()));
  const int64_t sum_bytes = ChannelsOf(chunk) * product.problem().out_value_bytes;
  const int64_t rows = product.tiling().rows;
  const int64_t count = (tiles.last - tiles.first + rows - 1) / rows;
  const EnteredMicroKernel entered(product.kernel());
  for (const auto& [term, filter] : turns_) {
    void* const sums[] = {args.scratch + sums_at() + term * sum_bytes};
    const KernelArgs inner{args.inputs, sums, nullptr, nullptr};
    const ProductOperands operands{.args = inner,
                                   .left = args.scratch + term * cut_.term_bytes(),
                                   .panels = packed + filter * filter_bytes};
    for (int64_t panel = 0; panel < product.panels(); ++panel) {
      product.RunTiles(operands, 0, 0, count, panel);
    }
  }
}

Result<ProductDescription> DescribeWinograd(const OpDescription& op,
                                            std::span<const WinogradTile> tiles) {
  FUSELITE_ASSIGN_OR_RETURN(ProductDescription conv, op.op->product(op));
  const auto& [y, x] = conv.padding;
  for (const WindowAxis& axis : {y, x}) {
    if (axis.filter != kWinogradFilter) {
      return Unsupported("Winograd's algorithm is for 3x3 windows");
    }
    if (axis.dilation != 1 && axis.stride != 1) {
      return Unsupported("there is no Winograd's algorithm for dilation with a stride");
    }
  }
  const auto steps = [&, &x = x](const WinogradTile& tile) { return tile.stride == x.stride; };
  if (y.stride != x.stride || std::ranges::none_of(tiles, steps)) {
    return Unsupported("there is no Winograd's algorithm for strides of ", y.stride, " and ",
                       x.stride);
  }
  if (conv.groups != 1) return Unsupported("Winograd's algorithm is for one group");
  if (!op.inputs[1].constant()) return Unsupported("filters are known only at run time");
  if (op.outputs[0].elements() * conv.channels_in == 0) {
    return Unsupported("the product is empty");
  }
  return conv;
}

}  // namespace fuselite::kernels
