// Slices of a known shape that begin where a value of the run says.
#pragma once

#include "kernels/movement/movement.h"

namespace fuselite::kernels {

// Whether all operands but the first are constants.
bool BeginsAreKnown(const OpDescription& op);

// A kernel that plans the movement at each run, from the operands that it then has: a microsecond,
// for loops that take one row of a sequence after the other. Its shape is known without them, its
// errors are `plan`'s. Refuses tails and packed integers.
Result<std::unique_ptr<Kernel>> MakeLateMovement(const OpDescription& op, PlanMovement plan);

// The candidates of an operator whose begin may be a value of the run.
template <PlanMovement plan>
Result<std::unique_ptr<Kernel>> BuildKnownSlice(const OpDescription& op,
                                                const BuildContext& context) {
  if (!BeginsAreKnown(op)) return Unsupported("it begins where a value of the run says");
  return BuildVectorMovement<plan>(op, context);
}
template <PlanMovement plan>
Result<std::unique_ptr<Kernel>> BuildSlice(const OpDescription& op, const BuildContext& context) {
  return BeginsAreKnown(op) ? BuildMovement<plan>(op, context) : MakeLateMovement(op, plan);
}
template <PlanMovement plan>
inline constexpr Candidate kSliceCandidates[] = {{"highway", BuildKnownSlice<plan>},
                                                 {"reference", BuildSlice<plan>}};

}  // namespace fuselite::kernels
