// Transposed convolution as several ordinary ones (phases.h), each a matrix product.
#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/conv2d/windows.h"
#include "kernels/gemm/gemm_f32.h"
#include "kernels/gemm/output_tail.h"
#include "kernels/make_kernel.h"
#include "kernels/simd.h"
#include "kernels/transpose_conv/panels_f32.h"

namespace fuselite::kernels {
namespace {

// A unit's rows of the left side, in tiles: they stay in L2 while the weights stream by.
constexpr int64_t kLeftSideFloats = 32 * 1024;

class TransposeConvKernel final : public Kernel {
 public:
  Status Plan(const OpDescription& op, const PlanContext& context);
  Status Pack(const OpDescription& op, const BuildContext& context) {
    FUSELITE_ASSIGN_OR_RETURN(packed_,
                              PackFiltersF32<float>("f32", phases_, *gemm_, op.inputs[1], context));
    return Status();
  }

  std::string_view name() const override { return name_; }
  int64_t units(int) const override { return int64_t{shape_.batch} * shape_.window.y.input; }
  int64_t grain(int) const override { return grain_; }
  size_t scratch_bytes() const override {
    return block_rows_ * phases_.max_depth() * sizeof(float);
  }
  Status Run(const KernelArgs& args, int, int64_t begin, int64_t end) const override {
    for (int64_t row = begin; row < end; ++row) RunRow(args, row);
    return Status();
  }

 private:
  void RunRow(const KernelArgs& args, int64_t row) const;
  void RunPhase(const KernelArgs& args, int64_t row, int32_t rx) const;

  const GemmF32* gemm_ = nullptr;
  TransposeConvShape shape_;
  FloatTail tail_;
  ApplyTailFunction* apply_tail_ = nullptr;
  TensorInfo output_;
  std::string name_;
  TransposeConvPhases phases_;
  PackedWeights packed_;
  int64_t pitch_ = 0, block_rows_ = 0, grain_ = 1;
  bool biased_ = false;
};

Status TransposeConvKernel::Plan(const OpDescription& op, const PlanContext& context) {
  gemm_ = FindGemmF32(context.isa);
  if (gemm_ == nullptr) return NoVectorTarget(context.isa);
  const TensorInfo& filters = op.inputs[1];
  output_ = op.outputs[0];
  for (DataType type : {op.inputs[2].type, filters.type, output_.type}) {
    if (type != DataType::kFloat32) return Unsupported(DataTypeName(type), " is not float32");
  }
  if (!filters.constant()) return Unsupported("filters that are not constant");
  FUSELITE_ASSIGN_OR_RETURN(shape_, ResolveTransposeConv(op));
  FUSELITE_ASSIGN_OR_RETURN(tail_,
                            MakeFloatTail(op, op.params.as<TransposeConvParams>().activation));
  apply_tail_ = ApplyTail(context.isa);
  pitch_ = op.inputs[2].pitch();
  biased_ = op.has_input(3);
  name_ = internal::Join("transpose_conv f32 ", gemm_->tile_rows, "x", gemm_->panel, " ",
                         SimdName(context.isa));
  FUSELITE_RETURN_IF_ERROR(InitPanelsF32(shape_, *gemm_, &phases_));
  const int64_t max_depth = phases_.max_depth();
  const int64_t tiles = kLeftSideFloats / std::max<int64_t>(1, max_depth * gemm_->tile_rows);
  block_rows_ = std::clamp<int64_t>(tiles, 1, 8) * gemm_->tile_rows;
  grain_ = GrainFor(int64_t{shape_.window.x.output} * shape_.channels_out * max_depth / 8);
  return Status();
}

void TransposeConvKernel::RunRow(const KernelArgs& args, int64_t row) const {
  const WindowAxis& x = shape_.window.x;
  for (int32_t rx = 0; rx < x.stride; ++rx) RunPhase(args, row, rx);
  if (tail_.rest.empty()) return;
  auto* out = static_cast<float*>(args.outputs[0]) + row * x.input * output_.pitch();
  apply_tail_(tail_.rest, args.inputs,
              {.source = out,
               .source_pitch = output_.pitch(),
               .source_type = DataType::kFloat32,
               .destination = out,
               .destination_pitch = output_.pitch(),
               .destination_type = DataType::kFloat32,
               .row = row * x.input,
               .rows = x.input,
               .channel = 0,
               .channels = shape_.channels_out});
}

// The pixels of an output row whose columns leave the remainder `rx`.
void TransposeConvKernel::RunPhase(const KernelArgs& args, int64_t row, int32_t rx) const {
  const WindowAxis& x = shape_.window.x;
  const TransposeConvPhases::Part part = phases_.PartOf(row, rx);
  const int64_t depth = phases_.DepthOf(*part.phase);
  const int32_t count = part.conv.window.x.output;
  const float* image = static_cast<const float*>(args.inputs[2]) + part.image * pitch_;
  auto* left = reinterpret_cast<float*>(args.scratch);
  for (int64_t r = 0; r < count; r += block_rows_) {
    const int64_t rows = std::min<int64_t>(block_rows_, count - r);
    if (depth > 0) {
      CopyWindows(part.conv, 0, pitch_, r, rows, depth, left,
                  [image](int64_t at, int64_t n, float* to) { std::copy_n(image + at, n, to); });
    }
    gemm_->run({.a = left,
                .a_pitch = depth,
                .rows = rows,
                .depth = depth,
                .b = packed_->as<float>() + part.phase->offset,
                .columns = shape_.channels_out,
                .bias = biased_ ? static_cast<const float*>(args.inputs[3]) : nullptr,
                .min = tail_.min,
                .max = tail_.max,
                .c = static_cast<float*>(args.outputs[0]) +
                     (row * x.input + part.first + r * x.stride) * output_.pitch(),
                .c_pitch = x.stride * output_.pitch()});
  }
}

}  // namespace

Result<KernelPlan> PlanTransposeConvHighway(const OpDescription& op, const PlanContext& context) {
  if (op.inputs[2].type != DataType::kFloat32) return PlanTransposeConvHighwayS8(op, context);
  if (op.inputs[1].type != DataType::kFloat32) return PlanTransposeConvHighwayHybrid(op, context);
  return PlanThenPack(TransposeConvKernel(), op, context);
}

}  // namespace fuselite::kernels
