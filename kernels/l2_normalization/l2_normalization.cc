#include "kernels/l2_normalization/l2_normalization.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/numbers/fixed_point.h"
#include "kernels/rows/row_kernel.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kFields[] = {
    {"fused_activation_function", FieldKind::kActivation, 0,
     offsetof(L2NormalizationParams, activation), offsetof(tflite::TfLiteL2NormParams, activation)},
};

constexpr TypeRow kTypes[] = {{{DataType::kFloat32}, DataType::kFloat32},
                              {{DataType::kInt8}, DataType::kInt8},
                              {{DataType::kUInt8}, DataType::kUInt8}};
// A row's sum of squares, up to 255^2 each, must fit into 32 bits.
constexpr int32_t kMaxQuantizedRow = 1 << 15;

Status CheckQuantized(const OpDescription& op) {
  const Quantization& out = op.outputs[0].quantization;
  const int32_t zero_point = op.inputs[0].type == DataType::kUInt8 ? 128 : 0;
  if (out.scale() != 1.0f / 128 || out.zero_point() != zero_point) {
    return Unsupported("does not take an output scale of ", out.scale(), " and zero point ",
                       out.zero_point(), ", not 1/128 and ", zero_point);
  }
  int32_t min, max;
  QuantizedTypeRange(op.inputs[0].type, &min, &max);
  const int32_t in_zero_point = op.inputs[0].quantization.zero_point();
  if (in_zero_point < min || in_zero_point > max) {
    return Unsupported("zero point ", in_zero_point, " leaves 8 bits");
  }
  if (op.inputs[0].shape.dim(-1) > kMaxQuantizedRow) {
    return Unsupported("does not take rows above ", kMaxQuantizedRow);
  }
  return Status();
}

Status InferL2Normalization(OpDescription& op) {
  if (op.params.as<L2NormalizationParams>().activation != Activation::kNone) {
    return Unsupported("does not take a fused activation");
  }
  FUSELITE_RETURN_IF_ERROR(InferRowKernel(op));
  return op.inputs[0].type == DataType::kFloat32 ? Status() : CheckQuantized(op);
}

constexpr Candidate kCandidates[] = {
    {"highway", BuildL2NormalizationHighway},
    {"reference", BuildL2NormalizationReference},
};

void L2NormalizationRow(const float* in, float* out, int64_t n) {
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += in[i] * in[i];
  const float norm = std::max(std::sqrt(sum), 1e-6f);
  for (int64_t i = 0; i < n; ++i) out[i] = in[i] / norm;
}

template <class T>
void QuantizedRow(const T* in, T* out, int64_t n, int32_t zero_point) {
  constexpr int32_t kMin = std::numeric_limits<T>::min(), kMax = std::numeric_limits<T>::max();
  int32_t sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int32_t x = in[i] - zero_point;
    sum += x * x;
  }
  const FixedPoint inverse = FixedInverseSqrt(sum);
  for (int64_t i = 0; i < n; ++i) {
    // Results are units of 1/128. uint8 multiplies by 128 first; int8 folds that into the shift.
    const int32_t x = in[i] - zero_point;
    const int32_t y =
        std::is_signed_v<T>
            ? MultiplyByQuantizedMultiplier(x, inverse.multiplier, inverse.shift + 7)
            : 128 + MultiplyByQuantizedMultiplier(128 * x, inverse.multiplier, inverse.shift);
    out[i] = static_cast<T>(std::clamp(y, kMin, kMax));
  }
}

template <class T>
std::unique_ptr<Kernel> BuildQuantized(const OpDescription& op) {
  return MakeQuantizedRowKernel<T, T>(
      "l2_normalization " + std::string(DataTypeName(op.inputs[0].type)) + " reference", op, 4, 0,
      [n = op.inputs[0].shape.dim(-1), zero_point = op.inputs[0].quantization.zero_point()](
          const KernelArgs&, const T* x, T* y) { QuantizedRow(x, y, n, zero_point); });
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildL2NormalizationReference(const OpDescription& op,
                                                              const BuildContext&) {
  if (op.inputs[0].type == DataType::kInt8) return BuildQuantized<int8_t>(op);
  if (op.inputs[0].type == DataType::kUInt8) return BuildQuantized<uint8_t>(op);
  return MakeRowKernel("l2_normalization f32 reference", op, &ApplyTailReference, 2,
                       [n = op.inputs[0].shape.dim(-1)](const KernelArgs&, const float* x,
                                                        float* y) { L2NormalizationRow(x, y, n); });
}

const OperatorDef& L2NormalizationOperator() {
  static constexpr OperatorDef kDef = {
      .name = "L2_NORMALIZATION",
      .builtin_code = tflite::kTfLiteBuiltinL2Normalization,
      .options_type = 12,
      .max_version = 2,
      .fields = kFields,
      .params_bytes = sizeof(L2NormalizationParams),
      .struct_bytes = sizeof(tflite::TfLiteL2NormParams),
      .types = kTypes,
      .limits = "rank 1 or more",
      .infer = InferL2Normalization,
      .candidates = kCandidates,
      .cost = [](const OpDescription& op) { return 2.0 * op.inputs[0].elements(); },
      .samples = SampleRule::kApartByRows,
  };
  return kDef;
}

}  // namespace fuselite::kernels
