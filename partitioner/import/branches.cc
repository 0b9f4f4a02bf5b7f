#include "partitioner/import/branches.h"

#include <cstring>

#include "partitioner/import/composites.h"
#include "runtime/tflite/arrays.h"
#include "runtime/tflite/params.h"

namespace fuselite::partitioner {
namespace {

using namespace tflite;

// Which of the branches runs, and with it the outputs' shapes, is never known before.
Status InferBranches(kernels::OpDescription& op) {
  const TensorInfo& selector = op.inputs[0];
  const DataType wanted =
      op.op->builtin_code == kTfLiteBuiltinIf ? DataType::kBool : DataType::kInt32;
  if (selector.type != wanted || selector.elements() != 1) {
    return InvalidArgument("what chooses is ", DataTypeName(selector.type), selector.shape,
                           ", not one ", DataTypeName(wanted));
  }
  return DynamicShape("which of its subgraphs runs is known at run time");
}

kernels::OperatorDef Definition(std::string_view name, int code) {
  kernels::OperatorDef def;
  def.name = name;
  def.builtin_code = code;
  def.max_inputs = def.max_outputs = -1;
  def.infer = InferBranches;
  return def;
}

const kernels::OperatorDef& BranchOperator(int code) {
  static const kernels::OperatorDef kIf = Definition("IF", kTfLiteBuiltinIf);
  static const kernels::OperatorDef kCase =
      Definition("STABLEHLO_CASE", kTfLiteBuiltinStablehloCase);
  return code == kTfLiteBuiltinIf ? kIf : kCase;
}

Result<std::vector<int>> SubgraphsOf(const TfLiteNode& node, int code) {
  if (node.builtin_data == nullptr) return InvalidArgument("has no options");
  if (code == kTfLiteBuiltinIf) {
    const auto& params = *static_cast<const TfLiteIfParams*>(node.builtin_data);
    return std::vector<int>{params.then_subgraph_index, params.else_subgraph_index};
  }
  const auto& params = *static_cast<const TfLiteStablehloCaseParams*>(node.builtin_data);
  if (params.num_branches < 1 || params.num_branches > kTfLiteStablehloCaseMaxBranches) {
    return InvalidArgument("has ", params.num_branches, " branches");
  }
  return std::vector<int>(params.branch_subgraph_indices,
                          params.branch_subgraph_indices + params.num_branches);
}

}  // namespace

Status ImportBranches(TfLiteContext* context, const TfLiteNode& node, int builtin_code,
                      bool whole_structs, Nesting& nesting, ImportedNode& imported) {
  const std::span<const int> inputs = Elements(node.inputs);
  if (inputs.empty() || inputs[0] < 0) return InvalidArgument("has nothing to choose by");
  imported.op = &BranchOperator(builtin_code);
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int> subgraphs, SubgraphsOf(node, builtin_code));
  for (const int subgraph : subgraphs) {
    const BodyEnds ends{static_cast<int>(inputs.size()) - 1, Elements(node.outputs)};
    FUSELITE_ASSIGN_OR_RETURN(
        imported.branches.emplace_back(),
        ReadBody(context, ends, subgraph, whole_structs, imported.host_node, nesting));
  }
  return Status();
}

int ChosenBranch(const ImportedNode& node, const void* selector) {
  if (node.op->builtin_code == kTfLiteBuiltinIf) {
    // A caller may write any byte; as a bool, one beyond 1 chooses a branch beyond the last.
    return *static_cast<const uint8_t*>(selector) != 0 ? 0 : 1;
  }
  int32_t index;
  std::memcpy(&index, selector, sizeof index);
  const int last = static_cast<int>(node.branches.size()) - 1;
  return index < 0 || index > last ? last : index;
}

ImportedNode BranchOf(const ImportedNode& node, int branch) {
  ImportedNode chosen;
  chosen.host_node = node.host_node;
  chosen.op = &DecomposedOperator();
  chosen.inputs.assign(node.inputs.begin() + 1, node.inputs.end());
  chosen.outputs = node.outputs;
  chosen.body = node.branches[branch];
  return chosen;
}

}  // namespace fuselite::partitioner
