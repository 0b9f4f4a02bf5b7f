#include "kernels/batch_matmul/batch_matmul.h"
#include "kernels/gemm/product_s16.h"

namespace fuselite::kernels {
namespace {

class BatchMatMulS8Kernel final : public ProductKernelS16 {
 public:
  Status Plan(const OpDescription& op, const PlanContext& context) {
    FUSELITE_ASSIGN_OR_RETURN(shape_, ResolveBatchMatMul(op));
    const auto& params = op.params.as<BatchMatMulParams>();
    const TensorInfo& x = op.inputs[0];
    const TensorInfo& y = op.inputs[1];
    FUSELITE_RETURN_IF_ERROR(RequireWorthPacking(op, shape_));
    if (params.adj_x) return Unsupported("adj_x of ", DataTypeName(x.type));
    const BatchMatMulStrides strides = StridesOf(op);
    const Size size{.products = shape_.batches(),
                    .rows = shape_.rows,
                    .depth = shape_.depth,
                    .columns = shape_.columns,
                    .matrices = y.shape.elements(0, y.shape.rank() - 2),
                    .matrix_stride = strides.y_matrix,
                    .k_stride = strides.y_term,
                    .n_stride = strides.y_column};
    if (x.type == DataType::kFloat32) {
      FUSELITE_ASSIGN_OR_RETURN(HybridTail tail,
                                MakeHybridTail(op, Activation::kNone, shape_.columns));
      FUSELITE_RETURN_IF_ERROR(
          InitHybrid("batch_matmul", op, context, std::move(tail), 1, size, false));
    } else {
      FUSELITE_ASSIGN_OR_RETURN(
          QuantizedTail tail,
          MakeQuantizedTail(op, Activation::kNone, DataType::kNone, shape_.columns));
      FUSELITE_RETURN_IF_ERROR(Init("batch_matmul", op, context, std::move(tail), size, false));
    }
    return InitRows(op, context,
                    {.groups = x.shape.elements(0, x.shape.rank() - 1),
                     .rows = 1,
                     .values = shape_.depth,
                     .pitch = x.pitch(),
                     .to_pitch = even_depth(),
                     .asymmetric = params.asymmetric_quantize_inputs});
  }

 private:
  void Compute(const KernelArgs& args, int64_t unit) const override {
    Part part = PartOf(unit);
    const BatchMatMulShape::Pair pair = shape_.PairOf(part.product);
    part.matrix = pair.y;
    part.out_row = part.product * shape_.rows + part.row;
    part.channel = part.column;
    part.scale_row = pair.x * shape_.rows + part.row;
    RunPart(args, part, rows_.Row(args.shared, part.scale_row));
  }

  BatchMatMulShape shape_;
};

}  // namespace

Result<KernelPlan> PlanBatchMatMulHighwayS8(const OpDescription& op, const PlanContext& context) {
  return PlanThenPack(BatchMatMulS8Kernel(), op, context);
}

}  // namespace fuselite::kernels
