#include "jit/candidates.h"

#include "jit/conv2d.h"
#include "jit/depthwise.h"
#include "jit/matmul.h"

namespace fuselite::jit {
namespace {

using kernels::Candidate;

struct Entry {
  std::string_view op;
  Candidate candidate;
};

// One line per operator.
constexpr Entry kEntries[] = {
    {"BATCH_MATMUL", {"jit", BuildBatchMatMul}},
    {"CONV_2D", {"jit", BuildConv2D}},
    {"DEPTHWISE_CONV_2D", {"jit", BuildDepthwiseConv2D}},
    {"FULLY_CONNECTED", {"jit", BuildFullyConnected}},
};

}  // namespace

std::span<const Candidate> CandidatesFor(const kernels::OperatorDef& op) {
  for (const Entry& entry : kEntries) {
    if (entry.op == op.name) return {&entry.candidate, 1};
  }
  return {};
}

}  // namespace fuselite::jit
