// Operators of this room as functions of a subgraph and a node.
#pragma once

#include <utility>

#include "interpreter/subgraph.h"
#include "runtime/support/caught.h"
#include "runtime/tflite/abi.h"

namespace fuselite::interpreter {

using NodeFunction = Status (*)(Subgraph&, const tflite::TfLiteNode&);

template <NodeFunction kFunction>
tflite::TfLiteStatus CallNode(tflite::TfLiteContext* context, tflite::TfLiteNode* node) {
  Subgraph& graph = Subgraph::From(context);
  Status status = Guarded("its kernel", [&] { return kFunction(graph, *node); });
  return status.ok() ? tflite::kTfLiteOk : graph.Fail(std::move(status));
}

template <NodeFunction kPrepare, NodeFunction kInvoke>
tflite::TfLiteRegistration Registration() {
  tflite::TfLiteRegistration registration{};
  registration.prepare = CallNode<kPrepare>;
  registration.invoke = CallNode<kInvoke>;
  return registration;
}

}  // namespace fuselite::interpreter
