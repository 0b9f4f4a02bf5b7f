// How new the host's structs are, which have no version field.
#pragma once

#include "runtime/tflite/abi.h"

namespace fuselite::partitioner {

// Whether the host's TfLiteContext reaches AcquireSubgraphContext, the last one to be added (2023):
// then the params structs have every field older than that, whatever version a model states for
// an operator. In an older host other members stand in that place, which are no functions of the
// object that the host's code is in.
bool HasSubgraphFunctions(const tflite::TfLiteContext* context);

}  // namespace fuselite::partitioner
