#include <chrono>

#include "interpreter/operator_calls.h"
#include "interpreter/subgraph.h"
#include "runtime/support/printable.h"

namespace fuselite::interpreter {
namespace {

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Status Subgraph::Invoke() {
  if (state_ != State::kReady) {
    return InvalidArgument("tensors are not allocated: allocate them before you invoke");
  }
  prepared_ = segments_.front().end;
  for (size_t position = 0; position < plan_.size(); ++position) {
    FUSELITE_RETURN_IF_ERROR(CheckCancelled());
    FUSELITE_RETURN_IF_ERROR(EnsurePrepared(position));
    FUSELITE_RETURN_IF_ERROR(InvokeNode(*nodes_[plan_[position]]));
  }
  for (int output : model_.outputs) {
    FUSELITE_RETURN_IF_ERROR(FetchFromDelegate(tensors_[output], nullptr));
  }
  return Status();
}

Status Subgraph::CheckCancelled() const {
  if (!host_.cancelled.load(std::memory_order_relaxed)) return Status();
  return Status(StatusCode::kCancelled, "the invoke was cancelled");
}

Status Subgraph::FetchFromDelegate(tflite::TfLiteTensor& tensor, const Node* reader) {
  if (!tensor.data_is_stale || tensor.delegate == nullptr) return Status();
  const std::string where =
      reader != nullptr ? Where(*reader) : "reading an output back from its delegate";
  auto* const copy = tensor.delegate->CopyFromBufferHandle;
  if (copy == nullptr) return Unsupported(where, ": the delegate gives its values to nobody");
  FUSELITE_RETURN_IF_ERROR(
      StatusOf(copy(&context_, tensor.delegate, tensor.buffer_handle, &tensor), where));
  tensor.data_is_stale = false;
  return Status();
}

// Fetches what another delegate keeps in memory of its own; a node must not meet a tensor without
// memory.
Status Subgraph::CheckInputs(const Node& node) {
  for (int input : tflite::Elements(node.node.inputs)) {
    if (input < 0) continue;
    tflite::TfLiteTensor& tensor = tensors_[input];
    if (tensor.delegate != node.node.delegate) {
      FUSELITE_RETURN_IF_ERROR(FetchFromDelegate(tensor, &node));
    }
    if (tensor.data.raw == nullptr && tensor.bytes > 0) {
      return InvalidArgument(Where(node), ": its input tensor ", input, " \"",
                             Printable(tensor.name ? tensor.name : ""), "\" has no memory");
    }
  }
  return Status();
}

Status Subgraph::InvokeNode(Node& node) {
  FUSELITE_RETURN_IF_ERROR(CheckInputs(node));
  if (!HasInvoke(node.registration)) {
    return Unsupported(Where(node), ": has no functions that the interpreter can call");
  }
  const bool recording = host_.events && host_.events->size() < SubgraphHost::kMaxEvents;
  const int64_t start = recording ? Now() : 0;
  FUSELITE_RETURN_IF_ERROR(StatusOf(CallInvoke(node.registration, &context_, &node.node), node));
  if (recording) {
    host_.events->push_back({index_, node.index, node.name, start, Now() - start});
  }
  return Status();
}

}  // namespace fuselite::interpreter
