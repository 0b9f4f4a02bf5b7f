// Transposed convolution of float32 activations with int8 filters: as in float32, from the
// quantized images.
#include <algorithm>

#include "kernels/conv2d/windows.h"
#include "kernels/gemm/gemm_f32.h"
#include "kernels/gemm/short_rows_kernel.h"
#include "kernels/make_kernel.h"
#include "kernels/micro_kernels/product_s16.h"
#include "kernels/simd.h"
#include "kernels/transpose_conv/panels_f32.h"
#include "kernels/transpose_conv/term_sums.h"

namespace fuselite::kernels {
namespace {

// A unit's rows of the left side: they stay in L1 beside a panel of weights.
constexpr int64_t kLeftSideFloats = 4096;

class TransposeConvHybridKernel final : public ShortRowsKernel {
 public:
  TransposeConvHybridKernel() : ShortRowsKernel(2) {}
  Status Plan(const OpDescription& op, const PlanContext& context);
  Status Pack(const OpDescription& op, const BuildContext& context) {
    FUSELITE_ASSIGN_OR_RETURN(
        packed_, PackFiltersF32<int8_t>("hybrid", phases_, *gemm_, op.inputs[1], context));
    return Status();
  }

  size_t scratch_bytes() const override { return left_bytes_ + row_bytes_; }

 private:
  int64_t own_units() const override { return int64_t{shape_.batch} * shape_.window.y.input; }
  int64_t own_grain() const override { return grain_; }
  void RunUnits(const KernelArgs& args, int64_t begin, int64_t end) const override {
    for (int64_t row = begin; row < end; ++row) RunRow(args, row);
  }
  void RunRow(const KernelArgs& args, int64_t row) const;
  void RunPhase(const KernelArgs& args, int64_t row, int32_t rx, float* to, int64_t pitch) const;

  TermSumsFunction* term_sums_ = nullptr;
  const GemmF32* gemm_ = nullptr;  // whose panels the weights are in
  ApplyTailFunction* apply_tail_ = nullptr;
  TransposeConvShape shape_;
  TransposeConvPhases phases_;
  HybridTail tail_;
  PackedWeights packed_;
  int64_t block_rows_ = 0, grain_ = 1;
  size_t left_bytes_ = 0;
  size_t row_bytes_ = 0;  // of an output row that waits for its tail; 0 without one
};

Status TransposeConvHybridKernel::Plan(const OpDescription& op, const PlanContext& context) {
  term_sums_ = FindTermSums(context.isa);
  if (term_sums_ == nullptr) return NoVectorTarget(context.isa);
  gemm_ = FindGemmF32(context.isa);
  FUSELITE_ASSIGN_OR_RETURN(shape_, ResolveTransposeConv(op));
  FUSELITE_ASSIGN_OR_RETURN(tail_, MakeTransposeConvHybridTail(op, shape_));
  const TensorInfo& input = op.inputs[2];
  const auto& [y, x] = shape_.window;
  FUSELITE_RETURN_IF_ERROR(rows_.Init(input,
                                      {.groups = shape_.batch,
                                       .rows = int64_t{y.output} * x.output,
                                       .values = shape_.channels_in,
                                       .pitch = input.pitch(),
                                       .to_pitch = shape_.channels_in,
                                       .asymmetric = true},
                                      context.isa));
  apply_tail_ = ApplyTail(context.isa);
  name_ = internal::Join("transpose_conv hybrid int8 ", SimdName(context.isa));
  FUSELITE_RETURN_IF_ERROR(InitPanelsF32(shape_, *gemm_, &phases_));
  const int64_t depth = std::max<int64_t>(1, phases_.max_depth());
  block_rows_ = std::clamp<int64_t>(kLeftSideFloats / depth / 4 * 4, 4, 32);
  left_bytes_ = AlignUp(block_rows_ * depth * sizeof(float));
  const bool tailed = !tail_.tail.rest.empty() || tail_.output.type != DataType::kFloat32;
  row_bytes_ = tailed ? int64_t{x.input} * shape_.channels_out * sizeof(float) : 0;
  // A term is worth half of what GrainFor counts.
  grain_ = GrainFor(int64_t{x.output} * shape_.channels_out * depth / 2);
  if (!op.inputs[1].constant()) return Unsupported("filters that are not constant");
  return Status();
}

void TransposeConvHybridKernel::RunRow(const KernelArgs& args, int64_t row) const {
  const WindowAxis& x = shape_.window.x;
  const TensorInfo& output = tail_.output;
  std::byte* destination = static_cast<std::byte*>(args.outputs[0]) +
                           row * x.input * output.pitch() * (BitWidth(output.type) / 8);
  auto* to = reinterpret_cast<float*>(row_bytes_ > 0 ? args.scratch + left_bytes_ : destination);
  const int64_t pitch = row_bytes_ > 0 ? shape_.channels_out : output.pitch();
  for (int32_t rx = 0; rx < x.stride; ++rx) RunPhase(args, row, rx, to, pitch);
  if (row_bytes_ == 0) return;
  apply_tail_(tail_.tail.rest, args.inputs,
              {.source = to,
               .source_pitch = pitch,
               .source_type = DataType::kFloat32,
               .destination = destination,
               .destination_pitch = output.pitch(),
               .destination_type = output.type,
               .row = row * x.input,
               .rows = x.input,
               .channel = 0,
               .channels = shape_.channels_out});
}

// The pixels of an output row whose columns leave the remainder `rx`.
void TransposeConvHybridKernel::RunPhase(const KernelArgs& args, int64_t row, int32_t rx, float* to,
                                         int64_t pitch) const {
  const int64_t stride = shape_.window.x.stride;
  const TransposeConvPhases::Part part = phases_.PartOf(row, rx);
  const int64_t depth = phases_.DepthOf(*part.phase), count = part.conv.window.x.output;
  const int16_t* image = rows_.Row(args.shared, part.image);
  auto* left = reinterpret_cast<float*>(args.scratch);
  for (int64_t r = 0; r < count; r += block_rows_) {
    const int64_t rows = std::min(block_rows_, count - r);
    if (depth > 0) {
      CopyWindows(part.conv, 0, shape_.channels_in, r, rows, depth, left,
                  [image](int64_t at, int64_t n, float* to) { std::copy_n(image + at, n, to); });
    }
    term_sums_({.a = left,
                .rows = rows,
                .depth = depth,
                .b = packed_->as<float>() + part.phase->offset,
                .columns = shape_.channels_out,
                .scales = tail_.scales.data(),
                .scale = rows_.Scale(args.shared, row / shape_.window.y.input),
                .bias = tail_.bias < 0 ? nullptr : static_cast<const float*>(args.inputs[3]),
                .min = tail_.tail.min,
                .max = tail_.tail.max,
                .c = to + (part.first + r * stride) * pitch,
                .c_pitch = stride * pitch});
  }
}

}  // namespace

Result<KernelPlan> PlanTransposeConvHighwayHybrid(const OpDescription& op,
                                                  const PlanContext& context) {
  return PlanThenPack(TransposeConvHybridKernel(), op, context);
}

Result<KernelPlan> PlanTransposeConvHighway(const OpDescription& op, const PlanContext& context) {
  const bool hybrid =
      op.inputs[2].type == DataType::kFloat32 && op.inputs[1].type != DataType::kFloat32;
  return hybrid ? PlanTransposeConvHighwayHybrid(op, context) : PlanHighwayProduct(op, context);
}

}  // namespace fuselite::kernels
