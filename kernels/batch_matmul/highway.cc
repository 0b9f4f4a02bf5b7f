#include <algorithm>

#include "kernels/batch_matmul/batch_matmul.h"
#include "kernels/gemm/product_f32.h"

namespace fuselite::kernels {
namespace {

class BatchMatMulKernel final : public ProductKernelF32 {
 public:
  Status Plan(const OpDescription& op, const PlanContext& context) {
    FUSELITE_ASSIGN_OR_RETURN(shape_, ResolveBatchMatMul(op));
    const auto& params = op.params.as<BatchMatMulParams>();
    const TensorInfo& x = op.inputs[0];
    const TensorInfo& y = op.inputs[1];
    const int64_t y_rows = y.shape.dim(-2);
    FUSELITE_RETURN_IF_ERROR(Init("batch_matmul", op, context, Activation::kNone,
                                  {.input = 1,
                                   .matrices = y.shape.elements(0, y.shape.rank() - 2),
                                   .matrix_stride = y_rows * y.pitch(),
                                   .k_stride = params.adj_y ? 1 : y.pitch(),
                                   .n_stride = params.adj_y ? y.pitch() : 1,
                                   .depth = shape_.depth,
                                   .columns = shape_.columns}));
    x_pitch_ = x.pitch();
    x_matrix_ = x.shape.dim(-2) * x_pitch_;
    transposed_ = params.adj_x;
    blocks_ =
        SplitProduct({gemm_->tile_rows, gemm_->panel}, shape_.rows, shape_.depth * sizeof(float),
                     shape_.columns, shape_.batches(), context.threads, transposed_);
    SetUnits(shape_.batches(), blocks_,
             transposed_ ? blocks_.block_rows * shape_.depth * sizeof(float) : 0);
    return Status();
  }

 private:
  void Compute(const KernelArgs& args, int64_t unit) const override {
    const int64_t column = unit % blocks_.column_blocks * blocks_.block_columns;
    const int64_t row = unit / blocks_.column_blocks % blocks_.row_blocks * blocks_.block_rows;
    const int64_t batch = unit / blocks_.units();
    const BatchMatMulShape::Pair pair = shape_.PairOf(batch);
    const auto* x = static_cast<const float*>(args.inputs[0]) + pair.x * x_matrix_;
    Part part{.a = x + row * x_pitch_,
              .a_pitch = x_pitch_,
              .rows = std::min(blocks_.block_rows, blocks_.rows - row),
              .matrix = pair.y,
              .column = column,
              .columns = std::min(blocks_.block_columns, blocks_.columns - column),
              .row = batch * blocks_.rows + row,
              .channel = column,
              .bias = nullptr};
    if (transposed_) {
      auto* to = reinterpret_cast<float*>(args.scratch);
      for (int64_t d = 0; d < shape_.depth; ++d) {
        const float* from = x + d * x_pitch_ + row;
        for (int64_t r = 0; r < part.rows; ++r) to[r * shape_.depth + d] = from[r];
      }
      part.a = to;
      part.a_pitch = shape_.depth;
    }
    RunPart(args, part);
  }

  BatchMatMulShape shape_;
  ProductBlocks blocks_;
  int64_t x_pitch_ = 0, x_matrix_ = 0;
  bool transposed_ = false;
};

}  // namespace

Result<KernelPlan> PlanBatchMatMulHighway(const OpDescription& op, const PlanContext& context) {
  if (op.inputs[1].type != DataType::kFloat32) return PlanBatchMatMulHighwayS8(op, context);
  return PlanThenPack(BatchMatMulKernel(), op, context);
}

}  // namespace fuselite::kernels
