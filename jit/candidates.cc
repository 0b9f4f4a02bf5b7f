#include "jit/candidates.h"

#include "jit/conv2d.h"
#include "jit/depthwise.h"
#include "jit/depthwise_s8.h"
#include "jit/matmul.h"
#include "jit/product_hybrid.h"
#include "jit/product_s8.h"

namespace fuselite::jit {
namespace {

using kernels::Candidate;

struct Entry {
  std::string_view op;
  std::span<const Candidate> candidates;
};

// Each refuses what the others take, by its types.
constexpr Candidate kBatchMatMul[] = {{"jit int8", BuildBatchMatMulInt8},
                                      {"jit", BuildBatchMatMul}};
constexpr Candidate kConv2D[] = {
    {"jit int8", BuildConv2DInt8}, {"jit hybrid", BuildConv2DHybrid}, {"jit", BuildConv2D}};
constexpr Candidate kDepthwiseConv2D[] = {{"jit int8", BuildDepthwiseConv2DInt8},
                                          {"jit", BuildDepthwiseConv2D}};
constexpr Candidate kFullyConnected[] = {{"jit int8", BuildFullyConnectedInt8},
                                         {"jit hybrid", BuildFullyConnectedHybrid},
                                         {"jit", BuildFullyConnected}};
constexpr Candidate kTransposeConv[] = {{"jit int8", BuildTransposeConvInt8}};

// One line per operator.
constexpr Entry kEntries[] = {
    {"BATCH_MATMUL", kBatchMatMul},          {"CONV_2D", kConv2D},
    {"DEPTHWISE_CONV_2D", kDepthwiseConv2D}, {"FULLY_CONNECTED", kFullyConnected},
    {"TRANSPOSE_CONV", kTransposeConv},
};

}  // namespace

std::span<const Candidate> CandidatesFor(const kernels::OperatorDef& op) {
  for (const Entry& entry : kEntries) {
    if (entry.op == op.name) return entry.candidates;
  }
  return {};
}

}  // namespace fuselite::jit
