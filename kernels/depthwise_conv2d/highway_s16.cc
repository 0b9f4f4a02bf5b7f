// Depthwise convolution of 8-bit and 16-bit activations, or of float32 ones quantized at run time:
// brought to int16 first, unless they are as vectors read them, then row by row, with a list of
// pointers to the pixels under a few neighbouring windows as in float32.
#include <algorithm>
#include <bit>
#include <vector>

#include "kernels/depthwise_conv2d/block_s16.h"
#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/gemm/gemm_s16.h"
#include "kernels/gemm/hybrid_tail.h"
#include "kernels/gemm/quantized_operands.h"
#include "kernels/gemm/quantized_tail.h"
#include "kernels/make_kernel.h"
#include "kernels/simd.h"
#include "kernels/source/short_rows_source.h"

namespace fuselite::kernels {
namespace {

// Half a megabyte: beyond it, the pointers alone leave no cache for the pixels.
constexpr int64_t kMaxPointers = 65536;

class DepthwiseS16Kernel final : public PhasedKernel {
 public:
  Status Plan(const OpDescription& op, const PlanContext& context);
  // In a copy of what was planned.
  Status Pack(const OpDescription& op, const BuildContext& context);

 private:
  void MakePhases();
  Result<std::shared_ptr<const Source>> MakeSource(const TensorInfo& input, Isa isa) const;
  Status PlanTail(const OpDescription& op, const PlanContext& context);
  Status PlanScratch();
  Status PlanFilters(const OpDescription& op);
  void PackFilters(const void* from, int16_t* to) const;
  void FillBias(const KernelArgs& args) const;
  void RunRow(const KernelArgs& args, int64_t unit) const;
  void PointToPixels(const KernelArgs& args, int64_t unit, int32_t ox, int count) const;
  void Store(const KernelArgs& args, int64_t row, int count) const;
  void ScaleWide(const KernelArgs& args, int count, int16_t* to, int64_t pitch) const;
  int32_t* Bias(const KernelArgs& args) const {
    return reinterpret_cast<int32_t*>(args.scratch + pointer_bytes_);
  }
  size_t filters_bytes() const { return static_cast<size_t>(taps_ * channels_) * sizeof(int16_t); }
  int16_t* FiltersOfRun(const KernelArgs& args) const {
    return reinterpret_cast<int16_t*>(args.shared + filters_at_);
  }
  int32_t* Sums(const KernelArgs& args) const {
    return reinterpret_cast<int32_t*>(args.scratch + pointer_bytes_ + bias_bytes_);
  }

