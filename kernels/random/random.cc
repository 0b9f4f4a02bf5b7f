#include "kernels/random/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "kernels/operator.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/builtin_codes.h"

namespace fuselite::kernels {
namespace {

constexpr Field kFields[] = {
    {"seed", FieldKind::kInt64, 0, offsetof(RandomParams, seed), -1},
    {"seed2", FieldKind::kInt64, 1, offsetof(RandomParams, seed2), -1},
};
constexpr DataType kF32 = DataType::kFloat32, kI32 = DataType::kInt32, kI64 = DataType::kInt64;
constexpr TypeRow kTypes[] = {{{kI32}, kF32}};
constexpr TypeRow kMultinomialTypes[] = {{{kF32, kI32}, kI64}, {{kF32, kI32}, kI32}};

Status InferRandom(OpDescription& op) {
  if (op.inputs[0].shape.rank() != 1) return InvalidArgument("a shape of ", op.inputs[0].shape);
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int64_t> dims,
                            ReadIntegers(op.inputs[0], "the shape", IntegerTypes::kInt32));
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims));
  return SetOutput(op, 0, kF32, shape);
}

Status InferMultinomial(OpDescription& op) {
  const Shape& logits = op.inputs[0].shape;
  if (logits.rank() != 2 || logits[1] == 0) return InvalidArgument("logits of ", logits);
  if (op.inputs[1].shape.rank() != 0) return InvalidArgument("a count of ", op.inputs[1].shape);
  FUSELITE_ASSIGN_OR_RETURN(const int64_t count,
                            ReadInteger(op.inputs[1], "the count", IntegerTypes::kInt32));
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape({logits[0], count}));
  return SetOutput(op, 0, op.outputs[0].type, shape);
}

constexpr OperatorDef Definition(std::string_view name, int code) {
  OperatorDef def;
  def.name = name;
  def.builtin_code = code;
  def.options_type = 114;
  def.fields = kFields;
  def.params_bytes = sizeof(RandomParams);
  def.types = kTypes;
  def.limits = "rank 1";
  def.infer = InferRandom;
  return def;
}

}  // namespace

void RandomSequence::Skip(uint64_t count) {
  for (size_t i = 0; i < counter_.size() && count > 0; ++i) {
    count += counter_[i];
    counter_[i] = static_cast<uint32_t>(count);
    count >>= 32;
  }
}

float UniformFloat(uint32_t word) {
  constexpr uint32_t kOne = 0x3F800000, kMantissa = 0x7FFFFF;
  return std::bit_cast<float>(kOne | (word & kMantissa)) - 1.0f;
}

double UniformDouble(uint32_t high, uint32_t low) {
  constexpr uint64_t kOne = 0x3FF0000000000000, kMantissa = 0xFFFFF;
  return std::bit_cast<double>(kOne | (high & kMantissa) << 32 | low) - 1.0;
}

std::array<float, 2> NormalFloats(uint32_t first, uint32_t second) {
  constexpr float kSmallest = 1.0e-7f;
  const float u = std::max(UniformFloat(first), kSmallest);
  const auto angle = static_cast<float>(2.0f * std::numbers::pi * UniformFloat(second));
  const float radius = std::sqrt(-2.0f * std::log(u));
  return {std::sin(angle) * radius, std::cos(angle) * radius};
}

const OperatorDef& RandomUniformOperator() {
  static constexpr OperatorDef kDef =
      Definition("RANDOM_UNIFORM", tflite::kTfLiteBuiltinRandomUniform);
  return kDef;
}

const OperatorDef& RandomStandardNormalOperator() {
  static constexpr OperatorDef kDef =
      Definition("RANDOM_STANDARD_NORMAL", tflite::kTfLiteBuiltinRandomStandardNormal);
  return kDef;
}

const OperatorDef& MultinomialOperator() {
  static constexpr OperatorDef kDef = [] {
    OperatorDef def = Definition("MULTINOMIAL", tflite::kTfLiteBuiltinMultinomial);
    def.min_inputs = def.max_inputs = 2;
    def.types = kMultinomialTypes;
    def.limits = "rank 2";
    def.infer = InferMultinomial;
    return def;
  }();
  return kDef;
}

}  // namespace fuselite::kernels
