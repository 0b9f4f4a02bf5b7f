#include "partitioner/import/import.h"

#include <algorithm>
#include <optional>

#include "kernels/import.h"
#include "kernels/sparse.h"
#include "kernels/stablehlo/region.h"
#include "partitioner/import/branches.h"
#include "partitioner/import/builtin_names.h"
#include "partitioner/import/composites.h"
#include "partitioner/import/host_call.h"
#include "partitioner/import/subgraphs.h"
#include "runtime/tflite/arrays.h"

namespace fuselite::partitioner {
namespace {

using namespace tflite;

// Younger than what HasSubgraphFunctions() tells.
constexpr std::string_view kYoungestField = "quantized_bias_type";

// LiteRT reads every field of its structs, whatever the version; files that state a smaller one
// than their options need exist. So does this, where the host is known to have the field.
Status ImportAllParams(bool whole_structs, const void* builtin_data, ImportedNode& node) {
  for (const kernels::Field& field : node.op->fields) {
    const bool there = whole_structs && field.name != kYoungestField;
    const int version = there ? std::max<int>(node.version, field.since_version) : node.version;
    FUSELITE_RETURN_IF_ERROR(
        kernels::ImportParams(std::span(&field, 1), builtin_data, version, node.params.data()));
  }
  return Status();
}

const kernels::OperatorDef* FindOperator(const TfLiteRegistration& registration) {
  if (registration.builtin_code != kTfLiteBuiltinCustom) {
    return kernels::FindOperator(registration.builtin_code);
  }
  return registration.custom_name == nullptr
             ? nullptr
             : kernels::FindCustomOperator(registration.custom_name);
}

// TensorFlow's own operators, which converters leave where TFLite has none, have a prefix.
const char* WhyMissing(const TfLiteRegistration& registration) {
  const char* const name = registration.custom_name;
  const bool tensorflows = registration.builtin_code == kTfLiteBuiltinCustom && name != nullptr &&
                           std::string_view(name).starts_with("Flex");
  return tensorflows ? "TensorFlow's operator is not implemented; the host needs its Flex delegate"
                     : "the operator is not implemented";
}

Status ImportCustomOptions(const TfLiteNode& node, ImportedNode& imported) {
  if (node.custom_initial_data == nullptr || node.custom_initial_data_size < 0) {
    return InvalidArgument("has no options");
  }
  const std::span options(static_cast<const std::byte*>(node.custom_initial_data),
                          static_cast<size_t>(node.custom_initial_data_size));
  return imported.op->read_custom(options, imported.params.data());
}

// Which function the one operator of another subgraph is.
Status ImportRegion(TfLiteContext* context, bool whole_structs, ImportedNode& imported) {
  const std::optional<int> region = kernels::RegionOf(*imported.op, imported.params);
  if (!region) return Status();
  if (!whole_structs) return Unsupported("the host does not show its subgraphs");
  FUSELITE_ASSIGN_OR_RETURN(const HostSubgraph callee, HostSubgraph::Acquire(context, *region));
  if (callee.graph() == context) return InvalidArgument("it runs its own subgraph");
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int> codes, callee.BuiltinCodes());
  return kernels::ReadRegion(*imported.op, codes, imported.params);
}

Status ImportOperator(TfLiteContext* context, const TfLiteNode& node,
                      const TfLiteRegistration& registration, bool whole_structs, Nesting& nesting,
                      ImportedNode& imported) {
  if (registration.builtin_code == kTfLiteBuiltinStablehloComposite) {
    return ImportComposite(context, node, whole_structs, nesting, imported);
  }
  const int code = registration.builtin_code;
  if (code == kTfLiteBuiltinWhile) {
    return ImportHostCall(*context, node, registration, whole_structs, imported);
  }
  if (code == kTfLiteBuiltinIf || code == kTfLiteBuiltinStablehloCase) {
    Status inlined = ImportBranches(context, node, code, whole_structs, nesting, imported);
    if (inlined.ok() || code != kTfLiteBuiltinIf) return inlined;
    imported.branches.clear();
    return ImportHostCall(*context, node, registration, whole_structs, imported);
  }
  imported.op = FindOperator(registration);
  if (imported.op == nullptr) return Unsupported(WhyMissing(registration));
  if (imported.op->candidates.empty()) {
    return Unsupported(
        "its state or its strings are the host's; it runs in fuselite's own interpreter, too");
  }
  imported.version = registration.version;
  if (imported.op->custom()) return ImportCustomOptions(node, imported);
  FUSELITE_RETURN_IF_ERROR(ImportAllParams(whole_structs, node.builtin_data, imported));
  return ImportRegion(context, whole_structs, imported);
}

}  // namespace

