#include "kernels/winograd/winograd.h"

#include <algorithm>
#include <vector>

#include "kernels/gemm/output_tail.h"
#include "kernels/product/constant.h"

namespace fuselite::kernels {
namespace {

constexpr int64_t kFloat = sizeof(float);
// What half a microsecond computes (Kernel::grain).
constexpr double kGrainMultiplies = 4e3;

class WinogradKernel final : public Kernel {
 public:
  Status Plan(const OpDescription& op, const PlanContext& context, const ProductDescription& conv,
              const WinogradCut& cut, const MakeMicroKernelF32& micro_kernel) {
    window_ = conv.padding;
    cut_ = cut;
    FUSELITE_ASSIGN_OR_RETURN(tail_, MakeFloatTail(op, conv.activation));
    apply_tail_ = ApplyTail(context.isa);
    transforms_ = FindWinogradTransforms(cut.outputs, context.isa);
    if (transforms_ == nullptr) return NoVectorTarget(context.isa);
    simd_name_ = SimdName(context.isa);
    pitch_ = conv.pixel_pitch;
    out_pitch_ = op.outputs[0].pitch();
    biased_ = op.has_input(2);
    zeros_.assign(static_cast<size_t>(cut.channels_in), 0.0f);
    const int64_t last = cut.channels_out - (cut.chunks() - 1) * cut.chunk_channels;
    for (const int64_t channels : {cut.chunk_channels, last}) {
      ProductProblem problem = WinogradProducts(cut, channels);
      FUSELITE_ASSIGN_OR_RETURN(auto kernel, micro_kernel(WinogradDepth(cut), problem));
      FUSELITE_ASSIGN_OR_RETURN(Product product,
                                Product::Plan(std::move(problem), std::move(kernel), 1));
      products_.push_back(std::move(product));
      if (last == cut.chunk_channels) break;
    }
    name_ = products_.front().name();
    return Status();
  }

