// Transposed convolution of 8-bit and 16-bit integers: as in float32, but the sums of an output row
// wait for their tail until all its phases have run.
#include <algorithm>

#include "kernels/conv2d/windows.h"
#include "kernels/gemm/gemm_s16.h"
#include "kernels/gemm/quantized_operands.h"
#include "kernels/gemm/quantized_tail.h"
#include "kernels/gemm/short_rows.h"
#include "kernels/gemm/wide_product.h"
#include "kernels/make_kernel.h"
#include "kernels/simd.h"
#include "kernels/transpose_conv/phases.h"

namespace fuselite::kernels {
namespace {

// A unit's rows of the left side, in tiles: they stay in L2 while the weights stream by.
constexpr int64_t kLeftSideValues = 64 * 1024;

bool IsByte(DataType type) { return type == DataType::kInt8 || type == DataType::kUInt8; }

int64_t Even(int64_t depth) { return (depth + 1) & ~int64_t{1}; }

class TransposeConvS8Kernel final : public Kernel {
 public:
  Status Plan(const OpDescription& op, const PlanContext& context);
  Status Pack(const OpDescription& op, const BuildContext& context);

  std::string_view name() const override { return name_; }
  int64_t units(int) const override { return int64_t{shape_.batch} * shape_.window.y.input; }
  int64_t grain(int) const override { return grain_; }
  size_t scratch_bytes() const override { return left_bytes_ + sums_bytes_ + totals_bytes_; }
  Status Run(const KernelArgs& args, int, int64_t begin, int64_t end) const override {
    for (int64_t row = begin; row < end; ++row) RunRow(args, row);
    return Status();
  }

 private:
  void RunRow(const KernelArgs& args, int64_t row) const;
  void RunPhase(const KernelArgs& args, int64_t row, int32_t rx) const;
  void Store(const KernelArgs& args, int64_t row) const;
  void ScaleWide(const KernelArgs& args) const;
  void Widen(const KernelArgs& args, int64_t at, int64_t n, int16_t* to) const;
  // The sums of an output row; after ScaleWide they are int16.
  int32_t* Sums(const KernelArgs& args) const {
    return reinterpret_cast<int32_t*>(args.scratch + left_bytes_);
  }
  // The sums of an output row where 32 bits do not hold them.
  int64_t* Totals(const KernelArgs& args) const {
    return reinterpret_cast<int64_t*>(args.scratch + left_bytes_ + sums_bytes_);
  }

