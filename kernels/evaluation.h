// What may be known of an operation before it runs.
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

// Whether the outputs depend on the inputs' shapes alone: kernels do not look at values.
bool ReadsShapesOnly(const OperatorDef& op);

// Whether constant inputs make constant outputs, which may be computed once, ahead of the runs: not
// where there is state, nor where each run draws other numbers.
bool GivesConstants(const OperatorDef& op);

// The multiply-adds of one run, or the elements of the first output for operators that have none; 0
// for those that only rename bytes. `op` has its outputs' shapes.
double Cost(const OpDescription& op);

// The part of Infer() that needs no shapes: the version, how many operands there are, their types.
Status CheckSignature(const OpDescription& op);

}  // namespace fuselite::kernels
