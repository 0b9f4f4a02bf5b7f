// The choice of a kernel: the JIT's candidates, then the operator's own, the reference last.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/operator.h"

namespace fuselite::fusion {

// A candidate that was asked and refused.
struct Refusal {
  std::string candidate;  // "jit"
  std::string reason;
};

// The first candidate of the node's lists (JIT, Highway, reference) that accepts. Never fails on
// what kernels::Infer accepted: the reference takes everything. Refusals are appended to `refusals`
// when it is not null.
Result<std::unique_ptr<Kernel>> SelectKernel(const kernels::OpDescription& op,
                                             const kernels::BuildContext& context, bool jit,
                                             std::string* candidate,
                                             std::vector<Refusal>* refusals);

// The place in the lists of the candidate that accepts `op` when judging: 0 the best one; -1 where
// the shape rule or every candidate refuses. Ranks of the same operator compare.
int JudgeRank(kernels::OpDescription op, const kernels::BuildContext& context, bool jit);

}  // namespace fuselite::fusion