  Status Build(const OpDescription& op, const BuildContext& context) {
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
      Pack(ReadableConstant(filters).as<float>(), to);
    }));
    return Status();
  }

  std::string_view name() const override { return name_; }
  int64_t units(int) const override { return cut_.blocks() * cut_.chunks(); }
  int64_t grain(int) const override {
    const double unit = static_cast<double>(cut_.block_tiles * cut_.terms() * cut_.channels_in) *
                        static_cast<double>(cut_.chunk_channels);
    return std::max<int64_t>(1, static_cast<int64_t>(kGrainMultiplies / unit));
  }
  size_t scratch_bytes() const override { return sums_at() + unwanted_at() + AlignedChunk(); }

  Status Run(const KernelArgs& args, int, int64_t begin, int64_t end) const override {
    int64_t transformed = -1;
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t block = unit / cut_.chunks(), chunk = unit % cut_.chunks();
      const int64_t first = block * cut_.block_tiles;
      const Tiles tiles{first, std::min(cut_.tiles, first + cut_.block_tiles)};
      if (block != transformed) TransformInputs(args, tiles);
      transformed = block;
      Multiply(args, tiles, chunk);
      TransformSums(args, tiles, chunk);
      if (!tail_.rest.empty()) ApplyRest(args, tiles, chunk);
    }
    return Status();
  }

 private:
  // Tiles [first, last) of all images.
  struct Tiles {
    int64_t first, last;
  };
  // The image of a tile, and its first output.
  struct Place {
    int64_t image, y, x;
  };
  Place PlaceOf(int64_t tile) const {
    const int64_t row = tile / cut_.tiles_x;
    return {row / cut_.tiles_y, row % cut_.tiles_y * cut_.outputs,
            tile % cut_.tiles_x * cut_.outputs};
  }

  // Scratch: the transformed inputs, the sums, and what outputs beyond the image are written to.
  size_t sums_at() const { return static_cast<size_t>(cut_.terms() * cut_.term_bytes()); }
  size_t unwanted_at() const { return static_cast<size_t>(cut_.block_tiles * cut_.sums_bytes()); }
  size_t AlignedChunk() const { return AlignUp(static_cast<size_t>(cut_.chunk_channels * kFloat)); }

  const Product& ProductOf(int64_t chunk) const {
    return chunk + 1 < cut_.chunks() ? products_.front() : products_.back();
  }
  size_t PackedBytes() const {
    return static_cast<size_t>(cut_.chunks() - 1) * AlignUp(products_.front().packed_bytes()) +
           products_.back().packed_bytes();
  }
  std::string Layout() const {
    std::string layout = internal::Join("winograd ", simd_name_, ' ', cut_.outputs, " k",
                                        cut_.channels_in, " n", cut_.channels_out);
    for (const Product& product : products_) layout += ' ' + product.layout();
    return layout;
  }

  void Pack(const float* filters, std::byte* to) const {
    const int64_t filter = int64_t{kWinogradFilter} * kWinogradFilter * cut_.channels_in;
    std::vector<float> terms;
    for (int64_t chunk = 0; chunk < cut_.chunks(); ++chunk) {
      const Product& product = ProductOf(chunk);
      const int64_t first = chunk * cut_.chunk_channels;
      const int64_t count = std::min(cut_.chunk_channels, cut_.channels_out - first);
      terms.resize(static_cast<size_t>(cut_.terms() * count * cut_.channels_in));
      for (int64_t n = 0; n < count; ++n) {
        transforms_->filter({.taps = filters + (first + n) * filter,
                             .channels = cut_.channels_in,
                             .to = terms.data() + n * cut_.channels_in,
                             .term_step = count * cut_.channels_in});
      }
      product.Pack({terms.data(), 1, cut_.channels_in, nullptr}, to, 0, product.panels());
      to += AlignUp(product.packed_bytes());
    }
  }

  void TransformInputs(const KernelArgs& args, const Tiles& tiles) const {
    const auto& [y, x] = window_;
    const int inputs = WinogradInputs(cut_.outputs);
    WinogradInput tile;
    tile.channels = cut_.channels_in;
    tile.term_step = cut_.term_bytes() / kFloat;
    tile.to = reinterpret_cast<float*>(args.scratch);
    for (int64_t t = tiles.first; t < tiles.last; ++t, tile.to += cut_.channels_in) {
      const Place place = PlaceOf(t);
      const auto* image =
          static_cast<const float*>(args.inputs[0]) + place.image * y.input * x.input * pitch_;
      const float** pixel = tile.pixels;
      for (int i = 0; i < inputs; ++i) {
        const int64_t iy = place.y - y.before + i;
        const bool inside = iy >= 0 && iy < y.input;
        for (int j = 0; j < inputs; ++j) {
          const int64_t ix = place.x - x.before + j;
          *pixel++ = inside && ix >= 0 && ix < x.input ? image + (iy * x.input + ix) * pitch_
                                                       : zeros_.data();
        }
      }
      transforms_->input(tile);
    }
  }

  // In a block that is not full, rows up to the end of the product's last tile are computed
  // and ignored.
  void Multiply(const KernelArgs& args, const Tiles& tiles, int64_t chunk) const {
    const Product& product = ProductOf(chunk);
    void* const sums[] = {args.scratch + sums_at()};
    const KernelArgs inner{args.inputs, sums, nullptr, nullptr};
    const ProductOperands operands{
        .args = inner,
        .left = args.scratch,
        .panels = packed_->data() +
                  static_cast<size_t>(chunk) * AlignUp(products_.front().packed_bytes())};
    const int64_t rows = product.tiling().rows;
    const int64_t count = (tiles.last - tiles.first + rows - 1) / rows;
    const EnteredMicroKernel entered(product.kernel());
    for (int64_t panel = 0; panel < product.panels(); ++panel) {
      product.RunTiles(operands, 0, 0, count, panel);
    }
  }

  void TransformSums(const KernelArgs& args, const Tiles& tiles, int64_t chunk) const {
    const auto& [y, x] = window_;
    const int64_t channel = chunk * cut_.chunk_channels;
    const std::byte* sums = args.scratch + sums_at();
    auto* unwanted = reinterpret_cast<float*>(args.scratch + sums_at() + unwanted_at());
    WinogradOutput tile;
    tile.channels = std::min(cut_.chunk_channels, cut_.channels_out - channel);
    tile.term_step = tile.channels;
    tile.min = tail_.min;
    tile.max = tail_.max;
    if (biased_) tile.bias = static_cast<const float*>(args.inputs[2]) + channel;
    for (int64_t t = tiles.first; t < tiles.last; ++t, sums += cut_.sums_bytes()) {
      tile.sums = reinterpret_cast<const float*>(sums);
      const Place place = PlaceOf(t);
      float** pixel = tile.pixels;
      for (int64_t oy = place.y; oy < place.y + cut_.outputs; ++oy) {
        for (int64_t ox = place.x; ox < place.x + cut_.outputs; ++ox) {
          const bool wanted = oy < y.output && ox < x.output;
          *pixel++ = wanted ? OutputAt(args, RowOf(place.image, oy, ox), channel) : unwanted;
        }
      }
      transforms_->output(tile);
    }
  }

  // Pixels of the output, as its tail counts them.
  int64_t RowOf(int64_t image, int64_t oy, int64_t ox) const {
    return (image * window_.y.output + oy) * window_.x.output + ox;
  }
  float* OutputAt(const KernelArgs& args, int64_t row, int64_t channel) const {
    return static_cast<float*>(args.outputs[0]) + row * out_pitch_ + channel;
  }

  // Over the rows of outputs that tiles next to each other have in common.
  void ApplyRest(const KernelArgs& args, const Tiles& tiles, int64_t chunk) const {
    const auto& [y, x] = window_;
    const int64_t channel = chunk * cut_.chunk_channels;
    for (int64_t first = tiles.first; first < tiles.last;) {
      const int64_t next = std::min(tiles.last, (first / cut_.tiles_x + 1) * cut_.tiles_x);
      const Place place = PlaceOf(first);
      const int64_t rows = std::min<int64_t>((next - first) * cut_.outputs, x.output - place.x);
      const int64_t last_y = std::min<int64_t>(place.y + cut_.outputs, y.output);
      for (int64_t oy = place.y; oy < last_y; ++oy) {
        const int64_t row = RowOf(place.image, oy, place.x);
        float* out = OutputAt(args, row, channel);
        apply_tail_(tail_.rest, args.inputs,
                    {.source = out,
                     .source_pitch = out_pitch_,
                     .source_type = DataType::kFloat32,
                     .destination = out,
                     .destination_pitch = out_pitch_,
                     .destination_type = DataType::kFloat32,
                     .row = row,
                     .rows = rows,
                     .channel = channel,
                     .channels = std::min(cut_.chunk_channels, cut_.channels_out - channel)});
      }
      first = next;
    }
  }

  Window window_;
  WinogradCut cut_;
  FloatTail tail_;
  ApplyTailFunction* apply_tail_ = nullptr;
  const WinogradTransforms* transforms_ = nullptr;
  const char* simd_name_ = "";
  int64_t pitch_ = 0, out_pitch_ = 0;
  bool biased_ = false;
  std::string name_;
  std::vector<float> zeros_;       // a pixel of padding
  std::vector<Product> products_;  // of a chunk, and of the last one where it has fewer channels
  PackedWeights packed_;
};

