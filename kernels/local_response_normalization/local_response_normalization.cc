#include "kernels/local_response_normalization/local_response_normalization.h"

#include <algorithm>
#include <cmath>

#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kFields[] = {
    {"radius", FieldKind::kInt32, 0, offsetof(LocalResponseParams, radius),
     offsetof(tflite::TfLiteLocalResponseNormParams, radius)},
    {"bias", FieldKind::kFloat, 1, offsetof(LocalResponseParams, bias),
     offsetof(tflite::TfLiteLocalResponseNormParams, bias)},
    {"alpha", FieldKind::kFloat, 2, offsetof(LocalResponseParams, alpha),
     offsetof(tflite::TfLiteLocalResponseNormParams, alpha)},
    {"beta", FieldKind::kFloat, 3, offsetof(LocalResponseParams, beta),
     offsetof(tflite::TfLiteLocalResponseNormParams, beta)},
};
constexpr TypeRow kTypes[] = {{{DataType::kFloat32}, DataType::kFloat32}};

Status InferLocalResponse(OpDescription& op) {
  const Shape& in = op.inputs[0].shape;
  if (in.rank() != 4) return InvalidArgument("the input ", in, " is not of rank 4");
  if (op.params.as<LocalResponseParams>().radius < 0) return InvalidArgument("a negative radius");
  return SetOutput(op, 0, DataType::kFloat32, in);
}

void NormalizeRow(const LocalResponseParams& params, const float* in, int64_t channels,
                  float* out) {
  for (int64_t c = 0; c < channels; ++c) {
    const int64_t first = std::max<int64_t>(0, c - params.radius);
    const int64_t end = std::min<int64_t>(channels, c + params.radius);
    float squares = 0;
    for (int64_t k = first; k < end; ++k) squares += in[k] * in[k];
    out[c] = in[c] * std::pow(params.bias + params.alpha * squares, -params.beta);
  }
}

constexpr Candidate kCandidates[] = {{"highway", BuildLocalResponseHighway},
                                     {"reference", BuildLocalResponseReference}};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildLocalResponseReference(const OpDescription& op,
                                                            const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("LOCAL_RESPONSE_NORMALIZATION takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  const Shape& in = op.inputs[0].shape;
  return MakeKernel("local_response_normalization reference",
                    {.units = in.elements(0, 3), .grain = GrainFor(16 * in[3])},
                    [params = op.params.as<LocalResponseParams>(), channels = int64_t{in[3]}](
                        const KernelArgs& args, int64_t begin, int64_t end) {
                      for (int64_t row = begin; row < end; ++row) {
                        NormalizeRow(
                            params, static_cast<const float*>(args.inputs[0]) + row * channels,
                            channels, static_cast<float*>(args.outputs[0]) + row * channels);
                      }
                    });
}

const OperatorDef& LocalResponseNormalizationOperator() {
  static constexpr OperatorDef kDef = {
      .name = "LOCAL_RESPONSE_NORMALIZATION",
      .builtin_code = tflite::kTfLiteBuiltinLocalResponseNormalization,
      .options_type = 13,
      .fields = kFields,
      .params_bytes = sizeof(LocalResponseParams),
      .struct_bytes = sizeof(tflite::TfLiteLocalResponseNormParams),
      .types = kTypes,
      .limits = "rank 4",
      .infer = InferLocalResponse,
      .candidates = kCandidates,
      .cost =
          [](const OpDescription& op) {
            // A power for each element, and the squares of its neighbours.
            const double radius = op.params.as<LocalResponseParams>().radius;
            const double neighbours = std::min<double>(2 * radius, op.inputs[0].shape.dim(-1));
            return (32 + neighbours) * static_cast<double>(op.outputs[0].elements());
          },
      .samples = SampleRule::kApart,
  };
  return kDef;
}

}  // namespace fuselite::kernels
