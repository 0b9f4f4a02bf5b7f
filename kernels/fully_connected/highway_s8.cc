#include "kernels/fully_connected/fully_connected.h"
#include "kernels/gemm/product_s16.h"

namespace fuselite::kernels {
namespace {

class FullyConnectedS8Kernel final : public ProductKernelS16 {
 public:
  Status Plan(const OpDescription& op, const PlanContext& context) {
    FUSELITE_ASSIGN_OR_RETURN(shape_, ResolveFullyConnected(op));
    const auto& params = op.params.as<FullyConnectedParams>();
    pitch_ = op.inputs[0].row_pitch ? op.inputs[0].row_pitch : shape_.depth;
    const Size size{.products = 1,
                    .rows = shape_.rows,
                    .depth = shape_.depth,
                    .columns = shape_.units,
                    .matrices = 1,
                    .matrix_stride = 0,
                    .k_stride = 1,
                    .n_stride = shape_.depth};
    if (op.inputs[0].type == DataType::kFloat32) {
      FUSELITE_ASSIGN_OR_RETURN(HybridTail tail,
                                MakeHybridTail(op, params.activation, shape_.units));
      FUSELITE_RETURN_IF_ERROR(
          InitHybrid("fully_connected", op, context, std::move(tail), 1, size, false));
      return InitRows(op, context,
                      {.groups = shape_.rows,
                       .rows = 1,
                       .values = shape_.depth,
                       .pitch = pitch_,
                       .to_pitch = even_depth(),
                       .asymmetric = params.asymmetric_quantize_inputs});
    }
    FUSELITE_ASSIGN_OR_RETURN(
        QuantizedTail tail,
        MakeQuantizedTail(op, params.activation, params.quantized_bias_type, shape_.units));
    return Init("fully_connected", op, context, std::move(tail), size, true);
  }

 private:
  void Compute(const KernelArgs& args, int64_t unit) const override {
    const Part part = PartOf(unit);
    if (rows_.phases() > 0) return RunPart(args, part, rows_.Row(args.shared, part.row));
    for (int64_t r = 0; r < part.rows; ++r) {
      int16_t* to = LeftSide(args) + r * even_depth();
      Widen(args, (part.row + r) * pitch_, shape_.depth, to);
      if (shape_.depth != even_depth()) to[shape_.depth] = 0;
    }
    RunPart(args, part, LeftSide(args));
  }

  FullyConnectedShape shape_;
  int64_t pitch_ = 0;
};

}  // namespace

Result<KernelPlan> PlanFullyConnectedHighwayS8(const OpDescription& op,
                                               const PlanContext& context) {
  return PlanThenPack(FullyConnectedS8Kernel(), op, context);
}

}  // namespace fuselite::kernels
