#include <algorithm>

#include "kernels/conv2d/conv2d.h"
#include "kernels/conv2d/windows.h"
#include "kernels/gemm/product_s16.h"

namespace fuselite::kernels {
namespace {

class Conv2DS8Kernel final : public ProductKernelS16 {
 public:
  Status Plan(const OpDescription& op, const PlanContext& context) {
    FUSELITE_ASSIGN_OR_RETURN(shape_, ResolveConv2D(op));
    pitch_ = op.inputs[0].pitch();
    const Size size{.products = shape_.groups,
                    .rows = shape_.pixels_out(),
                    .depth = shape_.depth(),
                    .columns = shape_.group_out,
                    .matrices = shape_.groups,
                    .matrix_stride = shape_.group_out * shape_.depth(),
                    .k_stride = 1,
                    .n_stride = shape_.depth()};
    if (op.inputs[0].type == DataType::kFloat32) return PlanHybrid(op, context, size);
    const auto& params = op.params.as<Conv2DParams>();
    FUSELITE_ASSIGN_OR_RETURN(
        QuantizedTail tail,
        MakeQuantizedTail(op, params.activation, params.quantized_bias_type, shape_.channels_out));
    return Init("conv", op, context, std::move(tail), size, true);
  }

 private:
  Status PlanHybrid(const OpDescription& op, const PlanContext& context, const Size& size) {
    const auto& [y, x] = shape_.window;
    const bool several_scales = Conv2DHasSeveralScales(op, shape_);
    FUSELITE_ASSIGN_OR_RETURN(HybridTail tail, MakeConv2DHybridTail(op, shape_));
    // Rows of the product are then the quantized image's pixels.
    direct_ = shape_.groups == 1 && shape_.window.taps() == 1 && y.stride == 1 && x.stride == 1 &&
              y.before + y.after + x.before + x.after == 0;
    shared_pitch_ = direct_ ? (shape_.channels_in + 1) & ~1 : shape_.channels_in;
    FUSELITE_RETURN_IF_ERROR(InitHybrid("conv", op, context, std::move(tail),
                                        int64_t{y.output} * x.output, size, !direct_));
    return InitRows(op, context,
                    {.groups = shape_.batch,
                     .rows = int64_t{y.input} * x.input,
                     .values = shape_.channels_in,
                     .pitch = pitch_,
                     .to_pitch = shared_pitch_,
                     .asymmetric = several_scales});
  }

  void Compute(const KernelArgs& args, int64_t unit) const override {
    const Part part = PartOf(unit);
    if (direct_) return RunPart(args, part, rows_.Row(args.shared, part.row));
    const int64_t channel = part.product * shape_.group_in;
    if (rows_.phases() > 0) {
      const int16_t* image = rows_.Row(args.shared, 0);
      CopyWindows(shape_, channel, shared_pitch_, part.row, part.rows, even_depth(), LeftSide(args),
                  [&](int64_t at, int64_t n, int16_t* to) { std::copy_n(image + at, n, to); });
    } else {
      CopyWindows(shape_, channel, pitch_, part.row, part.rows, even_depth(), LeftSide(args),
                  [&](int64_t at, int64_t n, int16_t* to) { Widen(args, at, n, to); });
    }
    RunPart(args, part, LeftSide(args));
  }

  Conv2DShape shape_;
  int64_t pitch_ = 0, shared_pitch_ = 0;
  bool direct_ = false;  // float32 activations alone
};

}  // namespace

Result<KernelPlan> PlanConv2DHighwayS8(const OpDescription& op, const PlanContext& context) {
  return PlanThenPack(Conv2DS8Kernel(), op, context);
}

}  // namespace fuselite::kernels
