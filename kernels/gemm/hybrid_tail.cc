#include "kernels/gemm/hybrid_tail.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/hybrid_tail.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void StoreHybridRow(const HybridRow& row) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> d32;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto scale = hn::Set(d, row.scale);
  const auto offset = hn::Set(d32, row.offset);
  const auto min = hn::Set(d, row.min), max = hn::Set(d, row.max);
  for (int64_t i = 0; i < row.n; i += lanes) {
    const auto left = static_cast<size_t>(row.n - i);
    auto raised = LoadUpTo(d32, row.sums + i, left);
    if (row.weight_sums != nullptr) {
      raised = hn::Add(raised, hn::Mul(offset, LoadUpTo(d32, row.weight_sums + i, left)));
    }
    const auto sum = hn::ConvertTo(d, raised);
    const auto weights = LoadUpTo(d, row.scales + i, left);
    auto value = row.weights_first ? hn::Mul(hn::Mul(sum, weights), scale)
                                   : hn::Mul(sum, hn::Mul(scale, weights));
    if (row.bias != nullptr) value = hn::Add(value, LoadUpTo(d, row.bias + i, left));
    // A NaN stays one, whichever operand the target's minimum and maximum prefer.
    const auto cut = hn::Min(hn::Max(value, min), max);
    StoreUpTo(hn::IfThenElse(hn::IsNaN(value), value, cut), d, row.to + i, left);
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

Result<HybridTail> MakeHybridTail(const OpDescription& op, Activation activation,
                                  int64_t channels) {
  const ProductInputs& inputs = *op.op->product_inputs;
  const Quantization& weights = op.inputs[inputs.weights].quantization;
  if (weights.empty()) return Unsupported("does not take 8-bit weights without a scale");
  if (weights.per_channel() && static_cast<int64_t>(weights.scales.size()) != channels) {
    return InvalidArgument("the weights have ", weights.scales.size(), " scales for ", channels,
                           " channels");
  }
  for (float scale : weights.scales) {
    if (!std::isfinite(scale)) return Unsupported("a scale of the weights is not finite");
  }
  for (int32_t zero_point : weights.zero_points) {
    if (zero_point != 0) {
      return InvalidArgument("weights of float32 activations must have zero point 0, not ",
                             zero_point);
    }
  }
  HybridTail result;
  FUSELITE_ASSIGN_OR_RETURN(result.tail, MakeFloatTail(op, activation));
  result.scales = weights.per_channel() ? weights.scales
                                        : ChannelValues<float>::Repeated(channels, weights.scale());
  if (inputs.bias >= 0 && op.has_input(inputs.bias)) result.bias = inputs.bias;
  result.output = op.outputs[0];
  return result;
}

void HybridTail::StoreRow(const KernelArgs& args, int64_t row, const int64_t* sums, float scale,
                          float* scratch) const {
  const auto* biases = bias < 0 ? nullptr : static_cast<const float*>(args.inputs[bias]);
  for (size_t c = 0; c < scales.size(); ++c) {
    const auto sum = static_cast<float>(static_cast<int32_t>(sums[c]));
    const float value = weights_first ? sum * scales[c] * scale : sum * (scale * scales[c]);
    scratch[c] = biases == nullptr ? value : value + biases[c];
  }
  StoreFloatRow(tail, args, output, row, scratch);
}

HybridRowFunction* FindHybridRow(Isa isa) {
  static constexpr auto kTable = FUSELITE_SIMD_TABLE(StoreHybridRow);
  return kTable.For(isa);
}

}  // namespace fuselite::kernels
#endif
