#include "kernels/winograd/winograd.h"

#include "kernels/gemm/output_tail.h"
#include "kernels/winograd/winograd_kernel.h"

namespace fuselite::kernels {
namespace {

constexpr int64_t kFloat = sizeof(float);

class FloatWinograd final : public WinogradKernel {
 public:
  Status Plan(const OpDescription& op, const PlanContext& context, const ProductDescription& conv,
              const WinogradCut& cut, const MakeWinogradMicroKernel& micro_kernel) {
    FUSELITE_ASSIGN_OR_RETURN(tail_, MakeFloatTail(op, conv.activation));
    apply_tail_ = ApplyTail(context.isa);
    transforms_ = FindWinogradTransforms(cut.tile, context.isa);
    if (transforms_ == nullptr) return NoVectorTarget(context.isa);
    out_pitch_ = op.outputs[0].pitch();
    biased_ = op.has_input(2);
    return PlanProducts(cut, InputAsItIs(conv, std::vector<std::byte>(cut.channels_in * kFloat)),
                        SimdName(context.isa), micro_kernel);
  }

 private:
  // What outputs beyond the image are written to.
  size_t finish_bytes() const override {
    return AlignUp(static_cast<size_t>(cut().chunk_channels * kFloat));
  }

  void TransformInput(const std::byte* const* pixels, std::byte* to,
                      int64_t term_bytes) const override {
    WinogradInput tile;
    for (int i = 0; i < cut().tile.terms(); ++i) {
      tile.pixels[i] = reinterpret_cast<const float*>(pixels[i]);
    }
    tile.channels = cut().channels_in;
    tile.to = reinterpret_cast<float*>(to);
    tile.term_step = term_bytes / kFloat;
    transforms_->input(tile);
  }

  void TransformFilter(const std::byte* taps, std::byte* to, int64_t filter_bytes) const override {
    transforms_->filter({.taps = reinterpret_cast<const float*>(taps),
                         .channels = cut().channels_in,
                         .to = reinterpret_cast<float*>(to),
                         .filter_step = filter_bytes / kFloat});
  }

  void Finish(const KernelArgs& args, const Tiles& tiles, int64_t chunk, const std::byte* sums,
              std::byte* scratch) const override {
    const auto& [y, x] = window();
    const int64_t channel = chunk * cut().chunk_channels;
    const int64_t outputs = cut().tile.outputs;
    const int64_t step_y = cut().y.dilation, step_x = cut().x.dilation;
    const int64_t out_step = step_x * out_pitch_;
    float* const out = OutputAt(args, 0, channel);
    auto* unwanted = reinterpret_cast<float*>(scratch);
    WinogradOutput tile;
    tile.channels = ChannelsOf(chunk);
    tile.term_step = tile.channels;
    tile.min = tail_.min;
    tile.max = tail_.max;
    if (biased_) tile.bias = static_cast<const float*>(args.inputs[2]) + channel;
    for (int64_t t = tiles.first; t < tiles.last; ++t, sums += cut().sums_bytes()) {
      tile.sums = reinterpret_cast<const float*>(sums);
      const Place place = PlaceOf(t);
      float** pixel = tile.pixels;
      for (int64_t i = 0, oy = place.y; i < outputs; ++i, oy += step_y) {
        int64_t at = RowOf(place.image, oy, place.x) * out_pitch_;
        for (int64_t j = 0, ox = place.x; j < outputs; ++j, ox += step_x, at += out_step) {
          *pixel++ = oy < y.output && ox < x.output ? out + at : unwanted;
        }
      }
      transforms_->output(tile);
    }
    if (!tail_.rest.empty()) ApplyRest(args, tiles, chunk);
  }

  float* OutputAt(const KernelArgs& args, int64_t row, int64_t channel) const {
    return static_cast<float*>(args.outputs[0]) + row * out_pitch_ + channel;
  }

  void ApplyRest(const KernelArgs& args, const Tiles& tiles, int64_t chunk) const {
    const int64_t channel = chunk * cut().chunk_channels;
    ForCommonRows(tiles, [&](const CommonRow& common) {
      float* out = OutputAt(args, common.row, channel);
      apply_tail_(tail_.rest, args.inputs,
                  {.source = out,
                   .source_pitch = out_pitch_,
                   .source_type = DataType::kFloat32,
                   .destination = out,
                   .destination_pitch = out_pitch_,
                   .destination_type = DataType::kFloat32,
                   .row = common.row,
                   .rows = common.rows,
                   .channel = channel,
                   .channels = ChannelsOf(chunk)});
    });
  }

  FloatTail tail_;
  ApplyTailFunction* apply_tail_ = nullptr;
  const WinogradTransforms* transforms_ = nullptr;
  int64_t out_pitch_ = 0;
  bool biased_ = false;
};

Result<ProductDescription> Describe(const OpDescription& op, const PlanContext& context) {
  if (context.precision == Precision::kStrict) {
    return Unsupported("precision=strict forbids Winograd's algorithm");
  }
  for (const DataType type : {op.inputs[0].type, op.inputs[1].type, op.outputs[0].type}) {
    if (type != DataType::kFloat32) {
      return Unsupported("Winograd's algorithm is for float32, not ", DataTypeName(type));
    }
  }
  return DescribeWinograd(op, kFloatTiles);
}

}  // namespace

Result<KernelPlan> PlanWinograd(const OpDescription& op, const PlanContext& context,
                                const MakeWinogradMicroKernel& micro_kernel,
                                const MakeWinogradMicroKernel& plain) {
  FUSELITE_ASSIGN_OR_RETURN(const ProductDescription conv, Describe(op, context));
  FUSELITE_ASSIGN_OR_RETURN(const std::optional<WinogradTile> tile,
                            ChooseWinogradTile(conv, kWinogradFloats, micro_kernel, plain));
  if (!tile) return Unsupported("Winograd's algorithm would take longer than a plain product");
  return PlanWinogradWith(op, context, tile->outputs, micro_kernel);
}

Result<KernelPlan> PlanWinogradWith(const OpDescription& op, const PlanContext& context,
                                    int outputs, const MakeWinogradMicroKernel& micro_kernel) {
  FUSELITE_ASSIGN_OR_RETURN(const ProductDescription conv, Describe(op, context));
  const WinogradCut cut =
      CutForWinograd(conv, kWinogradFloats, {outputs, conv.padding.x.stride}, context.threads);
  FloatWinograd draft;
  FUSELITE_RETURN_IF_ERROR(draft.Plan(op, context, conv, cut, micro_kernel));
  return KernelPlan::Of(std::move(draft),
                        [](FloatWinograd& kernel, const OpDescription& described,
                           const BuildContext& build) { return kernel.Build(described, build); });
}

}  // namespace fuselite::kernels
