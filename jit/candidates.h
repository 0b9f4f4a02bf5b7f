// The JIT's own candidates: emitters that fulfil the contracts of kernels/, for this shape alone.
#pragma once

#include <span>

#include "kernels/operator.h"

namespace fuselite::jit {

// Best first; asked before the operator's own candidates. Empty for operators without an emitter.
std::span<const kernels::Candidate> CandidatesFor(const kernels::OperatorDef& op);

}  // namespace fuselite::jit
