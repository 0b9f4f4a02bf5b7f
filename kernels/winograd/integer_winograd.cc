#include "kernels/winograd/integer_winograd.h"

#include "kernels/gemm/quantized_tail.h"
#include "kernels/product/constant.h"
#include "kernels/winograd/integer_algorithm.h"
#include "kernels/winograd/winograd_kernel.h"

namespace fuselite::kernels {
namespace {

constexpr int kTiles[] = {2};
// What the vectorized tail takes to bring a tile's four vectors of sums to bytes, measured in
// layers of 16 and 32 channels.
constexpr WinogradNumbers kIntegers = {
    .bytes = sizeof(int16_t), .outputs = kTiles, .tail_cycles = 95};

WinogradBytes BytesOf(const TensorInfo& info) {
  return {.is_signed = ReadableType(info.type) == DataType::kInt8,
          .zero_point = static_cast<int16_t>(info.quantization.zero_point())};
}

class IntegerWinograd final : public WinogradKernel {
 public:
  Status Plan(const OpDescription& op, const PlanContext& context, const ProductDescription& conv,
              const WinogradCut& cut, const MakeWinogradMicroKernel& micro_kernel) {
    FUSELITE_ASSIGN_OR_RETURN(
        tail_, MakeQuantizedTail(op, conv.activation, conv.quantized_bias_type, cut.channels_out));
    transforms_ = FindIntegerWinogradTransforms(context.isa);
    if (transforms_ == nullptr) return NoVectorTarget(context.isa);
    apply_tail_ = ApplyTail(context.isa);
    image_ = BytesOf(op.inputs[0]);
    filters_ = BytesOf(op.inputs[1]);
    output_ = op.outputs[0];
    return PlanProducts(
        conv, cut,
        std::vector<std::byte>(static_cast<size_t>(cut.channels_in),
                               static_cast<std::byte>(image_.zero_point)),
        internal::Join("integers ", filters_.is_signed ? "s" : "u", filters_.zero_point),
        micro_kernel);
  }

 private:
  // The sums of outputs, row by row of the tiles, and what those beyond the image are written to.
  int64_t row_pixels() const { return cut().block_tiles * 2; }
  size_t finish_bytes() const override {
    return AlignUp(static_cast<size_t>(2 * row_pixels() * cut().chunk_channels) * sizeof(int32_t));
  }

  void TransformInput(const std::byte* const* pixels, std::byte* to,
                      int64_t term_bytes) const override {
    transforms_->input({.bytes = image_,
                        .pixels = pixels,
                        .channels = cut().channels_in,
                        .to = reinterpret_cast<int16_t*>(to),
                        .term_step = term_bytes / kIntegers.bytes});
  }

  void TransformFilter(const std::byte* taps, std::byte* to, int64_t term_bytes) const override {
    transforms_->filter({.bytes = filters_,
                         .taps = taps,
                         .channels = cut().channels_in,
                         .to = reinterpret_cast<int16_t*>(to),
                         .term_step = term_bytes / kIntegers.bytes});
  }

  void Finish(const KernelArgs& args, const Tiles& tiles, int64_t chunk, const std::byte* sums,
              std::byte* scratch) const override {
    auto* const outputs = reinterpret_cast<int32_t*>(scratch);
    const int64_t channel = chunk * cut().chunk_channels, channels = ChannelsOf(chunk);
    IntegerWinogradOutput tile{.term_step = channels, .channels = channels, .pixels = {}};
    if (tail_.bias_type != DataType::kNone) {
      tile.bias = static_cast<const int32_t*>(args.inputs[tail_.inputs.bias]) + channel;
    }
    for (int64_t t = tiles.first; t < tiles.last; ++t, sums += cut().sums_bytes()) {
      tile.sums = reinterpret_cast<const int32_t*>(sums);
      int32_t* const first = outputs + (t - tiles.first) * 2 * channels;
      for (int64_t i = 0; i < 4; ++i) {
        tile.pixels[i] = first + (i / 2 * row_pixels() + i % 2) * channels;
      }
      transforms_->output(tile);
    }
    ForCommonRows(tiles, [&](const CommonRow& common) {
      const int64_t pixel = common.i * row_pixels() + (common.tile - tiles.first) * 2;
      apply_tail_(tail_.tail, args.inputs,
                  {.source = outputs + pixel * channels,
                   .source_pitch = channels,
                   .source_type = DataType::kInt32,
                   .destination = static_cast<std::byte*>(args.outputs[0]) +
                                  common.row * output_.pitch() + channel,
                   .destination_pitch = output_.pitch(),
                   .destination_type = output_.type,
                   .row = common.row,
                   .rows = common.rows,
                   .channel = channel,
                   .channels = channels});
    });
  }

