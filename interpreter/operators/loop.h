// WHILE: a condition and a body, two subgraphs, the one of which says whether the other runs again.
#pragma once

#include "interpreter/subgraph.h"
#include "runtime/support/status.h"

namespace fuselite::interpreter {

Status PrepareWhile(Subgraph& graph, const tflite::TfLiteNode& node);
Status InvokeWhile(Subgraph& graph, const tflite::TfLiteNode& node);

}  // namespace fuselite::interpreter