  std::shared_ptr<const Source> source_;
  int64_t pixel_ = 0;  // elements from a pixel to the next, as the source leaves them
  const DepthwiseS16* simd_ = nullptr;
  DepthwiseConv2DShape shape_;
  QuantizedTail tail_;  // of integer activations
  const WideRowFunctions* wide_ = nullptr;
  HybridTail hybrid_;                          // of float32 ones
  HybridRowFunction* store_hybrid_ = nullptr;  // null for integers
  ApplyTailFunction* apply_tail_ = nullptr;
  TensorInfo output_;
  DataType filters_type_ = DataType::kNone;
  bool packs_at_each_run_ = false;
  size_t filters_at_ = 0;  // then, in KernelArgs::shared
  PackedWeights filters_;  // else
  int64_t channels_ = 0;   // of the output, rounded up
  int32_t taps_ = 0;       // of the window, rounded up
  int64_t span_ = 0;       // pixels under a row of max_count windows
  std::vector<int32_t> offsets_;
  std::vector<int16_t> zeros_;  // a pixel of padding
  size_t pointer_bytes_ = 0, bias_bytes_ = 0;
  int32_t filters_offset_ = 0;
};

Status DepthwiseS16Kernel::Plan(const OpDescription& op, const PlanContext& context) {
  simd_ = FindDepthwiseS16(context.isa);
  if (simd_ == nullptr) return NoVectorTarget(context.isa);
  FUSELITE_ASSIGN_OR_RETURN(shape_, ResolveDepthwiseConv2D(op));
  const TensorInfo& input = op.inputs[0];
  constexpr int kStep = DepthwiseS16::kChannels;
  channels_ = (int64_t{shape_.channels_out} + kStep - 1) / kStep * kStep;
  taps_ = (shape_.window.taps() + 1) & ~1;
  FUSELITE_RETURN_IF_ERROR(PlanTail(op, context));
  FUSELITE_ASSIGN_OR_RETURN(source_, MakeSource(input, context.isa));
  pixel_ = source_->memory().pixel / static_cast<int64_t>(sizeof(int16_t));
  output_ = op.outputs[0];
  name_ = internal::Join("depthwise ", store_hybrid_ == nullptr ? "" : "hybrid ",
                         DataTypeName(op.inputs[store_hybrid_ == nullptr ? 0 : 1].type), " ",
                         SimdName(context.isa));
  FUSELITE_RETURN_IF_ERROR(PlanScratch());
  shared_bytes_ = source_->shared_bytes();
  FUSELITE_RETURN_IF_ERROR(PlanFilters(op));
  MakePhases();
  return Status();
}

// int16 values that fill vectors are read where they lie.
Result<std::shared_ptr<const Source>> DepthwiseS16Kernel::MakeSource(const TensorInfo& input,
                                                                     Isa isa) const {
  const auto& [y, x] = shape_.window;
  const int64_t pixels = int64_t{y.input} * x.input;
  if (input.type == DataType::kInt16 && channels_ == shape_.channels_in) {
    const int64_t pixel = input.pitch() * static_cast<int64_t>(sizeof(int16_t));
    return std::shared_ptr<const Source>(std::make_shared<InputSource>(
        0, ImageMemory{.pixel = pixel, .row = x.input * pixel, .image = pixels * pixel}));
  }
  FUSELITE_ASSIGN_OR_RETURN(auto rows, ShortRowsSource::Make(0, input,
                                                             {.groups = shape_.batch,
                                                              .rows = pixels,
                                                              .values = shape_.channels_in,
                                                              .pitch = input.pitch(),
                                                              .repeat = shape_.multiplier,
                                                              .to_pitch = channels_,
                                                              .asymmetric = true},
                                                             isa));
  return std::shared_ptr<const Source>(std::move(rows));
}

Status DepthwiseS16Kernel::PlanTail(const OpDescription& op, const PlanContext& context) {
  wide_ = FindWideRowFunctions(context.isa);
  apply_tail_ = ApplyTail(context.isa);
  const Activation activation = op.params.as<DepthwiseConv2DParams>().activation;
  if (op.inputs[0].type == DataType::kFloat32) {
    FUSELITE_ASSIGN_OR_RETURN(hybrid_, MakeHybridTail(op, activation, shape_.channels_out));
    store_hybrid_ = FindHybridRow(context.isa);
    return Status();
  }
  FUSELITE_ASSIGN_OR_RETURN(
      tail_, MakeQuantizedTail(op, activation, DataType::kNone, shape_.channels_out));
  if (!tail_.wide && tail_.bias_type != DataType::kNone && tail_.bias_type != DataType::kInt32) {
    return Unsupported("does not take a bias of ", DataTypeName(tail_.bias_type));
  }
  if (tail_.wide && taps_ > ExactTerms(op.inputs[1].type, 0)) {
    return Unsupported("does not take windows of ", taps_, " taps of int16");
  }
  return Status();
}

// The pointers to a row's pixels, the bias and the sums; where the taps of a window lie among the
// pointers.
Status DepthwiseS16Kernel::PlanScratch() {
  const auto& [y, x] = shape_.window;
  span_ = (simd_->max_count - 1) * int64_t{x.stride} + (x.filter - 1) * int64_t{x.dilation} + 1;
  if (y.filter * span_ > kMaxPointers) {
    return Unsupported("a window of ", y.filter * span_, " pixels is too large");
  }
  pointer_bytes_ = AlignUp(y.filter * span_ * sizeof(int16_t*));
  bias_bytes_ = AlignUp(channels_ * sizeof(int32_t));
  zeros_.assign(channels_, 0);
  offsets_.assign(taps_, 0);
  for (int32_t t = 0; t < shape_.window.taps(); ++t) {
    offsets_[t] = static_cast<int32_t>(t / x.filter * span_ + t % x.filter * x.dilation);
  }
  scratch_bytes_ = pointer_bytes_ + bias_bytes_ + simd_->max_count * channels_ * sizeof(int32_t);
  return Status();
}

// Rows of the output, behind the source's phases and filters that come with a run.
void DepthwiseS16Kernel::MakePhases() {
  phases_ = source_->phases();
  if (packs_at_each_run_) {
    Phase packing{.units = 1, .grain = 1, .run = [this](const KernelArgs& args, int64_t, int64_t) {
                    PackFilters(args.inputs[1], FiltersOfRun(args));
                  }};
    if (phases_.empty()) {
      phases_.push_back(std::move(packing));
    } else {
      phases_.front() = Merge(std::move(packing), std::move(phases_.front()));
    }
  }
  phases_.push_back({.units = int64_t{shape_.batch} * shape_.window.y.output,
                     // A multiply-add is worth an eighth of what GrainFor counts.
                     .grain = GrainFor(int64_t{shape_.window.x.output} * channels_ * taps_ / 8),
                     .run = [this](const KernelArgs& args, int64_t begin, int64_t end) {
                       FillBias(args);
                       for (int64_t unit = begin; unit < end; ++unit) RunRow(args, unit);
                     }});
}

Status DepthwiseS16Kernel::PlanFilters(const OpDescription& op) {
  const TensorInfo& filters = op.inputs[1];
  filters_type_ = filters.type;
  if (filters_type_ != DataType::kInt8 && filters_type_ != DataType::kUInt8 &&
      filters_type_ != DataType::kInt4) {
    return Unsupported("takes filters of 8 bits, not ", DataTypeName(filters_type_));
  }
  filters_offset_ = -filters.quantization.zero_point();
  if (std::abs(filters_offset_) > 255)
    return Unsupported("does not take a zero point beyond 8 bits");
  packs_at_each_run_ = !filters.constant();
  if (!packs_at_each_run_) return Status();
  filters_at_ = AlignUp(shared_bytes_);
  shared_bytes_ = filters_at_ + filters_bytes();
  return Status();
}

// Channels side by side, with zeros between the last one and the next tap.
void DepthwiseS16Kernel::PackFilters(const void* from, int16_t* to) const {
  // The activations' type is only there to pick the filters'.
  const DataType x = filters_type_ == DataType::kUInt8 ? DataType::kUInt8 : DataType::kInt8;
  std::fill_n(to, taps_ * channels_, int16_t{0});
  WithQuantizedOperands(x, nullptr, filters_type_, from, [&](const auto*, const auto& weights) {
    const int64_t channels = shape_.channels_out;
    for (int64_t tap = 0, i = 0; tap < shape_.window.taps(); ++tap) {
      for (int64_t c = 0; c < channels; ++c, ++i) {
        to[tap * channels_ + c] = static_cast<int16_t>(weights[i] + filters_offset_);
      }
    }
  });
}

Status DepthwiseS16Kernel::Pack(const OpDescription& op, const BuildContext& context) {
  MakePhases();  // of this kernel, not of the one that was copied
  if (packs_at_each_run_) return Status();
  const TensorInfo& filters = op.inputs[1];
  PackRequest request;
  request.source = filters.data;
  request.source_bytes = filters.bytes();
  request.bytes = filters_bytes();
  request.layout =
      internal::Join("depthwise s16 ", taps_, "x", channels_, " of ", shape_.channels_out, " +",
                     filters_offset_, " ", DataTypeName(filters_type_));
  FUSELITE_ASSIGN_OR_RETURN(filters_, context.Pack(request, [&](std::byte* to) {
    PackFilters(filters.data, reinterpret_cast<int16_t*>(to));
  }));
  return Status();
}

void DepthwiseS16Kernel::FillBias(const KernelArgs& args) const {
  int32_t* bias = Bias(args);
  std::fill_n(bias, channels_, 0);
  if (store_hybrid_ == nullptr && !tail_.wide && tail_.bias_type != DataType::kNone) {
    std::copy_n(static_cast<const int32_t*>(args.inputs[2]), shape_.channels_out, bias);
  }
}

void DepthwiseS16Kernel::RunRow(const KernelArgs& args, int64_t unit) const {
  const WindowAxis& x = shape_.window.x;
  for (int32_t ox = 0; ox < x.output;) {
    const int count =
        std::min<int>(simd_->max_count, std::bit_floor(static_cast<uint32_t>(x.output - ox)));
    PointToPixels(args, unit, ox, count);
    simd_->run({.pixels = reinterpret_cast<const int16_t* const*>(args.scratch),
                .offsets = offsets_.data(),
                .taps = taps_,
                .stride = x.stride,
                .filters = packs_at_each_run_ ? FiltersOfRun(args) : filters_->as<int16_t>(),
                .channels = channels_,
                .bias = Bias(args),
                .out = Sums(args)},
               count);
    Store(args, unit * x.output + ox, count);
    ox += count;
  }
}

void DepthwiseS16Kernel::PointToPixels(const KernelArgs& args, int64_t unit, int32_t ox,
                                       int count) const {
  const auto& [y, x] = shape_.window;
  const auto** pixels = reinterpret_cast<const int16_t**>(args.scratch);
  const auto* const image = reinterpret_cast<const int16_t*>(source_->places().Pixels(args));
  const int32_t start_y = y.start(static_cast<int32_t>(unit % y.output)), start_x = x.start(ox);
  const int64_t used = (count - 1) * int64_t{x.stride} + (x.filter - 1) * int64_t{x.dilation} + 1;
  for (int32_t ky = 0; ky < y.filter; ++ky, pixels += span_) {
    const int64_t iy = start_y + int64_t{ky} * y.dilation;
    const bool inside = iy >= 0 && iy < y.input;
    const int64_t row = (unit / y.output * y.input + iy) * x.input;
    for (int64_t i = 0; i < used; ++i) {
      const int64_t ix = start_x + i;
      pixels[i] = inside && ix >= 0 && ix < x.input ? image + (row + ix) * pixel_ : zeros_.data();
    }
  }
}

// The sums of `count` pixels as int16.
void DepthwiseS16Kernel::ScaleWide(const KernelArgs& args, int count, int16_t* to,
                                   int64_t pitch) const {
  wide_->scale(tail_.WideRowsOf(args, Sums(args),
                                {.n = shape_.channels_out,
                                 .to = to,
                                 .rows = count,
                                 .sums_pitch = channels_,
                                 .to_pitch = pitch}));
}

// `count` pixels from output pixel `row` on.
void DepthwiseS16Kernel::Store(const KernelArgs& args, int64_t row, int count) const {
  const bool hybrid = store_hybrid_ != nullptr;
  const Tail& tail = hybrid ? hybrid_.tail.rest : tail_.tail;
  std::byte* destination = static_cast<std::byte*>(args.outputs[0]) +
                           row * output_.pitch() * (BitWidth(output_.type) / 8);
  int32_t* sums = Sums(args);
  if (hybrid) {
    const bool in_place = output_.type == DataType::kFloat32 && tail.empty();
    const auto* bias =
        hybrid_.bias < 0 ? nullptr : static_cast<const float*>(args.inputs[hybrid_.bias]);
    auto* to =
        reinterpret_cast<float*>(in_place ? destination : reinterpret_cast<std::byte*>(sums));
    const int64_t pitch = in_place ? output_.pitch() : channels_;
    const int64_t image = row / (int64_t{shape_.window.y.output} * shape_.window.x.output);
    const auto* scales = reinterpret_cast<const RowScale*>(source_->places().RowValues(args));
    for (int j = 0; j < count; ++j) {
      store_hybrid_({.sums = sums + j * channels_,
                     .n = shape_.channels_out,
                     .scale = scales[image].scale,
                     .scales = hybrid_.scales.data(),
                     .weights_first = false,
                     .bias = bias,
                     .min = hybrid_.tail.min,
                     .max = hybrid_.tail.max,
                     .to = to + j * pitch});
    }
    if (in_place) return;
  }
  if (tail_.wide) {
    const bool in_place = output_.type == DataType::kInt16 && tail.empty();
    if (in_place) {
      return ScaleWide(args, count, reinterpret_cast<int16_t*>(destination), output_.pitch());
    }
    ScaleWide(args, count, reinterpret_cast<int16_t*>(sums), 2 * channels_);
  }
  apply_tail_(tail, args.inputs,
              {.source = sums,
               .source_pitch = tail_.wide ? 2 * channels_ : channels_,
               .source_type = hybrid ? DataType::kFloat32 : tail_.source_type,
               .destination = destination,
               .destination_pitch = output_.pitch(),
               .destination_type = output_.type,
               .row = row,
               .rows = count,
               .channel = 0,
               .channels = shape_.channels_out});
}

}  // namespace

Result<KernelPlan> PlanDepthwiseConv2DHighwayS8(const OpDescription& op,
                                                const PlanContext& context) {
  return PlanThenPack(DepthwiseS16Kernel(), op, context);
}

}  // namespace fuselite::kernels
