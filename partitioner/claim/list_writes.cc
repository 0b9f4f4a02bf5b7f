#include "partitioner/claim/list_writes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "kernels/concatenation/concatenation.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/arrays.h"
#include "runtime/tflite/builtin_codes.h"

namespace fuselite::partitioner {
namespace {

using namespace tflite;

// A node as the operator wants it: files may have others, which wait for a run to be refused.
bool Is(const ImportedNode* node, int builtin_code, size_t least_inputs) {
  return node != nullptr && node->op != nullptr && node->op->builtin_code == builtin_code &&
         node->inputs.size() >= least_inputs && node->outputs.size() == 1;
}
bool IsSlice(const ImportedNode* node) { return Is(node, kTfLiteBuiltinSlice, 3); }

bool AreAll(std::span<const int64_t> values, int64_t value) {
  return std::ranges::count(values, value) == std::ssize(values);
}

// Recognizes writes among the nodes of a partition.
class Recognizer {
 public:
  Recognizer(const TfLiteContext& context, const Partition& partition) : context_(context) {
    for (const SharedNode& node : partition.nodes) {
      for (int tensor : node->outputs) makers_[tensor] = node.get();
    }
  }

  // The operands of the update that `node` is; nullopt where it is none.
  std::optional<std::vector<int>> UpdateOperands(const ImportedNode& node) const {
    if (!JoinsThree(node)) return std::nullopt;
    const ImportedNode *const head = MakerOf(node.inputs[0]), *const tail = MakerOf(node.inputs[2]);
    if (!IsSlice(head) || !IsSlice(tail)) return std::nullopt;
    const int list = head->inputs[0], element = node.inputs[1], end = head->inputs[2];
    if (tail->inputs[0] != list || !IsOneOf(list, element, node.outputs[0])) return std::nullopt;
    const auto index = Split(end), next = Split(tail->inputs[1]);
    const bool is_write = index && next && AreConstants(head->inputs[1], 0) &&
                          AreAll(index->others, -1) && AreAll(next->others, 0) &&
                          AreConstants(tail->inputs[2], -1) && Follows(next->first, index->first);
    if (!is_write) return std::nullopt;
    // Along dimensions that it fills, the element begins where the list does, whatever is said.
    return std::vector{list, element, end};
  }

 private:
  // A vector of a value that the run tells, and of constants.
  struct Vector {
    int first;
    std::vector<int64_t> others;
  };

  static bool JoinsThree(const ImportedNode& node) {
    if (!Is(&node, kTfLiteBuiltinConcatenation, 3) || node.inputs.size() != 3) return false;
    const auto& params = node.params.as<kernels::ConcatenationParams>();
    return params.axis == 0 && params.activation == kernels::Activation::kNone;
  }

  const ImportedNode* MakerOf(int tensor) const {
    const auto maker = makers_.find(tensor);
    return maker != makers_.end() ? maker->second : nullptr;
  }

  // The numbers of a constant; nullopt where the tensor is none.
  std::optional<std::vector<int64_t>> Constants(int tensor) const {
    const Result<TensorInfo> info = ImportHostTensor(context_, tensor);
    if (!info.ok()) return std::nullopt;
    auto values = kernels::ReadIntegers(*info, "a place", kernels::IntegerTypes::kInt32Or64);
    return values.ok() ? std::optional(*std::move(values)) : std::nullopt;
  }
  bool AreConstants(int tensor, int64_t value) const {
    const auto values = Constants(tensor);
    return values && AreAll(*values, value);
  }

  std::optional<Vector> Split(int tensor) const {
    const ImportedNode* const maker = MakerOf(tensor);
    const bool joins =
        Is(maker, kTfLiteBuiltinConcatenation, 1) || Is(maker, kTfLiteBuiltinPack, 1);
    Vector vector{Reshaped(joins ? maker->inputs[0] : tensor), {}};
    const Result<TensorInfo> first = ImportHostTensor(context_, vector.first);
    if (!first.ok() || first->shape.rank() != 0) return std::nullopt;
    for (size_t i = 1; joins && i < maker->inputs.size(); ++i) {
      const auto values = Constants(maker->inputs[i]);
      if (!values) return std::nullopt;
      vector.others.insert(vector.others.end(), values->begin(), values->end());
    }
    return vector;
  }

