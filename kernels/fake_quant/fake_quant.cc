// FAKE_QUANT: float values as they come back from quantizing to `num_bits` bits, whose range [min,
// max] is moved so that 0 is one of the steps. The compiler makes vectors of its loop (this file is
// compiled with -O3).
#include <algorithm>
#include <cmath>

#include "kernels/elementwise/typed/typed_map.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

struct FakeQuantParams {
  float min, max;
  int32_t num_bits;
  bool narrow_range;
};
constexpr Field kFields[] = {
    {"min", FieldKind::kFloat, 0, offsetof(FakeQuantParams, min),
     offsetof(tflite::TfLiteFakeQuantParams, min)},
    {"max", FieldKind::kFloat, 1, offsetof(FakeQuantParams, max),
     offsetof(tflite::TfLiteFakeQuantParams, max)},
    {"num_bits", FieldKind::kInt32, 2, offsetof(FakeQuantParams, num_bits),
     offsetof(tflite::TfLiteFakeQuantParams, num_bits)},
    {"narrow_range", FieldKind::kBool, 3, offsetof(FakeQuantParams, narrow_range),
     offsetof(tflite::TfLiteFakeQuantParams, narrow_range), -1, 2},
};
constexpr TypeRow kTypes[] = {{{DataType::kFloat32}, DataType::kFloat32}};

Status InferFakeQuant(OpDescription& op) {
  const auto& params = op.params.as<FakeQuantParams>();
  if (!op.tail.empty()) return Unsupported("does not take a tail behind FAKE_QUANT");
  if (params.narrow_range) return Unsupported("a narrow range, which is for weights alone");
  if (params.num_bits < 1 || params.num_bits > 16) {
    return InvalidArgument(params.num_bits, " bits, not 1 to 16");
  }
  if (!(params.min <= 0 && params.max >= 0 && params.min < params.max)) {
    return InvalidArgument("the range ", params.min, " to ", params.max, " does not hold 0");
  }
  return SetOutput(op, 0, DataType::kFloat32, op.inputs[0].shape);
}

struct Steps {
  float low, high, scale, inverse;

  explicit Steps(const FakeQuantParams& params) {
    const auto last = static_cast<float>((1 << params.num_bits) - 1);
    scale = (params.max - params.min) / last;
    const float zero = std::round(std::clamp(0 - params.min / scale, 0.0F, last));
    low = (0 - zero) * scale;
    high = (last - zero) * scale;
    inverse = 1 / scale;
  }
  float operator()(float x) const {
    const float clamped = std::min(high, std::max(low, x));
    // Half up: the largest float below 1/2 carries exactly the halves over, of up to 2^16 steps. A
    // cast cuts the fraction off, which has vectors everywhere.
    const auto step = static_cast<int32_t>((clamped - low) * inverse + 0.49999997F);
    return static_cast<float>(step) * scale + low;
  }
};

Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext&) {
  return MakeTypedUnaryMap<float, float>(op, Steps(op.params.as<FakeQuantParams>()));
}

constexpr Candidate kCandidates[] = {{"reference", Build}};

}  // namespace

const OperatorDef& FakeQuantOperator() {
  static constexpr OperatorDef kDef = {
      .name = "FAKE_QUANT",
      .builtin_code = tflite::kTfLiteBuiltinFakeQuant,
      .options_type = 58,
      .max_version = 2,
      .fields = kFields,
      .params_bytes = sizeof(FakeQuantParams),
      .struct_bytes = sizeof(tflite::TfLiteFakeQuantParams),
      .types = kTypes,
      .limits = "1 to 16 bits; a range that holds 0",
      .infer = InferFakeQuant,
      .candidates = kCandidates,
      .cost = [](const OpDescription& op) { return 1.0 * op.outputs[0].elements(); },
  };
  return kDef;
}

}  // namespace fuselite::kernels
