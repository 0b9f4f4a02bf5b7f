// IF and STABLEHLO_CASE: nodes that run one of several subgraphs, as a value of the run says.
#pragma once

#include "partitioner/import/import.h"
#include "runtime/support/status.h"
#include "runtime/tflite/abi.h"

namespace fuselite::partitioner {

// Fills in the node's operator and the bodies of its branches; the reason why not, where the
// delegate does not compute one of them, or the host does not show the order of its ends. Inside
// the delegate's Prepare only; `whole_structs` and `nesting` as ImportNode's.
Status ImportBranches(tflite::TfLiteContext* context, const tflite::TfLiteNode& node,
                      int builtin_code, bool whole_structs, Nesting& nesting,
                      ImportedNode& imported);

// The branch that runs for a value of the node's first input, which was described by Infer().
int ChosenBranch(const ImportedNode& node, const void* selector);

// The node as a composite that is this branch alone.
ImportedNode BranchOf(const ImportedNode& node, int branch);

}  // namespace fuselite::partitioner
