#include "jit/candidates.h"

#include "jit/attention/attention.h"
#include "jit/depthwise/depthwise.h"
#include "jit/depthwise/depthwise_quantized.h"
#include "jit/elementwise/elementwise.h"
#include "jit/product/product_bf16.h"
#include "jit/product/product_f32.h"
#include "jit/product/product_hybrid.h"
#include "jit/product/product_s8.h"
#include "jit/product/winograd.h"
#include "jit/tail/tail_emitter.h"
#include "kernels/elementwise/as_tail.h"
#include "runtime/tflite/builtin_codes.h"

namespace fuselite::jit {
namespace {

using kernels::Candidate;

// Each refuses what the others take, by its types.
constexpr Candidate kBf16Product = Candidate::OfBFloat16("jit bf16", PlanProductBf16);
constexpr Candidate kFloatProduct = Candidate::OfBFloat16("jit", PlanProductF32);
constexpr Candidate kProduct[] = {
    {"jit int8", PlanProductS8}, {"jit hybrid", PlanProductHybrid}, kBf16Product, kFloatProduct};
constexpr Candidate kConv2D[] = {
    {"jit int8 winograd", PlanWinogradS8},       {"jit int8", PlanConv2DInt8},
    {"jit hybrid winograd", PlanWinogradHybrid}, {"jit hybrid", PlanConv2DHybrid},
    {"jit winograd", PlanWinogradF32},           kBf16Product,
    Candidate::OfBFloat16("jit", PlanConv2D)};
constexpr Candidate kFullyConnected[] = {{"jit int8", PlanProductS8},
                                         {"jit hybrid", PlanFullyConnectedHybrid},
                                         kBf16Product,
                                         kFloatProduct};
constexpr Candidate kDepthwiseConv2D[] = {{"jit int8", PlanDepthwiseConv2DInt8},
                                          {"jit hybrid", PlanDepthwiseConv2DHybrid},
                                          Candidate::OfBFloat16("jit", PlanDepthwiseConv2D)};
constexpr Candidate kElementwise[] = {Candidate::OfBFloat16("jit", PlanElementwise)};
constexpr Candidate kAttention[] = {{"jit bf16", PlanAttentionBf16}};

// False for functions of one value that have no emitter, as SIN and LOG.
bool EmitsFunction(const kernels::OperatorDef& op) {
  if (op.max_inputs != 1) return true;
  kernels::OpDescription unary;
  unary.op = &op;
  unary.inputs = unary.outputs = {{.type = DataType::kFloat32}};
  const auto stage = kernels::UnaryStage(unary);
  return !stage || TailEmitter::Check(*stage).ok();
}

}  // namespace

std::span<const Candidate> CandidatesFor(const kernels::OperatorDef& op) {
  if (op.elementwise) return EmitsFunction(op) ? kElementwise : std::span<const Candidate>();
  if (op.name == "FUSELITE_ATTENTION") return kAttention;
  if (op.product == nullptr) return {};
  switch (op.builtin_code) {
    case tflite::kTfLiteBuiltinConv2d: return kConv2D;
    case tflite::kTfLiteBuiltinDepthwiseConv2d: return kDepthwiseConv2D;
    case tflite::kTfLiteBuiltinFullyConnected: return kFullyConnected;
    default: return kProduct;
  }
}

}  // namespace fuselite::jit