  const GemmS16* gemm_ = nullptr;
  const ShortRowFunctions* functions_ = nullptr;
  ApplyTailFunction* apply_tail_ = nullptr;
  TransposeConvShape shape_;
  TransposeConvPhases phases_;
  QuantizedTail tail_;
  WideProduct wide_;  // of int16 activations
  TensorInfo output_;
  std::string name_;
  PackedWeights packed_;
  DataType x_type_ = DataType::kNone;
  int32_t x_offset_ = 0, filters_offset_ = 0;
  int64_t pitch_ = 0, block_rows_ = 0, grain_ = 1;
  size_t left_bytes_ = 0, sums_bytes_ = 0, totals_bytes_ = 0;
};

Status TransposeConvS8Kernel::Plan(const OpDescription& op, const PlanContext& context) {
  gemm_ = FindGemmS16(context.isa);
  functions_ = FindShortRowFunctions(context.isa);
  if (gemm_ == nullptr) return NoVectorTarget(context.isa);
  const TensorInfo& input = op.inputs[2];
  if ((!IsByte(input.type) && input.type != DataType::kInt16) || !IsByte(op.inputs[1].type)) {
    return Unsupported(DataTypeName(input.type), " with ", DataTypeName(op.inputs[1].type),
                       " filters is not of 8 or 16 by 8 bits");
  }
  x_type_ = input.type;
  x_offset_ = -input.quantization.zero_point();
  if (std::abs(x_offset_) > 255) return Unsupported("a zero point beyond 8 bits");
  FUSELITE_ASSIGN_OR_RETURN(shape_, ResolveTransposeConv(op));
  const auto& params = op.params.as<TransposeConvParams>();
  FUSELITE_ASSIGN_OR_RETURN(
      tail_,
      MakeQuantizedTail(op, params.activation, params.quantized_bias_type, shape_.channels_out));
  apply_tail_ = ApplyTail(context.isa);
  output_ = op.outputs[0];
  pitch_ = input.pitch();
  name_ = internal::Join("transpose_conv ", DataTypeName(x_type_), " ", gemm_->tile_rows, "x",
                         gemm_->panel, " ", SimdName(context.isa));
  FUSELITE_RETURN_IF_ERROR(phases_.Init(
      shape_, [&](int64_t depth) { return gemm_->PackedValues(depth, shape_.channels_out); }));
  const int64_t depth = Even(phases_.max_depth());
  const int64_t tiles = kLeftSideValues / std::max<int64_t>(1, depth * gemm_->tile_rows);
  block_rows_ = std::clamp<int64_t>(tiles, 1, 8) * gemm_->tile_rows;
  left_bytes_ = AlignUp(block_rows_ * depth * sizeof(int16_t));
  const int64_t row_values = int64_t{shape_.window.x.input} * shape_.channels_out;
  sums_bytes_ = AlignUp(row_values * sizeof(int32_t));
  if (tail_.wide) {
    wide_ = {.gemm = gemm_,
             .rows = FindWideRowFunctions(context.isa),
             .exact_terms = ExactTerms(op.inputs[1].type, 0)};
    if (!wide_.FitsNarrow(depth)) totals_bytes_ = row_values * sizeof(int64_t);
  }
  grain_ = GrainFor(int64_t{shape_.window.x.output} * shape_.channels_out * depth / 8);
  const TensorInfo& filters = op.inputs[1];
  if (!filters.constant()) return Unsupported("filters that are not constant");
  filters_offset_ = -filters.quantization.zero_point();
  if (std::abs(filters_offset_) > 255) return Unsupported("a zero point beyond 8 bits");
  return Status();
}

Status TransposeConvS8Kernel::Pack(const OpDescription& op, const BuildContext& context) {
  const TensorInfo& filters = op.inputs[1];
  const int32_t offset = filters_offset_;
  PackRequest request;
  request.source = filters.data;
  request.source_bytes = filters.bytes();
  request.bytes = static_cast<size_t>(phases_.values()) * sizeof(int16_t);
  request.layout = internal::Join("transpose_conv s16 p", gemm_->panel, " ", filters.shape, " s",
                                  shape_.window.y.stride, "x", shape_.window.x.stride, " +", offset,
                                  " ", DataTypeName(filters.type));
  FUSELITE_ASSIGN_OR_RETURN(packed_, context.Pack(request, [&](std::byte* to) {
    // Bytes are moved as they are, whatever their sign.
    const auto* bytes = static_cast<const uint8_t*>(filters.data);
    phases_.ForEach([&](const TransposeConvPhases::Phase& phase, int32_t ry, int32_t rx) {
      const std::vector<uint8_t> dense = phases_.Dense<uint8_t>(phase, ry, rx, bytes);
      const int64_t depth = phases_.DepthOf(phase);
      PackPanelsS16({.type = filters.type,
                     .data = dense.data(),
                     .first = 0,
                     .k_stride = 1,
                     .n_stride = depth,
                     .offset = offset,
                     .depth = depth,
                     .columns = shape_.channels_out},
                    gemm_->panel, 0, gemm_->panels(shape_.channels_out),
                    reinterpret_cast<int16_t*>(to) + phase.offset);
    });
  }));
  return Status();
}

void TransposeConvS8Kernel::RunRow(const KernelArgs& args, int64_t row) const {
  for (int32_t rx = 0; rx < shape_.window.x.stride; ++rx) RunPhase(args, row, rx);
  if (tail_.wide) ScaleWide(args);
  Store(args, row);
}

// The sums of the pixels of an output row whose columns leave the remainder `rx`.
void TransposeConvS8Kernel::RunPhase(const KernelArgs& args, int64_t row, int32_t rx) const {
  const TransposeConvPhases::Part part = phases_.PartOf(row, rx);
  const int64_t depth = phases_.DepthOf(*part.phase), count = part.conv.window.x.output;
  const int64_t stride = shape_.window.x.stride, channels = shape_.channels_out;
  const bool biased = tail_.bias_type != DataType::kNone && !tail_.wide;
  auto* left = reinterpret_cast<int16_t*>(args.scratch);
  for (int64_t r = 0; r < count; r += block_rows_) {
    const int64_t rows = std::min<int64_t>(block_rows_, count - r);
    if (depth > 0) {
      CopyWindows(part.conv, 0, pitch_, r, rows, Even(depth), left,
                  [&](int64_t at, int64_t n, int16_t* to) {
                    Widen(args, part.image * pitch_ + at, n, to);
                  });
    }
    const int64_t first = (part.first + r * stride) * channels;
    GemmS16Block block{
        .a = left,
        .rows = rows,
        .depth = Even(depth),
        .b = packed_->as<int16_t>() + part.phase->offset,
        .columns = channels,
        .bias = biased ? static_cast<const int32_t*>(args.inputs[tail_.inputs.bias]) : nullptr,
        .c = Sums(args),
        .c_pitch = channels};
    if (totals_bytes_ > 0) {
      wide_.Multiply(block, Totals(args) + first, stride * channels);
      continue;
    }
    block.c += first;
    block.c_pitch *= stride;
    gemm_->run(block);
  }
}

void TransposeConvS8Kernel::Widen(const KernelArgs& args, int64_t at, int64_t n,
                                  int16_t* to) const {
  const void* x = args.inputs[2];
  if (x_type_ == DataType::kInt16) {
    std::copy_n(static_cast<const int16_t*>(x) + at, n, to);
  } else if (x_type_ == DataType::kUInt8) {
    functions_->widen_u8(static_cast<const uint8_t*>(x) + at, n, x_offset_, to);
  } else {
    functions_->widen_s8(static_cast<const int8_t*>(x) + at, n, x_offset_, to);
  }
}

void TransposeConvS8Kernel::ScaleWide(const KernelArgs& args) const {
  const int64_t n = shape_.channels_out;
  auto* to = reinterpret_cast<int16_t*>(Sums(args));
  for (int64_t at = 0; at < shape_.window.x.input * n; at += n) {
    wide_.rows->scale(totals_bytes_ > 0 ? tail_.WideRowOf(args, 0, n, Totals(args) + at, to + at)
                                        : tail_.WideRowOf(args, 0, n, Sums(args) + at, to + at));
  }
}

void TransposeConvS8Kernel::Store(const KernelArgs& args, int64_t row) const {
  const WindowAxis& x = shape_.window.x;
  apply_tail_(tail_.tail, args.inputs,
              {.source = Sums(args),
               .source_pitch = shape_.channels_out,
               .source_type = tail_.source_type,
               .destination = static_cast<std::byte*>(args.outputs[0]) +
                              row * x.input * output_.pitch() * (BitWidth(output_.type) / 8),
               .destination_pitch = output_.pitch(),
               .destination_type = output_.type,
               .row = row * x.input,
               .rows = x.input,
               .channel = 0,
               .channels = shape_.channels_out});
}

}  // namespace

Result<KernelPlan> PlanTransposeConvHighwayS8(const OpDescription& op, const PlanContext& context) {
  return PlanThenPack(TransposeConvS8Kernel(), op, context);
}

}  // namespace fuselite::kernels
