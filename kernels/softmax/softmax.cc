#include "kernels/softmax/softmax.h"

#include "kernels/rows/row_kernel.h"
#include "kernels/softmax/quantized.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kFields[] = {
    {"beta", FieldKind::kFloat, 0, offsetof(SoftmaxParams, beta),
     offsetof(tflite::TfLiteSoftmaxParams, beta)},
};

constexpr TypeRow kTypes[] = {
    {{DataType::kFloat32}, DataType::kFloat32}, {{DataType::kInt8}, DataType::kInt8},
    {{DataType::kInt8}, DataType::kInt16},      {{DataType::kUInt8}, DataType::kUInt8},
    {{DataType::kUInt8}, DataType::kInt16},     {{DataType::kInt16}, DataType::kInt16},
    {{DataType::kFloat16}, DataType::kFloat16},
};

Status InferSoftmax(OpDescription& op) {
  FUSELITE_RETURN_IF_ERROR(InferRowKernel(op));
  const DataType type = op.inputs[0].type;
  const bool real = type == DataType::kFloat32 || type == DataType::kFloat16;
  return real ? Status() : CheckQuantizedSoftmax(op);
}

constexpr Candidate kCandidates[] = {
    {"highway", BuildSoftmaxHighway},
    {"reference", BuildSoftmaxReference},
};

}  // namespace

const OperatorDef& SoftmaxOperator() {
  static constexpr OperatorDef kDef = {
      .name = "SOFTMAX",
      .builtin_code = tflite::kTfLiteBuiltinSoftmax,
      .options_type = 9,
      .max_version = 4,
      .fields = kFields,
      .params_bytes = sizeof(SoftmaxParams),
      .struct_bytes = sizeof(tflite::TfLiteSoftmaxParams),
      .types = kTypes,
      .limits = "rank 1 or more",
      .infer = InferSoftmax,
      .candidates = kCandidates,
      .cost = [](const OpDescription& op) { return 4.0 * op.inputs[0].elements(); },
      .samples = SampleRule::kApartByRows,
  };
  return kDef;
}

}  // namespace fuselite::kernels