Result<TensorInfo> ImportHostTensor(const TfLiteContext& context, int tensor) {
  if (tensor < 0 || tensor >= static_cast<int>(context.tensors_size)) {
    return InvalidArgument("tensor ", tensor, " does not exist");
  }
  FUSELITE_ASSIGN_OR_RETURN(TensorInfo info, kernels::ImportTensor(context, context.tensors[tensor],
                                                                   kernels::Constants::kOfModel));
  if (BitWidth(info.type) == 0) return Unsupported("is of type ", DataTypeName(info.type));
  return info;
}

Status NestingLevel::Admit(const TfLiteContext* caller, const TfLiteContext* callee, size_t nodes) {
  if (callee == caller) return InvalidArgument("it runs its own subgraph");
  if (nesting_.depth < 0) return Unsupported("its subgraphs are nested too deep");
  nesting_.nodes -= static_cast<int>(nodes);
  if (nesting_.nodes >= 0) return Status();
  return Unsupported("its subgraphs have more than ", Nesting().nodes, " nodes");
}

Result<PackedWeights> UnpackSparse(const TfLiteTensor& tensor, const TensorInfo& info) {
  const TfLiteSparsity& from = *tensor.sparsity;
  const auto copy = [](const TfLiteIntArray* array) {
    const std::span<const int> elements = Elements(array);
    return std::vector<int32_t>(elements.begin(), elements.end());
  };
  kernels::SparseLayout layout{copy(from.traversal_order), copy(from.block_map)};
  for (int i = 0; i < from.dim_metadata_size; ++i) {
    const TfLiteDimensionMetadata& level = from.dim_metadata[i];
    layout.levels.push_back({level.format != kTfLiteDimDense, level.dense_size,
                             copy(level.array_segments), copy(level.array_indices)});
  }
  if (tensor.allocation_type != kTfLiteMmapRo) return Unsupported("is sparse, but no constant");
  const std::span stored(static_cast<const std::byte*>(tensor.data.data), tensor.bytes);
  return kernels::Unpack(layout, info, stored, ProcessPackedStore());
}

std::string NodeName(const TfLiteRegistration& registration) {
  if (registration.builtin_code != kTfLiteBuiltinCustom) {
    return BuiltinName(registration.builtin_code);
  }
  const char* name = registration.custom_name;
  return CustomName(name != nullptr ? name : "without a name");
}

std::string TensorName(const TfLiteTensor& tensor, int index) {
  const std::string number = "tensor " + std::to_string(index);
  return tensor.name != nullptr && *tensor.name != '\0' ? number + " '" + tensor.name + "'"
                                                        : number;
}

std::string CustomName(std::string_view name) { return "custom operator " + std::string(name); }

Result<ImportedNode> ImportNode(TfLiteContext* context, int node_index, bool whole_structs,
                                Nesting* nesting) {
  TfLiteNode* node = nullptr;
  TfLiteRegistration* registration = nullptr;
  if (context->GetNodeAndRegistration(context, node_index, &node, &registration) != kTfLiteOk ||
      node == nullptr || registration == nullptr) {
    return Unsupported("the host does not show the node");
  }
  if (node->delegate != nullptr) return Unsupported("another delegate has taken it");
  ImportedNode imported;
  imported.host_node = node_index;
  Nesting own;
  FUSELITE_RETURN_IF_ERROR(ImportOperator(context, *node, *registration, whole_structs,
                                          nesting != nullptr ? *nesting : own, imported));
  const auto copy_tensors = [&](const TfLiteIntArray* from, std::vector<int>& to) {
    const std::span<const int> tensors = Elements(from);
    to.reserve(tensors.size());
    for (int tensor : tensors) {
      if (tensor >= static_cast<int>(context->tensors_size)) return false;
      to.push_back(tensor < 0 ? -1 : tensor);
    }
    return true;
  };
  if (!copy_tensors(node->inputs, imported.inputs) ||
      !copy_tensors(node->outputs, imported.outputs)) {
    return InvalidArgument("names a tensor that the graph does not have");
  }
  std::vector<int> intermediates;
  if (!copy_tensors(node->intermediates, intermediates)) {
    return InvalidArgument("names an intermediate tensor that the graph does not have");
  }
  kernels::TakeForm(imported.inputs, imported.params, *context, &imported.op);
  FUSELITE_RETURN_IF_ERROR(kernels::TakeBlockScales(*context, &imported.op, &imported.inputs));
  FUSELITE_ASSIGN_OR_RETURN(imported.intermediates,
                            kernels::ImportIntermediates(*context, intermediates));
  FUSELITE_RETURN_IF_ERROR(kernels::CheckState(*imported.op, imported.inputs, *context));
  return imported;
}

}  // namespace fuselite::partitioner
