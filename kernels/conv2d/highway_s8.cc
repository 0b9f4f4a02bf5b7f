#include "kernels/conv2d/conv2d.h"
#include "kernels/conv2d/windows.h"
#include "kernels/gemm/product_s16.h"

namespace fuselite::kernels {
namespace {

class Conv2DS8Kernel final : public ProductKernelS16 {
 public:
  Status Build(const OpDescription& op, const BuildContext& context) {
    FUSELITE_ASSIGN_OR_RETURN(shape_, ResolveConv2D(op));
    const auto& params = op.params.as<Conv2DParams>();
    FUSELITE_ASSIGN_OR_RETURN(
        QuantizedTail tail, MakeQuantizedTail(op, params.activation, params.quantized_bias_type, {},
                                              shape_.channels_out));
    pitch_ = op.inputs[0].pitch();
    return Init("conv", op, context, std::move(tail),
                {.matrices = shape_.groups,
                 .rows = shape_.pixels_out(),
                 .depth = shape_.depth(),
                 .columns = shape_.group_out});
  }

 private:
  void Compute(const KernelArgs& args, int64_t unit) const override {
    const Part part = PartOf(unit);
    CopyWindows(shape_, part.matrix * shape_.group_in, pitch_, part.row, part.rows, even_depth(),
                LeftSide(args),
                [&](int64_t at, int64_t n, int16_t* to) { Widen(args, at, n, to); });
    RunPart(args, part);
  }

  Conv2DShape shape_;
  int64_t pitch_ = 0;
};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildConv2DHighwayS8(const OpDescription& op,
                                                     const BuildContext& context) {
  auto kernel = std::make_unique<Conv2DS8Kernel>();
  FUSELITE_RETURN_IF_ERROR(kernel->Build(op, context));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

}  // namespace fuselite::kernels
