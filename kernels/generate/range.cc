#include <cmath>
#include <limits>

#include "kernels/generate/generate.h"
#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite_abi.h"

namespace fuselite::kernels {
namespace {

constexpr DataType kF32 = DataType::kFloat32, kI32 = DataType::kInt32, kI64 = DataType::kInt64;
constexpr TypeRow kTypes[] = {
    {{kF32, kF32, kF32}, kF32},
    {{kI32, kI32, kI32}, kI32},
    {{kI64, kI64, kI64}, kI64},
};

Result<int64_t> CountIntegers(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const int64_t start,
                            ReadInteger(op.inputs[0], "the start", IntegerTypes::kInt32Or64));
  FUSELITE_ASSIGN_OR_RETURN(const int64_t limit,
                            ReadInteger(op.inputs[1], "the limit", IntegerTypes::kInt32Or64));
  FUSELITE_ASSIGN_OR_RETURN(const int64_t delta,
                            ReadInteger(op.inputs[2], "the delta", IntegerTypes::kInt32Or64));
  if (delta == 0 || (limit > start && delta < 0) || (limit < start && delta > 0)) {
    return InvalidArgument("steps of ", delta, " do not lead from ", start, " to ", limit);
  }
  // The distance fits in 64 bits without a sign.
  const uint64_t distance =
      limit > start ? static_cast<uint64_t>(limit) - start : static_cast<uint64_t>(start) - limit;
  const uint64_t step = delta > 0 ? static_cast<uint64_t>(delta) : uint64_t{0} - delta;
  const uint64_t count = distance / step + (distance % step != 0);
  if (count > std::numeric_limits<int32_t>::max()) return InvalidArgument("the range is too long");
  return static_cast<int64_t>(count);
}

Result<int64_t> CountFloats(const OpDescription& op) {
  for (const TensorInfo& in : op.inputs) {
    if (in.elements() != 1) return InvalidArgument("start, limit and delta must be scalars");
    if (!in.constant()) return DynamicShape("the range is known at run time only");
  }
  const float start = LoadUnaligned<float>(op.inputs[0].data, 0);
  const float limit = LoadUnaligned<float>(op.inputs[1].data, 0);
  const float delta = LoadUnaligned<float>(op.inputs[2].data, 0);
  if (!((start >= limit && delta < 0) || (start <= limit && delta > 0))) {
    return InvalidArgument("steps of ", delta, " do not lead from ", start, " to ", limit);
  }
  const float count = std::ceil(std::abs((limit - start) / delta));
  if (!(count < 0x1p31f)) return InvalidArgument("the range is too long");
  return static_cast<int64_t>(count);
}

Status InferRange(OpDescription& op) {
  const DataType type = op.inputs[0].type;
  FUSELITE_ASSIGN_OR_RETURN(const int64_t count,
                            type == kF32 ? CountFloats(op) : CountIntegers(op));
  return SetOutput(op, 0, type, Shape{static_cast<int32_t>(count)});
}

template <class T>
std::unique_ptr<Kernel> MakeRange(const OpDescription& op) {
  using Sum =
      std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>;
  return MakeKernel("range " + std::string(DataTypeName(op.inputs[0].type)), {},
                    [count = op.outputs[0].elements()](const KernelArgs& args, int64_t, int64_t) {
                      auto* out = static_cast<T*>(args.outputs[0]);
                      using Number = typename Sum::type;
                      auto value = static_cast<Number>(LoadUnaligned<T>(args.inputs[0], 0));
                      const auto delta = static_cast<Number>(LoadUnaligned<T>(args.inputs[2], 0));
                      for (int64_t i = 0; i < count; ++i) {
                        out[i] = static_cast<T>(value);
                        value += delta;
                      }
                    });
}

constexpr Candidate kCandidates[] = {{"reference", BuildRange}};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildRange(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("RANGE takes no fused tail");
  switch (op.inputs[0].type) {
    case kF32: return MakeRange<float>(op);
    case kI32: return MakeRange<int32_t>(op);
    default: return MakeRange<int64_t>(op);
  }
}

const OperatorDef& RangeOperator() {
  static const OperatorDef kDef = {
      .name = "RANGE",
      .builtin_code = tflite::kTfLiteBuiltinRange,
      .options_type = 73,
      .max_version = 2,
      .min_inputs = 3,
      .max_inputs = 3,
      .types = kTypes,
      .limits = "rank 0",
      .infer = InferRange,
      .candidates = kCandidates,
      .cost = MovementCost,
  };
  return kDef;
}

}  // namespace fuselite::kernels
