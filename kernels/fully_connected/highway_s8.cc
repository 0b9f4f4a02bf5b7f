#include "kernels/fully_connected/fully_connected.h"
#include "kernels/gemm/product_s16.h"

namespace fuselite::kernels {
namespace {

class FullyConnectedS8Kernel final : public ProductKernelS16 {
 public:
  Status Build(const OpDescription& op, const BuildContext& context) {
    FUSELITE_ASSIGN_OR_RETURN(shape_, ResolveFullyConnected(op));
    const auto& params = op.params.as<FullyConnectedParams>();
    FUSELITE_ASSIGN_OR_RETURN(QuantizedTail tail,
                              MakeQuantizedTail(op, params.activation, params.quantized_bias_type,
                                                {.scaling = SumScaling::kReal}, shape_.units));
    pitch_ = op.inputs[0].row_pitch ? op.inputs[0].row_pitch : shape_.depth;
    return Init(
        "fully_connected", op, context, std::move(tail),
        {.matrices = 1, .rows = shape_.rows, .depth = shape_.depth, .columns = shape_.units});
  }

 private:
  void Compute(const KernelArgs& args, int64_t unit) const override {
    const Part part = PartOf(unit);
    for (int64_t r = 0; r < part.rows; ++r) {
      int16_t* to = LeftSide(args) + r * even_depth();
      Widen(args, (part.row + r) * pitch_, shape_.depth, to);
      if (shape_.depth != even_depth()) to[shape_.depth] = 0;
    }
    RunPart(args, part);
  }

  FullyConnectedShape shape_;
  int64_t pitch_ = 0;
};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildFullyConnectedHighwayS8(const OpDescription& op,
                                                             const BuildContext& context) {
  auto kernel = std::make_unique<FullyConnectedS8Kernel>();
  FUSELITE_RETURN_IF_ERROR(kernel->Build(op, context));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

}  // namespace fuselite::kernels
