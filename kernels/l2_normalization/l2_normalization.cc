#include "kernels/l2_normalization/l2_normalization.h"

#include <algorithm>
#include <cmath>

#include "kernels/row_kernel.h"
#include "runtime/tflite_abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kFields[] = {
    {"fused_activation_function", FieldKind::kActivation, 0,
     offsetof(L2NormalizationParams, activation), offsetof(tflite::TfLiteL2NormParams, activation)},
};

constexpr TypeRow kTypes[] = {{{DataType::kFloat32}, DataType::kFloat32}};

Status InferL2Normalization(OpDescription& op) {
  if (op.params.as<L2NormalizationParams>().activation != Activation::kNone) {
    return Unsupported("a fused activation");
  }
  return InferRowKernel(op);
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

}  // namespace

Result<std::unique_ptr<Kernel>> BuildL2NormalizationReference(const OpDescription& op,
                                                              const BuildContext&) {
  return MakeRowKernel("l2_normalization f32 reference", op, &ApplyTailReference, 2,
                       [n = op.inputs[0].shape.dim(-1)](const KernelArgs&, const float* x,
                                                        float* y) { L2NormalizationRow(x, y, n); });
}

const OperatorDef& L2NormalizationOperator() {
  static const OperatorDef kDef = {
      .name = "L2_NORMALIZATION",
      .builtin_code = tflite::kTfLiteBuiltinL2Normalization,
      .options_type = 12,
      .max_version = 2,
      .fields = kFields,
      .params_bytes = sizeof(L2NormalizationParams),
      .struct_bytes = sizeof(tflite::TfLiteL2NormParams),
      .types = kTypes,
      .infer = InferL2Normalization,
      .candidates = kCandidates,
      .cost = [](const OpDescription& op) { return 2.0 * op.inputs[0].elements(); },
  };
  return kDef;
}

}  // namespace fuselite::kernels
