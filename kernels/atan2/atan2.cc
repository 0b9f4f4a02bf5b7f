// ATAN2: the angle of the point (x, y), from the inputs y and x of one type and shape. The short
// floats are computed in float and rounded once.
#include <cmath>

#include "kernels/elementwise/typed/typed_map.h"
#include "kernels/numbers/short_floats.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr TypeRow Same(DataType type) { return {{type, type}, type}; }
constexpr TypeRow kTypes[] = {Same(DataType::kFloat32), Same(DataType::kFloat64),
                              Same(DataType::kFloat16), Same(DataType::kBFloat16)};

Status InferAtan2(OpDescription& op) {
  if (op.inputs[0].shape != op.inputs[1].shape) {
    return InvalidArgument("operands of ", op.inputs[0].shape, " and ", op.inputs[1].shape);
  }
  return InferTypedMap(op, op.inputs[0].type);
}

Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext&) {
  const auto narrow = [](float y, float x) { return std::atan2(y, x); };
  switch (op.inputs[0].type) {
    case DataType::kFloat16: return MakeTypedMap<Half, Half>(op, narrow);
    case DataType::kBFloat16: return MakeTypedMap<BFloat16, BFloat16>(op, narrow);
    case DataType::kFloat64:
      return MakeTypedMap<double, double>(op, [](double y, double x) { return std::atan2(y, x); });
    default: return MakeTypedMap<float, float>(op, narrow);
  }
}

constexpr Candidate kCandidates[] = {{"reference", Build}};

}  // namespace

const OperatorDef& Atan2Operator() {
  static constexpr OperatorDef kDef = {
      .name = "ATAN2",
      .builtin_code = tflite::kTfLiteBuiltinAtan2,
      .options_type = 122,
      .min_inputs = 2,
      .max_inputs = 2,
      .types = kTypes,
      .infer = InferAtan2,
      .candidates = kCandidates,
      .cost = [](const OpDescription& op) { return 32.0 * op.outputs[0].elements(); },
  };
  return kDef;
}

}  // namespace fuselite::kernels
