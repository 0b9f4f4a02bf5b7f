#include "partitioner/import.h"

#include <algorithm>

#include "kernels/custom.h"
#include "kernels/sparse.h"
#include "partitioner/builtin_names.h"
#include "partitioner/host_age.h"
#include "runtime/tflite_arrays.h"

namespace fuselite::partitioner {
namespace {

using namespace tflite;

// Points to something for constants without elements, whose pointer may be null in the host.
constexpr std::byte kNoBytes{};

Status ImportAffine(const TfLiteAffineQuantization& from, const Shape& shape, Quantization& to) {
  const std::span<const float> scales = Elements(from.scale);
  const std::span<const int> zero_points = Elements(from.zero_point);
  if (scales.empty()) return Status();
  if (zero_points.size() > 1 && zero_points.size() != scales.size()) {
    return InvalidArgument("has ", scales.size(), " scales and ", zero_points.size(),
                           " zero points");
  }
  if (scales.size() > 1) {
    const int axis = from.quantized_dimension;
    if (axis < 0 || axis >= shape.rank() || shape[axis] != static_cast<int32_t>(scales.size())) {
      return InvalidArgument("has ", scales.size(), " scales along dimension ", axis, " of ",
                             shape);
    }
    to.axis = axis;
  }
  to.scales.assign(scales.begin(), scales.end());
  to.zero_points.assign(scales.size(), zero_points.empty() ? 0 : zero_points[0]);
  if (zero_points.size() > 1) to.zero_points.assign(zero_points.begin(), zero_points.end());
  return Status();
}

Status ImportQuantization(const TfLiteTensor& tensor, const Shape& shape, Quantization& to) {
  switch (tensor.quantization.type) {
    case kTfLiteAffineQuantization:
      if (tensor.quantization.params == nullptr) return Status();
      return ImportAffine(*static_cast<const TfLiteAffineQuantization*>(tensor.quantization.params),
                          shape, to);
    case kTfLiteNoQuantization:
      // Hosts that keep the per-tensor form only.
      if (tensor.params.scale != 0) {
        to.scales = {tensor.params.scale};
        to.zero_points = {tensor.params.zero_point};
      }
      return Status();
    case kTfLiteBlockwiseQuantization: return Unsupported("is quantized in blocks");
    default:
      return Unsupported("has a quantization of unknown kind ",
                         static_cast<int>(tensor.quantization.type));
  }
}

Status ImportType(const TfLiteTensor& tensor, DataType& type) {
  if (!IsKnownDataType(tensor.type)) {
    return Unsupported("is of unknown type ", static_cast<int>(tensor.type));
  }
  type = static_cast<DataType>(tensor.type);
  if (BitWidth(type) == 0) return Unsupported("is of type ", DataTypeName(type));
  return Status();
}

// Younger than what HasSubgraphFunctions() tells.
constexpr std::string_view kYoungestField = "quantized_bias_type";

// LiteRT reads every field of its structs, whatever the version; files that state a smaller one
// than their options need exist. So does this, where the host is known to have the field.
Status ImportAllParams(const TfLiteContext* context, const void* builtin_data, ImportedNode& node) {
  const bool whole_structs = HasSubgraphFunctions(context);
  for (const kernels::Field& field : node.op->fields) {
    const bool there = whole_structs && field.name != kYoungestField;
    const int version = there ? std::max<int>(node.version, field.since_version) : node.version;
    FUSELITE_RETURN_IF_ERROR(
        kernels::ImportParams(std::span(&field, 1), builtin_data, version, node.params.data()));
  }
  return Status();
}

const kernels::CustomOperator* FindCustom(const TfLiteRegistration& registration) {
  const char* name = registration.custom_name;
  if (registration.builtin_code != kTfLiteBuiltinCustom || name == nullptr) return nullptr;
  return kernels::FindCustomOperator(name);
}

const kernels::OperatorDef* FindBuiltin(const TfLiteRegistration& registration) {
  return registration.builtin_code == kTfLiteBuiltinCustom
             ? nullptr
             : kernels::FindOperator(registration.builtin_code);
}

Status ImportCustomOptions(const TfLiteNode& node, const kernels::CustomOperator& custom,
                           ImportedNode& imported) {
  if (node.custom_initial_data == nullptr || node.custom_initial_data_size < 0) {
    return InvalidArgument("has no options");
  }
  const std::span options(static_cast<const std::byte*>(node.custom_initial_data),
                          static_cast<size_t>(node.custom_initial_data_size));
  return custom.read_options(options, imported.params.data());
}

// Kernels write these in place; anything but a variable is not theirs to write.
Status CheckState(const TfLiteContext* context, const ImportedNode& node) {
  for (int i : node.op->state_inputs) {
    const int tensor = i < static_cast<int>(node.inputs.size()) ? node.inputs[i] : -1;
    if (tensor >= 0 && context->tensors[tensor].is_variable) continue;
    return Unsupported("input ", i, " must be a variable tensor");
  }
  return Status();
}

}  // namespace

Result<TensorInfo> ImportTensor(const TfLiteTensor& tensor) {
  TensorInfo info;
  FUSELITE_RETURN_IF_ERROR(ImportType(tensor, info.type));
  const std::span<const int> dims = Elements(tensor.dims);
  const std::optional<Shape> shape = Shape::FromDims(dims);
  if (!shape) {
    return Unsupported("has ", dims.size(),
                       " dimensions that are negative, too large, or more than ", Shape::kMaxRank);
  }
  info.shape = *shape;
  FUSELITE_RETURN_IF_ERROR(ImportQuantization(tensor, info.shape, info.quantization));
  if (tensor.allocation_type == kTfLiteMmapRo && tensor.sparsity == nullptr) {
    if (tensor.bytes < info.bytes()) {
      return InvalidArgument("has ", tensor.bytes, " bytes of ", info.bytes());
    }
    info.data = tensor.data.data != nullptr || info.bytes() > 0 ? tensor.data.data : &kNoBytes;
  }
  return info;
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

std::string CustomName(std::string_view name) { return "custom operator " + std::string(name); }

Result<ImportedNode> ImportNode(TfLiteContext* context, int node_index) {
  TfLiteNode* node = nullptr;
  TfLiteRegistration* registration = nullptr;
  if (context->GetNodeAndRegistration(context, node_index, &node, &registration) != kTfLiteOk ||
      node == nullptr || registration == nullptr) {
    return Unsupported("the host does not show the node");
  }
  if (node->delegate != nullptr) return Unsupported("another delegate has taken it");
  ImportedNode imported;
  imported.host_node = node_index;
  const kernels::CustomOperator* const custom = FindCustom(*registration);
  imported.op = custom != nullptr ? custom->op : FindBuiltin(*registration);
  if (imported.op == nullptr) return Unsupported("the operator is not implemented");
  imported.version = registration->version;
  FUSELITE_RETURN_IF_ERROR(custom != nullptr
                               ? ImportCustomOptions(*node, *custom, imported)
                               : ImportAllParams(context, node->builtin_data, imported));
  const auto copy_tensors = [&](const TfLiteIntArray* from, std::vector<int>& to) {
    for (int tensor : Elements(from)) {
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
  for (int tensor : intermediates) {
    Quantization& quantization = imported.intermediates.emplace_back();
    if (tensor < 0) continue;
    FUSELITE_ASSIGN_OR_RETURN(TensorInfo info, ImportTensor(context->tensors[tensor]));
    quantization = std::move(info.quantization);
  }
  FUSELITE_RETURN_IF_ERROR(CheckState(context, imported));
  return imported;
}

}  // namespace fuselite::partitioner
