#include "kernels/winograd/integer_winograd.h"

#include <utility>
#include <vector>

#include "kernels/gemm/quantized_tail.h"
#include "kernels/product/constant.h"
#include "kernels/winograd/integer_kernel.h"
#include "runtime/is_byte.h"

namespace fuselite::kernels {
namespace {

WinogradValues ValuesOf(const TensorInfo& info) {
  return {.type = ReadableType(info.type),
          .zero_point = static_cast<int16_t>(info.quantization.zero_point())};
}

class ByteWinograd final : public IntegerWinogradKernel {
 public:
  Status Plan(const OpDescription& op, const PlanContext& context, const ProductDescription& conv,
              const WinogradCut& cut, const MakeWinogradMicroKernel& micro_kernel) {
    FUSELITE_ASSIGN_OR_RETURN(
        tail_, MakeQuantizedTail(op, conv.activation, conv.quantized_bias_type, cut.channels_out));
    apply_tail_ = ApplyTail(context.isa);
    output_ = op.outputs[0];
    const WinogradValues images = ValuesOf(op.inputs[0]);
    std::vector<std::byte> padding(static_cast<size_t>(cut.channels_in),
                                   static_cast<std::byte>(images.zero_point));
    return PlanIntegers(context, cut, InputAsItIs(conv, std::move(padding)), images,
                        ValuesOf(op.inputs[1]), micro_kernel);
  }

 private:
  const int32_t* Bias(const KernelArgs& args) const override {
    if (tail_.bias_type == DataType::kNone) return nullptr;
    return static_cast<const int32_t*>(args.inputs[tail_.inputs.bias]);
  }

  void StoreRows(const KernelArgs& args, const SumRows& rows) const override {
    apply_tail_(tail_.tail, args.inputs,
                {.source = rows.sums,
                 .source_pitch = rows.channels,
                 .source_type = DataType::kInt32,
                 .destination = static_cast<std::byte*>(args.outputs[0]) +
                                rows.row * output_.pitch() + rows.channel,
                 .destination_pitch = output_.pitch(),
                 .destination_type = output_.type,
                 .row = rows.row,
                 .rows = rows.rows,
                 .channel = rows.channel,
                 .channels = rows.channels});
  }

  QuantizedTail tail_;
  ApplyTailFunction* apply_tail_ = nullptr;
  TensorInfo output_;
};

Result<ProductDescription> Describe(const OpDescription& op) {
  const DataType in = op.inputs[0].type, weights = op.inputs[1].type;
  if (!IsByte(in) || ReadableType(weights) != in || !IsByte(op.outputs[0].type)) {
    return Unsupported("Winograd's algorithm in whole numbers is for 8-bit integers, not ",
                       DataTypeName(in), " with ", DataTypeName(weights));
  }
  if (op.has_input(2) && op.inputs[2].type != DataType::kInt32) {
    return Unsupported("does not take a bias of ", DataTypeName(op.inputs[2].type));
  }
  FUSELITE_ASSIGN_OR_RETURN(ProductDescription conv, DescribeWinograd(op, kIntegerTiles));
  const WinogradValues filters = ValuesOf(op.inputs[1]);
  const bool is_signed = filters.type == DataType::kInt8 && filters.zero_point == 0;
  FUSELITE_RETURN_IF_ERROR(CheckIntegerSums(conv.channels_in, is_signed ? 128 : 255));
  return conv;
}

}  // namespace

Result<KernelPlan> PlanIntegerWinograd(const OpDescription& op, const PlanContext& context,
                                       const MakeWinogradMicroKernel& micro_kernel,
                                       const MakeWinogradMicroKernel& plain) {
  FUSELITE_ASSIGN_OR_RETURN(const ProductDescription conv, Describe(op));
  FUSELITE_RETURN_IF_ERROR(CheckIntegerWinogradPays(conv, micro_kernel, plain));
  return PlanIntegerKernel<ByteWinograd>(op, context, conv, micro_kernel);
}

Result<KernelPlan> PlanIntegerWinogradAnyway(const OpDescription& op, const PlanContext& context,
                                             const MakeWinogradMicroKernel& micro_kernel) {
  FUSELITE_ASSIGN_OR_RETURN(const ProductDescription conv, Describe(op));
  return PlanIntegerKernel<ByteWinograd>(op, context, conv, micro_kernel);
}

}  // namespace fuselite::kernels
