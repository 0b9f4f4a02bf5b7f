#include "kernels/winograd/hybrid_winograd.h"

#include <utility>
#include <vector>

#include "kernels/gemm/hybrid_tail.h"
#include "kernels/product/constant.h"
#include "kernels/source/image_source.h"
#include "kernels/winograd/integer_kernel.h"

namespace fuselite::kernels {
namespace {

class HybridWinograd final : public IntegerWinogradKernel {
 public:
  Status Plan(const OpDescription& op, const PlanContext& context, const ProductDescription& conv,
              const WinogradCut& cut, const MakeWinogradMicroKernel& micro_kernel) {
    tail_ = conv.hybrid->tail;
    store_ = FindHybridRow(context.isa);
    apply_tail_ = ApplyTail(context.isa);
    image_pixels_ = int64_t{conv.padding.y.output} * conv.padding.x.output;
    // As int16 the zero points, which differ from image to image, are taken off.
    const QuantizedImage::Layout layout = HybridLayout(conv, /*bytes=*/false);
    WinogradSides sides{
        .images = std::make_shared<QuantizedSource>(op.op->product_inputs->x, layout, context.isa),
        .window = layout.Padded(conv.padding),
        .padding = std::vector<std::byte>(static_cast<size_t>(cut.channels_in) * sizeof(int16_t)),
        .filter_value_bytes = sizeof(int8_t)};
    scales_ = sides.images->places();
    return PlanIntegers(context, cut, std::move(sides), {.type = DataType::kInt16},
                        {.type = DataType::kInt8}, micro_kernel);
  }

 private:
  const int32_t* Bias(const KernelArgs&) const override { return nullptr; }

  // Where stages are left, the floats take the place of the sums before those.
  void StoreRows(const KernelArgs& args, const SumRows& rows) const override {
    const TensorInfo& output = tail_.output;
    const auto* const scales = reinterpret_cast<const RowScale*>(scales_.RowValues(args));
    const bool is_last = tail_.tail.rest.empty();
    auto* const out = static_cast<std::byte*>(args.outputs[0]) +
                      (rows.row * output.pitch() + rows.channel) * (BitWidth(output.type) / 8);
    auto* const waiting = reinterpret_cast<float*>(rows.sums);
    HybridRow row{.sums = rows.sums,
                  .n = rows.channels,
                  .scale = scales[rows.row / image_pixels_].scale,
                  .scales = tail_.scales.data() + rows.channel,
                  .weights_first = tail_.weights_first,
                  .bias = nullptr,
                  .min = tail_.tail.min,
                  .max = tail_.tail.max,
                  .to = is_last ? reinterpret_cast<float*>(out) : waiting};
    if (tail_.bias >= 0)
      row.bias = static_cast<const float*>(args.inputs[tail_.bias]) + rows.channel;
    for (int64_t r = 0; r < rows.rows; ++r) {
      store_(row);
      row.sums += rows.channels;
      row.to += is_last ? output.pitch() : rows.channels;
    }
    if (is_last) return;
    apply_tail_(tail_.tail.rest, args.inputs,
                {.source = waiting,
                 .source_pitch = rows.channels,
                 .source_type = DataType::kFloat32,
                 .destination = out,
                 .destination_pitch = output.pitch(),
                 .destination_type = output.type,
                 .row = rows.row,
                 .rows = rows.rows,
                 .channel = rows.channel,
                 .channels = rows.channels});
  }

  HybridTail tail_;
  HybridRowFunction* store_ = nullptr;
  ApplyTailFunction* apply_tail_ = nullptr;
  SourcePlaces scales_;  // where those of the images are
  int64_t image_pixels_ = 0;
};

Result<ProductDescription> Describe(const OpDescription& op) {
  const DataType weights = ReadableType(op.inputs[1].type);
  if (op.inputs[0].type != DataType::kFloat32 || weights != DataType::kInt8 ||
      op.outputs[0].type != DataType::kFloat32) {
    return Unsupported("takes float32 by weights of int8 or int4 to float32, not ",
                       DataTypeName(op.inputs[0].type), " by ", DataTypeName(weights), " to ",
                       DataTypeName(op.outputs[0].type));
  }
  FUSELITE_ASSIGN_OR_RETURN(ProductDescription conv, DescribeWinograd(op, kIntegerTiles));
  if (!conv.hybrid || conv.hybrid->scale_per_row || conv.hybrid->scales_terms) {
    return Unsupported("Winograd's algorithm takes images with one scale each");
  }
  FUSELITE_RETURN_IF_ERROR(CheckIntegerSums(conv.channels_in, 128));
  return conv;
}

}  // namespace

Result<KernelPlan> PlanHybridWinograd(const OpDescription& op, const PlanContext& context,
                                      const MakeWinogradMicroKernel& micro_kernel,
                                      const MakeWinogradMicroKernel& plain) {
  FUSELITE_ASSIGN_OR_RETURN(const ProductDescription conv, Describe(op));
  FUSELITE_RETURN_IF_ERROR(CheckIntegerWinogradPays(conv, micro_kernel, plain));
  return PlanIntegerKernel<HybridWinograd>(op, context, conv, micro_kernel);
}

Result<KernelPlan> PlanHybridWinogradAnyway(const OpDescription& op, const PlanContext& context,
                                            const MakeWinogradMicroKernel& micro_kernel) {
  FUSELITE_ASSIGN_OR_RETURN(const ProductDescription conv, Describe(op));
  return PlanIntegerKernel<HybridWinograd>(op, context, conv, micro_kernel);
}

}  // namespace fuselite::kernels
