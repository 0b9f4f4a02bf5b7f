// TensorFlow's functions of one float32 that TFLite has no operator for, and which converters leave
// in a model as "Select TF ops". Their nodes have no attributes but the type.
#include <algorithm>
#include <cmath>

#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/typed/typed_map.h"
#include "kernels/operator.h"

namespace fuselite::kernels {
namespace {

constexpr TypeRow kToFloat[] = {{{DataType::kFloat32}, DataType::kFloat32}};
constexpr TypeRow kToBool[] = {{{DataType::kFloat32}, DataType::kBool}};

float Reciprocal(float x) { return 1.0f / x; }

// Klambauer and others, "Self-Normalizing Neural Networks".
float Selu(float x) {
  constexpr float kScale = 1.0507009873554805f, kScaleAlpha = 1.7580993408473768f;
  return x < 0 ? kScaleAlpha * std::expm1(x) : kScale * x;
}

// log(1 + e^x), whose exponential does not overflow.
float Softplus(float x) { return std::max(x, 0.0f) + std::log1p(std::exp(-std::abs(x))); }

template <auto kFunction>
Result<std::unique_ptr<Kernel>> BuildFloat(const OpDescription& op, const BuildContext&) {
  // As many units of work as 16 moved floats, of which a function takes 2 to 10 ns.
  constexpr int64_t kWork = 16;
  return MakeUnaryRows<float, float>(op, std::string(op.op->name), kWork,
                                     [](const float* x, float* out, int64_t n) {
                                       for (int64_t i = 0; i < n; ++i) out[i] = kFunction(x[i]);
                                     });
}

template <auto kFunction>
Result<std::unique_ptr<Kernel>> BuildTest(const OpDescription& op, const BuildContext&) {
  return MakeTypedUnaryMap<float, bool>(op, [](float x) { return kFunction(x); });
}

constexpr OperatorDef MakeFunction(std::string_view name, std::span<const TypeRow> types,
                                   std::span<const Candidate> candidates) {
  OperatorDef def;
  def.name = name;
  def.read_custom = IgnoreOptions;
  def.types = types;
  def.infer = [](OpDescription& op) {
    if (!op.tail.empty()) return Unsupported("does not take a tail behind ", op.op->name);
    return SetElementwiseOutput(op, op.op->types.front().output, op.inputs[0].shape);
  };
  def.pointwise = true;
  def.candidates = candidates;
  def.cost = [](const OpDescription& op) {
    return 8.0 * static_cast<double>(op.inputs[0].elements());
  };
  return def;
}

}  // namespace

#define FUSELITE_FUNCTION(Name, kTypes, Build)                                           \
  const OperatorDef& Flex##Name##Operator() {                                            \
    static constexpr Candidate kCandidates[] = {{"reference", Build}};                   \
    static constexpr OperatorDef kDef = MakeFunction("Flex" #Name, kTypes, kCandidates); \
    return kDef;                                                                         \
  }

FUSELITE_FUNCTION(Acos, kToFloat, BuildFloat<[](float x) { return std::acos(x); }>)
FUSELITE_FUNCTION(Acosh, kToFloat, BuildFloat<[](float x) { return std::acosh(x); }>)
FUSELITE_FUNCTION(Asin, kToFloat, BuildFloat<[](float x) { return std::asin(x); }>)
FUSELITE_FUNCTION(Asinh, kToFloat, BuildFloat<[](float x) { return std::asinh(x); }>)
FUSELITE_FUNCTION(Atan, kToFloat, BuildFloat<[](float x) { return std::atan(x); }>)
FUSELITE_FUNCTION(Atanh, kToFloat, BuildFloat<[](float x) { return std::atanh(x); }>)
FUSELITE_FUNCTION(Cosh, kToFloat, BuildFloat<[](float x) { return std::cosh(x); }>)
FUSELITE_FUNCTION(Erfc, kToFloat, BuildFloat<[](float x) { return std::erfc(x); }>)
FUSELITE_FUNCTION(Expm1, kToFloat, BuildFloat<[](float x) { return std::expm1(x); }>)
FUSELITE_FUNCTION(Inv, kToFloat, BuildFloat<Reciprocal>)
FUSELITE_FUNCTION(IsFinite, kToBool, BuildTest<[](float x) { return std::isfinite(x); }>)
FUSELITE_FUNCTION(IsInf, kToBool, BuildTest<[](float x) { return std::isinf(x); }>)
FUSELITE_FUNCTION(IsNan, kToBool, BuildTest<[](float x) { return std::isnan(x); }>)
FUSELITE_FUNCTION(Log1p, kToFloat, BuildFloat<[](float x) { return std::log1p(x); }>)
FUSELITE_FUNCTION(Reciprocal, kToFloat, BuildFloat<Reciprocal>)
FUSELITE_FUNCTION(Selu, kToFloat, BuildFloat<Selu>)
FUSELITE_FUNCTION(Sinh, kToFloat, BuildFloat<[](float x) { return std::sinh(x); }>)
FUSELITE_FUNCTION(Softplus, kToFloat, BuildFloat<Softplus>)
FUSELITE_FUNCTION(Tan, kToFloat, BuildFloat<[](float x) { return std::tan(x); }>)

#undef FUSELITE_FUNCTION

}  // namespace fuselite::kernels
