#include <algorithm>
#include <optional>

#include "interpreter/file/loader_internal.h"
#include "interpreter/file/options.h"
#include "kernels/stablehlo/region.h"
#include "runtime/support/is_index.h"
#include "runtime/tflite/abi.h"

namespace fuselite::interpreter::loader {

Status ReadIndices(std::string_view what, const flatbuffers::Vector<int32_t>* from,
                   size_t tensor_count, bool optional, std::vector<int>& to) {
  if (from == nullptr) return Status();
  to.reserve(from->size());
  for (uint32_t i = 0; i < from->size(); ++i) {
    const int index = from->Get(i);
    const bool left_out = optional && index == -1;
    if (!left_out && !IsIndex(index, tensor_count)) {
      return InvalidArgument(what, " ", i, " is tensor ", index, ", of ", tensor_count);
    }
    to.push_back(index);
  }
  return Status();
}

namespace {

Status ReadCode(const schema::Model& model, const schema::Operator& op, ModelOperator& out) {
  const auto* codes = model.operator_codes();
  const uint32_t count = codes ? codes->size() : 0;
  if (op.opcode_index() >= count) {
    return InvalidArgument("its operator code is ", op.opcode_index(), ", of ", count);
  }
  const schema::OperatorCode& code = *codes->Get(op.opcode_index());
  // Old files have the one-byte field alone, new ones write 127 there for larger codes.
  out.builtin_code =
      std::max<int>(code.deprecated_builtin_code(), static_cast<int>(code.builtin_code()));
  out.version = code.version();
  if (out.builtin_code < 0) return InvalidArgument("operator code ", out.builtin_code);
  if (out.version < 1) return InvalidArgument("operator version ", out.version);
  if (out.builtin_code == tflite::kTfLiteBuiltinCustom) {
    if (code.custom_code() == nullptr) return InvalidArgument("a custom operator without a name");
    out.custom_name = code.custom_code()->str();
  } else {
    out.def = kernels::FindOperator(out.builtin_code);
  }
  return Status();
}

Status ReadParams(const schema::Operator& op, ModelOperator& out) {
  if (out.def == nullptr) return Status();
  const bool second = out.def->options_type >= kernels::kSecondUnion;
  const void* options = second ? op.builtin_options_2() : op.builtin_options();
  const int tag = second ? kernels::kSecondUnion + static_cast<int>(op.builtin_options_2_type())
                         : static_cast<int>(op.builtin_options_type());
  const bool none = tag % kernels::kSecondUnion == 0 || options == nullptr;
  // What an operator without fields carries does not matter.
  if (!none && tag != out.def->options_type && !out.def->fields.empty()) {
    return InvalidArgument("its options are of kind ", tag, ", expected ", out.def->options_type);
  }
  const auto* table = none ? nullptr : static_cast<const flatbuffers::Table*>(options);
  return ReadOptions(out.def->fields, table, out.params.data());
}

Status ReadCustomOptions(const Source& source, const schema::Operator& op, ModelOperator& out) {
  if (op.large_custom_options_offset() > 1) {
    const uint64_t offset = op.large_custom_options_offset();
    const uint64_t size = op.large_custom_options_size();
    if (offset > source.bytes.size() || size > source.bytes.size() - offset) {
      return InvalidArgument("its options lie past the end of the file");
    }
    // The C interface counts them in an int.
    if (size > INT32_MAX)
      return InvalidArgument("its options are ", size, " bytes, of 2 GiB at most");
    out.custom_options = source.bytes.subspan(offset, size);
  } else if (op.custom_options() != nullptr) {
    out.custom_options =
        std::as_bytes(std::span(op.custom_options()->data(), op.custom_options()->size()));
  }
  return Status();
}

// The code decides which subgraphs an operator runs; options of another kind say nothing.
Status ReadSubgraphs(const schema::Model& model, const schema::Operator& op, ModelOperator& out) {
  const auto* branch = op.builtin_options_as_IfOptions();
  const auto* loop = op.builtin_options_as_WhileOptions();
  const auto* cases = op.builtin_options_2_as_StablehloCaseOptions();
  const auto* once = op.builtin_options_as_CallOnceOptions();
  const auto* composite = op.builtin_options_2_as_StableHLOCompositeOptions();
  constexpr size_t kMaxBranches = tflite::kTfLiteStablehloCaseMaxBranches;
  switch (out.builtin_code) {
    case tflite::kTfLiteBuiltinIf:
      if (branch == nullptr) return InvalidArgument("does not name its subgraphs");
      out.subgraphs = {branch->then_subgraph_index(), branch->else_subgraph_index()};
      break;
    case tflite::kTfLiteBuiltinWhile:
      if (loop == nullptr) return InvalidArgument("does not name its subgraphs");
      out.subgraphs = {loop->cond_subgraph_index(), loop->body_subgraph_index()};
      break;
    case tflite::kTfLiteBuiltinStablehloCase:
      if (cases == nullptr || cases->branch_subgraph_indices() == nullptr ||
          cases->branch_subgraph_indices()->size() == 0) {
        return InvalidArgument("does not name its subgraphs");
      }
      out.subgraphs.assign(cases->branch_subgraph_indices()->begin(),
                           cases->branch_subgraph_indices()->end());
      break;
    case tflite::kTfLiteBuiltinCallOnce:
      if (once == nullptr) return InvalidArgument("does not name its subgraph");
      out.subgraphs = {once->init_subgraph_index()};
      break;
    case tflite::kTfLiteBuiltinStablehloComposite:
      if (composite == nullptr) return InvalidArgument("does not name its subgraph");
      out.subgraphs = {composite->decomposition_subgraph_index()};
      break;
    default: {
      const std::optional<int> region =
          out.def == nullptr ? std::nullopt : kernels::RegionOf(*out.def, out.params);
      if (!region) return Status();
      out.subgraphs = {*region};
      break;
    }
  }
  if (out.subgraphs.size() > kMaxBranches) {
    return Unsupported("has ", out.subgraphs.size(), " subgraphs, more than ", kMaxBranches);
  }
  const int count = static_cast<int>(model.subgraphs()->size());
  for (int index : out.subgraphs) {
    if (index < 0 || index >= count) {
      return InvalidArgument("names subgraph ", index, ", of ", count);
    }
  }
  return Status();
}

void ReadVariableName(const schema::Operator& op, ModelOperator& out) {
  const auto* handle = op.builtin_options_as_VarHandleOptions();
  if (handle == nullptr) return;
  if (handle->container() != nullptr) out.container = handle->container()->str();
  if (handle->shared_name() != nullptr) out.shared_name = handle->shared_name()->str();
}

void ReadComposite(const schema::Operator& op, ModelOperator& out) {
  const auto* composite = op.builtin_options_2_as_StableHLOCompositeOptions();
  if (composite == nullptr) return;
  if (composite->name() != nullptr) out.composite_name = composite->name()->str();
  if (composite->composite_attributes() != nullptr) {
    out.attributes = std::as_bytes(std::span(composite->composite_attributes()->data(),
                                             composite->composite_attributes()->size()));
  }
}

Status CheckOverlap(const ModelOperator& op) {
  std::vector<int> inputs = op.inputs;
  std::ranges::sort(inputs);
  for (int output : op.outputs) {
    if (std::ranges::binary_search(inputs, output)) {
      return InvalidArgument("tensor ", output, " is both its input and its output");
    }
  }
  return Status();
}

}  // namespace

Result<ModelOperator> ReadOperator(const Source& source, const schema::Operator& op,
                                   const ModelSubgraph& subgraph) {
  ModelOperator out;
  FUSELITE_RETURN_IF_ERROR(ReadCode(*source.model, op, out));
  const auto fill = [&]() -> Status {
    const size_t tensors = subgraph.tensors.size();
    FUSELITE_RETURN_IF_ERROR(ReadIndices("input", op.inputs(), tensors, true, out.inputs));
    FUSELITE_RETURN_IF_ERROR(ReadIndices("output", op.outputs(), tensors, false, out.outputs));
    FUSELITE_RETURN_IF_ERROR(
        ReadIndices("intermediate", op.intermediates(), tensors, true, out.intermediates));
    FUSELITE_RETURN_IF_ERROR(CheckOverlap(out));
    FUSELITE_RETURN_IF_ERROR(ReadParams(op, out));
    FUSELITE_RETURN_IF_ERROR(ReadCustomOptions(source, op, out));
    ReadVariableName(op, out);
    ReadComposite(op, out);
    return ReadSubgraphs(*source.model, op, out);
  };
  if (Status status = fill(); !status.ok()) return status.In(Model::OperatorName(out));
  return out;
}

}  // namespace fuselite::interpreter::loader