// The convolution, where the algorithm computes such.
Result<ProductDescription> Describe(const OpDescription& op, const PlanContext& context) {
  if (context.precision == Precision::kStrict) {
    return Unsupported("precision=strict forbids Winograd's algorithm");
  }
  for (const DataType type : {op.inputs[0].type, op.inputs[1].type, op.outputs[0].type}) {
    if (type != DataType::kFloat32) {
      return Unsupported("Winograd's algorithm is for float32, not ", DataTypeName(type));
    }
  }
  FUSELITE_ASSIGN_OR_RETURN(ProductDescription conv, op.op->product(op));
  for (const WindowAxis& axis : {conv.padding.y, conv.padding.x}) {
    if (axis.filter == kWinogradFilter && axis.stride == 1 && axis.dilation == 1) continue;
    return Unsupported("Winograd's algorithm is for 3x3 windows of stride 1");
  }
  if (conv.groups != 1) return Unsupported("Winograd's algorithm is for one group");
  if (!op.inputs[1].constant()) return Unsupported("filters are known only at run time");
  if (op.outputs[0].elements() * conv.channels_in == 0) {
    return Unsupported("nothing is computed in an empty product");
  }
  return conv;
}

}  // namespace

Result<KernelPlan> PlanWinograd(const OpDescription& op, const PlanContext& context,
                                const MakeMicroKernelF32& micro_kernel,
                                const MakeMicroKernelF32& plain) {
  FUSELITE_ASSIGN_OR_RETURN(const ProductDescription conv, Describe(op, context));
  FUSELITE_ASSIGN_OR_RETURN(const std::optional<int> outputs,
                            ChooseWinogradOutputs(conv, micro_kernel, plain));
  if (!outputs) return Unsupported("Winograd's algorithm would take longer than a plain product");
  return PlanWinogradWith(op, context, *outputs, micro_kernel);
}

Result<KernelPlan> PlanWinogradWith(const OpDescription& op, const PlanContext& context,
                                    int outputs, const MakeMicroKernelF32& micro_kernel) {
  FUSELITE_ASSIGN_OR_RETURN(const ProductDescription conv, Describe(op, context));
  WinogradKernel draft;
  FUSELITE_RETURN_IF_ERROR(
      draft.Plan(op, context, conv, CutForWinograd(conv, outputs, context.threads), micro_kernel));
  return KernelPlan::Of(std::move(draft),
                        [](WinogradKernel& kernel, const OpDescription& described,
                           const BuildContext& build) { return kernel.Build(described, build); });
}

}  // namespace fuselite::kernels
