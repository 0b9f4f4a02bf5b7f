// Convolution as a matrix product: rows are output pixels, terms the window's taps and channels.
#include <algorithm>

#include "kernels/conv2d/conv2d.h"
#include "kernels/conv2d/windows.h"
#include "kernels/gemm/product_f32.h"

namespace fuselite::kernels {
namespace {

class Conv2DKernel final : public ProductKernelF32 {
 public:
  Status Plan(const OpDescription& op, const PlanContext& context) {
    FUSELITE_ASSIGN_OR_RETURN(shape_, ResolveConv2D(op));
    FUSELITE_RETURN_IF_ERROR(Init("conv", op, context, op.params.as<Conv2DParams>().activation,
                                  {.input = 1,
                                   .matrices = shape_.groups,
                                   .matrix_stride = shape_.group_out * shape_.depth(),
                                   .k_stride = 1,
                                   .n_stride = shape_.depth(),
                                   .depth = shape_.depth(),
                                   .columns = shape_.group_out}));
    pitch_ = op.inputs[0].pitch();
    biased_ = op.has_input(2);
    const auto& [y, x] = shape_.window;
    // Rows of the product are then the input's own pixels.
    direct_ = shape_.window.taps() == 1 && y.stride == 1 && x.stride == 1 &&
              y.before + y.after + x.before + x.after == 0;
    blocks_ = SplitProduct({gemm_->tile_rows, gemm_->panel}, shape_.pixels_out(),
                           shape_.depth() * sizeof(float), shape_.group_out, shape_.groups,
                           context.threads, !direct_);
    SetUnits(shape_.groups, blocks_,
             direct_ ? 0 : blocks_.block_rows * shape_.depth() * sizeof(float));
    return Status();
  }

 private:
  void Compute(const KernelArgs& args, int64_t unit) const override {
    const int64_t column = unit % blocks_.column_blocks * blocks_.block_columns;
    const int64_t group = unit / blocks_.column_blocks % shape_.groups;
    const int64_t row = unit / blocks_.column_blocks / shape_.groups * blocks_.block_rows;
    const auto* input = static_cast<const float*>(args.inputs[0]) + group * shape_.group_in;
    Part part{.a = input + row * pitch_,
              .a_pitch = pitch_,
              .rows = std::min(blocks_.block_rows, blocks_.rows - row),
              .matrix = group,
              .column = column,
              .columns = std::min(blocks_.block_columns, blocks_.columns - column),
              .row = row,
              .channel = group * shape_.group_out + column,
              .bias = nullptr};
    if (biased_) part.bias = static_cast<const float*>(args.inputs[2]) + part.channel;
    if (!direct_) {
      auto* to = reinterpret_cast<float*>(args.scratch);
      CopyWindows(shape_, 0, pitch_, row, part.rows, shape_.depth(), to,
                  [input](int64_t at, int64_t n, float* row) { std::copy_n(input + at, n, row); });
      part.a = to;
      part.a_pitch = shape_.depth();
    }
    RunPart(args, part);
  }

  Conv2DShape shape_;
  ProductBlocks blocks_;
  int64_t pitch_ = 0;
  bool biased_ = false;
  bool direct_ = false;
};

}  // namespace

Result<KernelPlan> PlanConv2DHighway(const OpDescription& op, const PlanContext& context) {
  if (op.inputs[1].type != DataType::kFloat32) return PlanConv2DHighwayS8(op, context);
  return PlanThenPack(Conv2DKernel(), op, context);
}

}  // namespace fuselite::kernels
