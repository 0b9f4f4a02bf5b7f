// Delegates: what they replace, taking them off, and putting them on again after a change of
// shapes.

#include <algorithm>
#include <cstdlib>

#include "interpreter/host_memory.h"
#include "interpreter/subgraph.h"
#include "runtime/support/printable.h"

namespace fuselite::interpreter {
namespace {

using tflite::Elements;
using tflite::TfLiteDelegate;

bool TakesDynamicTensors(const TfLiteDelegate& delegate) {
  return (delegate.flags & tflite::kTfLiteDelegateFlagsAllowDynamicTensors) != 0;
}

// One block: the struct and its arrays behind it, so that free() releases all. Kernels get it in
// `init`.
tflite::TfLiteDelegateParams* MakeDelegateParams(const NodeSubset& subset,
                                                 TfLiteDelegate* delegate) {
  const auto array_bytes = [](const std::vector<int>& values) {
    return sizeof(tflite::TfLiteIntArray) + values.size() * sizeof(int);
  };
  const size_t bytes = sizeof(tflite::TfLiteDelegateParams) + array_bytes(subset.nodes) +
                       array_bytes(subset.inputs) + array_bytes(subset.outputs);
  auto* const memory = static_cast<std::byte*>(AllocateZeros(bytes));
  auto* params = new (memory) tflite::TfLiteDelegateParams{};
  std::byte* next = memory + sizeof *params;
  const auto add = [&](const std::vector<int>& values) {
    auto* array = reinterpret_cast<tflite::TfLiteIntArray*>(next);
    array->size = static_cast<int>(values.size());
    std::ranges::copy(values, array->data);
    next += array_bytes(values);
    return array;
  };
  params->delegate = delegate;
  params->nodes_to_replace = add(subset.nodes);
  params->input_tensors = add(subset.inputs);
  params->output_tensors = add(subset.outputs);
  return params;
}

}  // namespace

std::vector<NodeSubset> Subgraph::Partition(std::span<const int> nodes) const {
  std::vector<bool> claimed(nodes_.size(), false);
  for (int index : nodes) claimed[index] = true;
  std::vector<PlanNode> plan;
  for (int index : plan_) {
    const tflite::TfLiteNode& node = nodes_[index]->node;
    plan.push_back({index, Elements(node.inputs), Elements(node.outputs), claimed[index],
                    node.might_have_side_effect});
  }
  return PartitionPlan(plan, tensor_count(), model_.outputs, host_.cluster_partitions);
}

void Subgraph::ReplaceNodes(const tflite::TfLiteRegistration& registration,
                            std::span<const int> nodes, TfLiteDelegate* delegate) {
  const std::vector<NodeSubset> subsets = Partition(nodes);
  plan_.clear();
  for (const NodeSubset& subset : subsets) {
    if (!subset.claimed) {
      plan_.insert(plan_.end(), subset.nodes.begin(), subset.nodes.end());
      continue;
    }
    auto node = std::make_unique<Node>();
    const char* name = registration.custom_name;
    node->name = "delegate " + Printable(name ? name : "without a name");
    node->registration = registration;
    node->registration.builtin_code = tflite::kTfLiteBuiltinDelegate;
    node->node.inputs = NewIntArray(subset.inputs);
    node->node.outputs = NewIntArray(subset.outputs);
    node->node.intermediates = NewIntArray({});
    node->node.temporaries = NewIntArray({});
    node->node.builtin_data = MakeDelegateParams(subset, delegate);
    node->node.delegate = delegate;
    for (int output : subset.outputs) tensors_[output].delegate = delegate;
    plan_.push_back(AddNode(std::move(node)));
  }
}

Status Subgraph::RunDelegatePrepare(TfLiteDelegate* delegate) {
  ReserveTensors();
  SetDelegateFunctions(true);
  const tflite::TfLiteStatus code = delegate->Prepare(&context_, delegate);
  SetDelegateFunctions(false);
  ClearPreview();
  return StatusOf(code, "the delegate's Prepare");
}

Status Subgraph::ApplyDelegate(TfLiteDelegate* delegate) {
  if (delegate == nullptr || delegate->Prepare == nullptr) {
    return InvalidArgument("a delegate without a Prepare function");
  }
  FUSELITE_RETURN_IF_ERROR(RedoDelegates());
  const bool was_ready = state_ == State::kReady;
  const bool is_static = !TakesDynamicTensors(*delegate);
  if (is_static) {
    // Such a delegate sees final shapes, and no graph that has none.
    FUSELITE_RETURN_IF_ERROR(AllocateTensors());
    if (has_dynamic_tensors_) {
      return Unsupported("the delegate takes static shapes only, and a tensor's shape is dynamic");
    }
  }
  if (delegates_.empty()) original_plan_ = plan_;
  delegates_.push_back(delegate);
  Status status = RunDelegatePrepare(delegate);
  state_ = State::kUnprepared;
  if (status.ok() && (is_static || was_ready)) status = AllocateTensors();
  if (!status.ok()) {
    RemoveDelegates();
    if (was_ready) FUSELITE_RETURN_IF_ERROR(AllocateTensors());
    return status.In("the model runs without its delegates");
  }
  delegates_are_static_ |= is_static;
  return Status();
}

void Subgraph::UndoDelegates() {
  if (delegates_.empty()) return;
  ForgetMemory();
  plan_ = original_plan_;
  while (nodes_.size() > original_nodes_) nodes_.pop_back();
  for (tflite::TfLiteTensor& tensor : tensors_) {
    if (tensor.delegate == nullptr) continue;
    if (tensor.buffer_handle != tflite::kTfLiteNullBufferHandle &&
        tensor.delegate->FreeBufferHandle != nullptr) {
      tensor.delegate->FreeBufferHandle(&context_, tensor.delegate, &tensor.buffer_handle);
    }
    tensor.buffer_handle = tflite::kTfLiteNullBufferHandle;
    tensor.data_is_stale = false;
    tensor.delegate = nullptr;
  }
  delegates_undone_ = true;
  state_ = State::kUnprepared;
}

Status Subgraph::RedoDelegates() {
  if (!delegates_undone_) return Status();
  delegates_undone_ = false;
  const std::vector<TfLiteDelegate*> delegates = std::exchange(delegates_, {});
  delegates_are_static_ = false;
  for (TfLiteDelegate* delegate : delegates) FUSELITE_RETURN_IF_ERROR(ApplyDelegate(delegate));
  return Status();
}

void Subgraph::RemoveDelegates() {
  UndoDelegates();
  delegates_.clear();
  delegates_undone_ = false;
  delegates_are_static_ = false;
}

void Subgraph::ClearPreview() {
  for (tflite::TfLiteDelegateParams& params : preview_) {
    std::free(params.nodes_to_replace);
    std::free(params.input_tensors);
    std::free(params.output_tensors);
  }
  preview_.clear();
}

}  // namespace fuselite::interpreter
