#include "kernels/softmax/quantized.h"

#include <algorithm>
#include <limits>

#include "kernels/rows/row_kernel.h"

namespace fuselite::kernels {
namespace {

template <class In, class Out>
void SoftmaxRow(const ExpTable& exp, const In* in, Out* out, int64_t n) {
  constexpr int32_t kMin = std::numeric_limits<Out>::min();
  constexpr int32_t kMax = std::numeric_limits<Out>::max();
  const int32_t largest = *std::max_element(in, in + n);
  int64_t sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    sum += RoundingDivideByPowerOfTwo(exp.values[largest - in[i]], 12);
  }
  const SoftmaxScale scale = ScaleOfSum(sum, static_cast<int>(8 * sizeof(Out)));
  for (int64_t i = 0; i < n; ++i) {
    const int32_t e = SaturatingRoundingDoublingHighMul(scale.scale, exp.values[largest - in[i]]);
    const int32_t rounded = scale.shift > 31 ? 0 : RoundingDivideByPowerOfTwo(e, scale.shift);
    out[i] = static_cast<Out>(std::min(rounded + kMin, kMax));
  }
}

template <class In, class Out>
std::unique_ptr<Kernel> Build(const OpDescription& op, const ExpTable& exp) {
  return MakeQuantizedRowKernel<In, Out>(
      "softmax " + std::string(DataTypeName(op.inputs[0].type)) + " reference", op, 8, 0,
      [exp, n = op.inputs[0].shape.dim(-1)](const KernelArgs&, const In* x, Out* y) {
        SoftmaxRow(exp, x, y, n);
      });
}

}  // namespace

Result<ExpTable> SoftmaxExpTable(const OpDescription& op) {
  return MakeExpTable(op.params.as<SoftmaxParams>().beta, op.inputs[0].quantization.scale());
}

ReciprocalParts PartsOfSum(int64_t sum, int output_bits) {
  const auto saturated =
      static_cast<int32_t>(std::min<int64_t>(sum, std::numeric_limits<int32_t>::max()));
  const ReciprocalParts parts = SplitReciprocal(saturated, 12);
  return {parts.fraction, parts.bits_over_unit + 31 - output_bits};
}

SoftmaxScale ScaleOfSum(int64_t sum, int output_bits) {
  const ReciprocalParts parts = PartsOfSum(sum, output_bits);
  return {FixedOneOverOnePlus(parts.fraction), parts.bits_over_unit};
}

Status CheckQuantizedSoftmax(const OpDescription& op) {
  if (op.inputs[0].type == DataType::kInt16) return CheckInt16Softmax(op);
  const Quantization& out = op.outputs[0].quantization;
  const DataType type = op.outputs[0].type;
  if (op.inputs[0].type == DataType::kInt8 && type == DataType::kInt8 &&
      (out.zero_point() != -128 || std::abs(out.scale() - 1.0f / 256) > 0.001f / 256)) {
    return Unsupported("does not take an output scale of ", out.scale(), " and zero point ",
                       out.zero_point(), ", not 1/256 and -128");
  }
  return SoftmaxExpTable(op).status();
}

Result<std::unique_ptr<Kernel>> BuildQuantizedSoftmaxReference(const OpDescription& op) {
  if (op.inputs[0].type == DataType::kInt16) return BuildInt16Softmax(op);
  FUSELITE_ASSIGN_OR_RETURN(const ExpTable exp, SoftmaxExpTable(op));
  const bool wide = op.outputs[0].type == DataType::kInt16;
  if (op.inputs[0].type == DataType::kInt8) {
    return wide ? Build<int8_t, int16_t>(op, exp) : Build<int8_t, int8_t>(op, exp);
  }
  return wide ? Build<uint8_t, int16_t>(op, exp) : Build<uint8_t, uint8_t>(op, exp);
}

}  // namespace fuselite::kernels
