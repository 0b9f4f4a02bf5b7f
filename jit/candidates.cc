#include "jit/candidates.h"

#include "jit/depthwise/depthwise.h"
#include "jit/depthwise/depthwise_quantized.h"
#include "jit/elementwise/elementwise.h"
#include "jit/product/product_f32.h"
#include "jit/product/product_hybrid.h"
#include "jit/product/product_s8.h"
#include "jit/product/winograd.h"

namespace fuselite::jit {
namespace {

using kernels::Candidate;
using kernels::Judged;

struct Entry {
  std::string_view op;
  std::span<const Candidate> candidates;
};

// Each refuses what the others take, by its types.
constexpr Candidate kProduct[] = {{"jit int8", Judged{BuildProductS8}},
                                  {"jit hybrid", Judged{BuildProductHybrid}},
                                  {"jit", Judged{BuildProductF32}}};
constexpr Candidate kConv2D[] = {{"jit int8", Judged{BuildProductS8}},
                                 {"jit hybrid", Judged{BuildProductHybrid}},
                                 {"jit winograd", Judged{BuildWinogradF32}},
                                 {"jit", Judged{BuildProductF32}}};
constexpr Candidate kFullyConnected[] = {{"jit int8", Judged{BuildProductS8}},
                                         {"jit hybrid", Judged{BuildFullyConnectedHybrid}},
                                         {"jit", Judged{BuildProductF32}}};
constexpr Candidate kDepthwiseConv2D[] = {{"jit int8", Judged{BuildDepthwiseConv2DInt8}},
                                          {"jit hybrid", Judged{BuildDepthwiseConv2DHybrid}},
                                          {"jit", Judged{BuildDepthwiseConv2D}}};
constexpr Candidate kElementwise[] = {{"jit", PlanElementwise}};

// In alphabetical order.
constexpr Entry kEntries[] = {
    {"ABS", kElementwise},
    {"ADD", kElementwise},
    {"BATCH_MATMUL", kProduct},
    {"CEIL", kElementwise},
    {"CONV_2D", kConv2D},
    {"DEPTHWISE_CONV_2D", kDepthwiseConv2D},
    {"DIV", kElementwise},
    {"ELU", kElementwise},
    {"EXP", kElementwise},
    {"FLOOR", kElementwise},
    {"FULLY_CONNECTED", kFullyConnected},
    {"FUSELITE_ELEMENTWISE", kElementwise},
    {"GELU", kElementwise},
    {"HARD_SWISH", kElementwise},
    {"LEAKY_RELU", kElementwise},
    {"LOGISTIC", kElementwise},
    {"MAXIMUM", kElementwise},
    {"MINIMUM", kElementwise},
    {"MUL", kElementwise},
    {"NEG", kElementwise},
    {"PRELU", kElementwise},
    {"RELU", kElementwise},
    {"RELU_0_TO_1", kElementwise},
    {"RELU6", kElementwise},
    {"RELU_N1_TO_1", kElementwise},
    {"ROUND", kElementwise},
    {"RSQRT", kElementwise},
    {"SIGN", kElementwise},
    {"SQRT", kElementwise},
    {"SQUARE", kElementwise},
    {"SQUARED_DIFFERENCE", kElementwise},
    {"SUB", kElementwise},
    {"TANH", kElementwise},
    {"TRANSPOSE_CONV", kProduct},
};

}  // namespace

std::span<const Candidate> CandidatesFor(const kernels::OperatorDef& op) {
  for (const Entry& entry : kEntries) {
    if (entry.op == op.name) return entry.candidates;
  }
  return {};
}

}  // namespace fuselite::jit
