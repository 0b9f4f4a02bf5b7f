#include "partitioner/import/tensor_table.h"

#include <algorithm>

#include "fusion/graph/evaluate.h"
#include "kernels/evaluation.h"
#include "kernels/legacy_weights.h"
#include "runtime/tflite/builtin_codes.h"

namespace fuselite::partitioner {
namespace {

// Shapes, axes, sizes: at most a few elements per dimension.
constexpr int64_t kMaxComputedElements = 64;

// Aligned as the largest element, since constants that are not are copied before they are read.
alignas(16) constexpr std::byte kUnreadByte{};

bool IsInteger(const TensorInfo& info) {
  return info.type == DataType::kInt32 || info.type == DataType::kInt64;
}

// Whether the outputs are known already, and few enough to be computed while judging.
bool IsComputable(const kernels::OpDescription& op) {
  const auto small = [](const TensorInfo& info) {
    return info.elements() <= kMaxComputedElements && BitWidth(info.type) > 0;
  };
  if (!kernels::GivesConstants(*op.op) || op.inputs.empty()) return false;
  if (!std::ranges::all_of(op.outputs, small)) return false;
  if (kernels::ReadsShapesOnly(*op.op)) return true;
  return std::ranges::all_of(op.inputs, [&](const TensorInfo& input) {
    return input.absent() || (input.constant() && small(input));
  });
}

// The outputs as constants. Errors are those that values cause: an index out of range.
Result<std::vector<fusion::Value>> Compute(const kernels::OpDescription& op) {
  fusion::Graph graph;
  fusion::Node node;
  node.op = op.op;
  node.params = op.params;
  node.version = op.version;
  for (const TensorInfo& input : op.inputs) {
    fusion::Value value;
    value.info = input;
    // An operator that reads shapes only gets a constant nobody looks into.
    if (!input.constant()) value.info.data = &kUnreadByte;
    node.inputs.push_back(input.absent() ? fusion::kNone : graph.AddValue(std::move(value)));
  }
  for (const TensorInfo& output : op.outputs) {
    fusion::Value value;
    value.info = output;
    node.outputs.push_back(graph.AddValue(std::move(value)));
  }
  const fusion::NodeId id = graph.AddNode(std::move(node));
  return fusion::Evaluate(graph, id);
}

}  // namespace

Result<TensorInfo> TensorTable::Import(int tensor) const {
  if (const TensorInfo* known = constants_->Find(tensor)) return *known;
  const tflite::TfLiteTensor& host = context_->tensors[tensor];
  FUSELITE_ASSIGN_OR_RETURN(TensorInfo info, ImportHostTensor(*context_, tensor));
  if (host.sparsity == nullptr) {
    if (info.constant()) constants_->Set(tensor, info);
    return info;
  }
  PackedWeights& unpacked = unpacked_[tensor];
  if (unpacked == nullptr) {
    FUSELITE_ASSIGN_OR_RETURN(unpacked, UnpackSparse(host, info));
  }
  info.data = unpacked->data();
  return info;
}

void TensorTable::SetVariable(int tensor, TensorInfo info) {
  variables_.insert(tensor);
  Set(tensor, std::move(info));
}

void TensorTable::Set(int tensor, TensorInfo info, std::shared_ptr<const void> storage) {
  known_.Set(tensor, std::move(info));
  if (storage != nullptr) {
    storage_[tensor] = std::move(storage);
  } else {
    storage_.erase(tensor);
  }
}

std::shared_ptr<const void> TensorTable::StorageOf(int tensor) const {
  if (const auto own = storage_.find(tensor); own != storage_.end()) return own->second;
  if (known_.Find(tensor) != nullptr) return nullptr;
  const auto unpacked = unpacked_.find(tensor);
  return unpacked == unpacked_.end() ? nullptr : unpacked->second;
}

Result<TensorInfo> TensorTable::Get(int tensor) const {
  if (const TensorInfo* known = known_.Find(tensor)) return *known;
  const tflite::TfLiteTensor& host = context_->tensors[tensor];
  Result<TensorInfo> info = Import(tensor);
  if (!info.ok()) return info.status().In(TensorName(host, tensor));
  if (unknown_.contains(tensor) && info->shape.rank() == 0) {
    return DynamicShape(TensorName(host, tensor), " has a shape that is known only at run time");
  }
  return info;
}

Result<kernels::OpDescription> TensorTable::Describe(const ImportedNode& node) const {
  kernels::OpDescription op;
  op.op = node.op;
  op.params = node.params;
  op.version = node.version;
  op.intermediates = node.intermediates;
  op.inputs.reserve(node.inputs.size());
  op.outputs.reserve(node.outputs.size());
  Status unknown;  // the first of them
  for (int tensor : node.inputs) {
    op.inputs.emplace_back();
    if (tensor < 0) continue;
    Result<TensorInfo> info = Get(tensor);
    if (info.status().code() == StatusCode::kDynamicShape) {
      unknown = info.status();
      info = ImportHostTensor(*context_, tensor);
    }
    FUSELITE_ASSIGN_OR_RETURN(op.inputs.back(), std::move(info));
  }
  for (int tensor : node.outputs) {
    if (tensor < 0) return Unsupported("has an output left out");
    // Type and quantization; the shape is the rule's to give.
    Result<TensorInfo> info =
        IsVariable(tensor) ? Get(tensor) : ImportHostTensor(*context_, tensor);
    if (!info.ok()) return info.status().In(TensorName(context_->tensors[tensor], tensor));
    op.outputs.push_back(*std::move(info));
  }
  kernels::ReadLegacyWeights(op);
  if (unknown.ok()) return op;
  FUSELITE_RETURN_IF_ERROR(kernels::CheckSignature(op));
  return unknown;
}

Result<kernels::OpDescription> TensorTable::Infer(const ImportedNode& node) {
  FUSELITE_ASSIGN_OR_RETURN(kernels::OpDescription op, Describe(node));
  FUSELITE_RETURN_IF_ERROR(kernels::Infer(op));
  // What an assignment writes is not known before it runs.
  const bool assigns =
      std::ranges::any_of(node.outputs, [&](int tensor) { return IsVariable(tensor); });
  std::vector<fusion::Value> computed;
  if (!assigns && IsComputable(op)) {
    FUSELITE_ASSIGN_OR_RETURN(computed, Compute(op));
  }
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    TensorInfo output = op.outputs[i];
    std::shared_ptr<const void> storage;
    if (i < computed.size() && IsInteger(output)) {
      output.data = computed[i].info.data;
      storage = computed[i].storage;
    }
    Set(node.outputs[i], std::move(output), std::move(storage));
  }
  return op;
}

}  // namespace fuselite::partitioner
