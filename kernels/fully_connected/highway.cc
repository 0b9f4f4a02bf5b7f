#include <algorithm>

#include "kernels/fully_connected/fully_connected.h"
#include "kernels/gemm/product_f32.h"

namespace fuselite::kernels {
namespace {

class FullyConnectedKernel final : public ProductKernelF32 {
 public:
  Status Plan(const OpDescription& op, const PlanContext& context) {
    FUSELITE_ASSIGN_OR_RETURN(const FullyConnectedShape shape, ResolveFullyConnected(op));
    FUSELITE_RETURN_IF_ERROR(
        Init("fully_connected", op, context, op.params.as<FullyConnectedParams>().activation,
             {.input = 1, .n_stride = shape.depth, .depth = shape.depth, .columns = shape.units}));
    pitch_ = op.inputs[0].row_pitch ? op.inputs[0].row_pitch : shape.depth;
    biased_ = op.has_input(2);
    blocks_ = SplitProduct({gemm_->tile_rows, gemm_->panel}, shape.rows,
                           shape.depth * sizeof(float), shape.units, 1, context.threads, false);
    SetUnits(1, blocks_, 0);
    return Status();
  }

 private:
  void Compute(const KernelArgs& args, int64_t unit) const override {
    const int64_t column = unit % blocks_.column_blocks * blocks_.block_columns;
    const int64_t row = unit / blocks_.column_blocks * blocks_.block_rows;
    RunPart(args, {.a = static_cast<const float*>(args.inputs[0]) + row * pitch_,
                   .a_pitch = pitch_,
                   .rows = std::min(blocks_.block_rows, blocks_.rows - row),
                   .matrix = 0,
                   .column = column,
                   .columns = std::min(blocks_.block_columns, blocks_.columns - column),
                   .row = row,
                   .channel = column,
                   .bias = biased_ ? static_cast<const float*>(args.inputs[2]) + column : nullptr});
  }

  ProductBlocks blocks_;
  int64_t pitch_ = 0;
  bool biased_ = false;
};

}  // namespace

Result<KernelPlan> PlanFullyConnectedHighway(const OpDescription& op, const PlanContext& context) {
  if (ReadsWeightsUnpacked(op))
    return OwnPlan(BuildFullyConnectedUnpacked(op, WithoutStore(context)));
  if (op.inputs[1].type != DataType::kFloat32) return PlanFullyConnectedHighwayS8(op, context);
  return PlanThenPack(FullyConnectedKernel(), op, context);
}

}  // namespace fuselite::kernels
