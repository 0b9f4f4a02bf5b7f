#include "kernels/log_softmax/log_softmax.h"

#include <algorithm>
#include <cmath>

#include "kernels/log_softmax/quantized.h"
#include "kernels/rows/row_kernel.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr TypeRow kTypes[] = {{{DataType::kFloat32}, DataType::kFloat32},
                              {{DataType::kInt8}, DataType::kInt8},
                              {{DataType::kUInt8}, DataType::kUInt8}};

Status InferLogSoftmax(OpDescription& op) {
  FUSELITE_RETURN_IF_ERROR(InferRowKernel(op));
  return op.inputs[0].type == DataType::kFloat32 ? Status() : CheckQuantizedLogSoftmax(op);
}

constexpr Candidate kCandidates[] = {
    {"highway", BuildLogSoftmaxHighway},
    {"reference", BuildLogSoftmaxReference},
};

void LogSoftmaxRow(const float* in, float* out, int64_t n) {
  const float largest = *std::max_element(in, in + n);
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::exp(in[i] - largest);
  const float log_sum = std::log(sum);
  for (int64_t i = 0; i < n; ++i) out[i] = in[i] - largest - log_sum;
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildLogSoftmaxReference(const OpDescription& op,
                                                         const BuildContext&) {
  if (op.inputs[0].type != DataType::kFloat32) return BuildQuantizedLogSoftmax(op);
  return MakeRowKernel("log_softmax f32 reference", op, &ApplyTailReference, 8,
                       [n = op.inputs[0].shape.dim(-1)](const KernelArgs&, const float* x,
                                                        float* y) { LogSoftmaxRow(x, y, n); });
}

const OperatorDef& LogSoftmaxOperator() {
  static constexpr OperatorDef kDef = {
      .name = "LOG_SOFTMAX",
      .builtin_code = tflite::kTfLiteBuiltinLogSoftmax,
      .options_type = 36,
      .max_version = 2,
      .types = kTypes,
      .limits = "rank 1 or more",
      .infer = InferLogSoftmax,
      .candidates = kCandidates,
      .cost = [](const OpDescription& op) { return 4.0 * op.inputs[0].elements(); },
      .samples = SampleRule::kApartByRows,
  };
  return kDef;
}

}  // namespace fuselite::kernels