  // The tensor of whose elements this one is another shape.
  int Reshaped(int tensor) const {
    const ImportedNode* maker = MakerOf(tensor);
    while (Is(maker, kTfLiteBuiltinReshape, 1) || Is(maker, kTfLiteBuiltinExpandDims, 1)) {
      tensor = maker->inputs[0];
      maker = MakerOf(tensor);
    }
    return tensor;
  }

  // Whether `next` is `index` + 1.
  bool Follows(int next, int index) const {
    const ImportedNode* const maker = MakerOf(next);
    if (!Is(maker, kTfLiteBuiltinAdd, 2) ||
        maker->params.as<kernels::ArithmeticParams>().activation != kernels::Activation::kNone) {
      return false;
    }
    const bool is_first = maker->inputs[0] == index;
    return (is_first || maker->inputs[1] == index) &&
           AreConstants(maker->inputs[is_first ? 1 : 0], 1);
  }

  // Whether `element` is one of the list's, and `result` such a list.
  bool IsOneOf(int list, int element, int result) const {
    const auto whole = ImportHostTensor(context_, list), one = ImportHostTensor(context_, element),
               written = ImportHostTensor(context_, result);
    if (!whole.ok() || !one.ok() || !written.ok()) return false;
    const int rank = whole->shape.rank();
    if (rank == 0 || one->shape.rank() != rank || one->shape[0] != 1) return false;
    const std::span<const int> signature = Elements(context_.tensors[element].dims_signature);
    if (!signature.empty() && signature[0] < 0) return false;
    for (int d = 1; d < rank; ++d) {
      if (one->shape[d] != whole->shape[d]) return false;
    }
    const auto is_alike = [&](const TensorInfo& info) {
      return info.type == whole->type && info.quantization == whole->quantization;
    };
    return is_alike(*one) && is_alike(*written);
  }

  const TfLiteContext& context_;
  std::map<int, const ImportedNode*> makers_;
};

void LeaveOutUnreadSlices(Partition& partition) {
  std::set<int> read(partition.outputs.begin(), partition.outputs.end());
  for (const SharedNode& node : partition.nodes) {
    read.insert(node->inputs.begin(), node->inputs.end());
  }
  for (SharedNode& node : partition.nodes) {
    if (!IsSlice(node.get()) || read.contains(node->outputs[0])) continue;
    ImportedNode nothing;
    nothing.host_node = node->host_node;
    node = std::make_shared<const ImportedNode>(std::move(nothing));
  }
}

}  // namespace

void TakeListWrites(const TfLiteContext& context, Partition& partition) {
  const auto slices = [](const SharedNode& node) { return IsSlice(node.get()); };
  if (std::ranges::count_if(partition.nodes, slices) < 2) return;
  const Recognizer recognizer(context, partition);
  std::map<size_t, ImportedNode> updates;
  for (size_t i = 0; i < partition.nodes.size(); ++i) {
    const ImportedNode& node = *partition.nodes[i];
    auto operands = recognizer.UpdateOperands(node);
    if (!operands) continue;
    ImportedNode& update = updates[i];
    update.host_node = node.host_node;
    update.op = kernels::FindOperator(kTfLiteBuiltinDynamicUpdateSlice);
    update.inputs = *std::move(operands);
    update.outputs = node.outputs;
  }
  for (auto& [i, update] : updates) {
    partition.nodes[i] = std::make_shared<const ImportedNode>(std::move(update));
  }
  if (!updates.empty()) LeaveOutUnreadSlices(partition);
}

}  // namespace fuselite::partitioner
