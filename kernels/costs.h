// Costs that many operators have (OperatorDef::cost).
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

// The output's elements.
inline double OutputElements(const OpDescription& op) {
  return static_cast<double>(op.outputs[0].elements());
}

// The output's elements, for each input once: sums of all inputs.
inline double ElementsOfTerms(const OpDescription& op) {
  return static_cast<double>(op.inputs.size()) * OutputElements(op);
}

}  // namespace fuselite::kernels
