#include "kernels/layer_norm/layer_norm.h"

#include <cmath>

#include "kernels/rows/row_kernel.h"

namespace fuselite::kernels {
namespace {

constexpr DataType kF32 = DataType::kFloat32;
constexpr TypeRow kTypes[] = {{{kF32, kF32, kF32}, kF32}};

Status InferLayerNorm(OpDescription& op) {
  FUSELITE_RETURN_IF_ERROR(InferRowKernel(op));
  const int32_t channels = op.inputs[0].shape.dim(-1);
  for (const size_t i : {1, 2}) {
    if (op.has_input(i) && op.inputs[i].elements() != channels) {
      return InvalidArgument("input ", i, ' ', op.inputs[i].shape, " for ", channels, " channels");
    }
  }
  return Status();
}

constexpr Candidate kCandidates[] = {
    {"highway", BuildLayerNormHighway},
    {"reference", BuildLayerNormReference},
};

void LayerNormRow(const float* x, const float* gamma, const float* beta, float* y, int64_t n,
                  const LayerNormParams& params) {
  double sum = 0;
  for (int64_t i = 0; i < n && !params.keeps_mean; ++i) sum += x[i];
  const auto mean = static_cast<float>(sum / static_cast<double>(n));
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) squares += double{x[i] - mean} * (x[i] - mean);
  const auto variance = static_cast<float>(squares / static_cast<double>(n));
  const float inverse = 1.0f / std::sqrt(variance + params.epsilon);
  for (int64_t i = 0; i < n; ++i) {
    const float scaled = (x[i] - mean) * inverse * (gamma ? gamma[i] : 1.0f);
    y[i] = beta ? scaled + beta[i] : scaled;
  }
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildLayerNormReference(const OpDescription& op,
                                                        const BuildContext&) {
  return MakeRowKernel(
      "layer_norm f32 reference", op, &ApplyTailReference, 4,
      [n = op.inputs[0].shape.dim(-1), params = op.params.as<LayerNormParams>(),
       scaled = op.has_input(1),
       shifted = op.has_input(2)](const KernelArgs& args, const float* x, float* y) {
        LayerNormRow(x, scaled ? static_cast<const float*>(args.inputs[1]) : nullptr,
                     shifted ? static_cast<const float*>(args.inputs[2]) : nullptr, y, n, params);
      });
}

const OperatorDef& LayerNormOperator() {
  static constexpr OperatorDef kDef = {
      .name = "FUSELITE_LAYER_NORM",
      .params_bytes = sizeof(LayerNormParams),
      .min_inputs = 1,
      .max_inputs = 3,
      .types = kTypes,
      .infer = InferLayerNorm,
      .candidates = kCandidates,
      .cost = [](const OpDescription& op) { return 6.0 * op.inputs[0].elements(); },
      .takes_tail = true,
      .samples = SampleRule::kApartByRows,
  };
  return kDef;
}

}  // namespace fuselite::kernels
