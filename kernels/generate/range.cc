#include <cmath>
#include <limits>
#include <span>
#include <type_traits>

#include "kernels/generate/generate.h"
#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

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

// Each float is the one before it and delta, rounded.
void FillRange(float value, float delta, std::span<float> out) {
  for (float& element : out) {
    element = value;
    value += delta;
  }
}

// Integers wrap around.
template <class T>
void FillRange(T start, T delta, std::span<T> out) {
  using Number = std::make_unsigned_t<T>;
  constexpr size_t kLanes = 16;  // the sums of which do not wait for each other
  Number steps[kLanes + 1] = {};
  for (size_t l = 1; l <= kLanes; ++l) steps[l] = steps[l - 1] + static_cast<Number>(delta);
  auto first = static_cast<Number>(start);
  size_t i = 0;
  for (; i + kLanes <= out.size(); i += kLanes, first += steps[kLanes]) {
    for (size_t l = 0; l < kLanes; ++l) out[i + l] = static_cast<T>(first + steps[l]);
  }
  for (size_t l = 0; i + l < out.size(); ++l) out[i + l] = static_cast<T>(first + steps[l]);
}

template <class T>
std::unique_ptr<Kernel> MakeRange(const OpDescription& op) {
  return MakeKernel("range " + std::string(DataTypeName(op.inputs[0].type)), {},
                    [count = op.outputs[0].elements()](const KernelArgs& args, int64_t, int64_t) {
                      FillRange(LoadUnaligned<T>(args.inputs[0], 0),
                                LoadUnaligned<T>(args.inputs[2], 0),
                                std::span(static_cast<T*>(args.outputs[0]), count));
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
  static constexpr OperatorDef kDef = {
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