  QuantizedTail tail_;
  ApplyTailFunction* apply_tail_ = nullptr;
  const IntegerWinogradTransforms* transforms_ = nullptr;
  WinogradBytes image_, filters_;
  TensorInfo output_;
};

bool IsByte(DataType type) { return type == DataType::kInt8 || type == DataType::kUInt8; }

Result<ProductDescription> Describe(const OpDescription& op) {
  const DataType in = op.inputs[0].type, weights = op.inputs[1].type;
  if (!IsByte(in) || ReadableType(weights) != in || !IsByte(op.outputs[0].type)) {
    return Unsupported("Winograd's algorithm in whole numbers is for 8-bit integers, not ",
                       DataTypeName(in), " with ", DataTypeName(weights));
  }
  if (op.has_input(2) && op.inputs[2].type != DataType::kInt32) {
    return Unsupported("does not take a bias of ", DataTypeName(op.inputs[2].type));
  }
  FUSELITE_ASSIGN_OR_RETURN(ProductDescription conv, DescribeWinograd(op));
  // Four times the largest sum of 9 taps for each channel has 32 bits.
  const WinogradBytes filters = BytesOf(op.inputs[1]);
  const int64_t largest_weight = filters.is_signed && filters.zero_point == 0 ? 128 : 255;
  if (conv.channels_in > INT32_MAX / (4 * 9 * 255 * largest_weight)) {
    return Unsupported("four times the sums of ", conv.channels_in, " channels are beyond 32 bits");
  }
  return conv;
}

Result<KernelPlan> PlanDescribed(const OpDescription& op, const PlanContext& context,
                                 const ProductDescription& conv,
                                 const MakeWinogradMicroKernel& micro_kernel) {
  IntegerWinograd draft;
  const WinogradCut cut = CutForWinograd(conv, kIntegers, 2, context.threads);
  FUSELITE_RETURN_IF_ERROR(draft.Plan(op, context, conv, cut, micro_kernel));
  return KernelPlan::Of(std::move(draft),
                        [](IntegerWinograd& kernel, const OpDescription& described,
                           const BuildContext& build) { return kernel.Build(described, build); });
}

}  // namespace

Result<KernelPlan> PlanIntegerWinograd(const OpDescription& op, const PlanContext& context,
                                       const MakeWinogradMicroKernel& micro_kernel,
                                       const MakeWinogradMicroKernel& plain) {
  FUSELITE_ASSIGN_OR_RETURN(const ProductDescription conv, Describe(op));
  FUSELITE_ASSIGN_OR_RETURN(const std::optional<int> outputs,
                            ChooseWinogradOutputs(conv, kIntegers, micro_kernel, plain));
  if (!outputs) return Unsupported("Winograd's algorithm would take longer than a plain product");
  return PlanDescribed(op, context, conv, micro_kernel);
}

Result<KernelPlan> PlanIntegerWinogradAnyway(const OpDescription& op, const PlanContext& context,
                                             const MakeWinogradMicroKernel& micro_kernel) {
  FUSELITE_ASSIGN_OR_RETURN(const ProductDescription conv, Describe(op));
  return PlanDescribed(op, context, conv, micro_kernel);
}

}  // namespace fuselite::kernels
