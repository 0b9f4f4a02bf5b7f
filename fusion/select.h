// The choice of a kernel: the JIT's candidates, then the operator's own, the reference last.
#pragma once

#include <memory>
#include <optional>
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
// when it is not null; none where the JIT accepts, whose candidates refuse each other's types.
Result<std::unique_ptr<Kernel>> SelectKernel(const kernels::OpDescription& op,
                                             const kernels::BuildContext& context, bool jit,
                                             std::string* candidate,
                                             std::vector<Refusal>* refusals);

// Which candidate accepts an operation.
struct Selection {
  int rank = 0;            // its place in the lists, 0 the best one; those of one operator compare
  bool emitted = false;    // by the JIT
  bool reference = false;  // the last resort of an operator that has others
};

// The selection for `op` when judging; nullopt where the shape rule or every candidate refuses.
std::optional<Selection> JudgeSelection(kernels::OpDescription op,
                                        const kernels::BuildContext& context, bool jit);

}  // namespace fuselite::fusion
