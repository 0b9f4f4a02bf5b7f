#include "kernels/operator.h"

#include <algorithm>

namespace fuselite::kernels {
namespace {

Status CheckCount(std::string_view what, size_t count, int min, int max) {
  const int n = static_cast<int>(count);
  if (n >= min && (max < 0 || n <= max)) return Status();
  if (min == max) return InvalidArgument("has ", n, " ", what, ", expected ", min);
  if (max < 0) return InvalidArgument("has ", n, " ", what, ", expected at least ", min);
  return InvalidArgument("has ", n, " ", what, ", expected ", min, " to ", max);
}

bool Matches(const TypeRow& row, const OpDescription& op) {
  for (size_t i = 0; i < std::size(row.inputs); ++i) {
    if (row.inputs[i] == DataType::kNone || !op.has_input(i)) continue;
    if (op.inputs[i].type != row.inputs[i]) return false;
  }
  const DataType output = op.outputs.empty() ? DataType::kNone : op.outputs[0].type;
  return row.output == DataType::kNone || output == DataType::kNone || output == row.output;
}

Status CheckTypes(const OpDescription& op) {
  if (op.op->types.empty()) return Status();
  if (std::ranges::any_of(op.op->types, [&](const TypeRow& row) { return Matches(row, op); })) {
    return Status();
  }
  std::string types;
  for (const TensorInfo& input : op.inputs) {
    types += types.empty() ? "" : ", ";
    types += DataTypeName(input.type);
  }
  std::string result;
  if (!op.outputs.empty()) result = " -> " + std::string(DataTypeName(op.outputs[0].type));
  return Unsupported("types (", types, ")", result, " are not taken");
}

}  // namespace

Result<PackedWeights> BuildContext::Pack(const PackRequest& request,
                                         const std::function<void(std::byte*)>& pack) const {
  if (judging) return PackedWeights();
  return store->GetOrPack(request, pack);
}

Status Infer(OpDescription& op) {
  const OperatorDef& def = *op.op;
  if (op.version > def.max_version) {
    return Unsupported("version ", op.version, " is newer than ", def.max_version,
                       ", the newest known here");
  }
  // Operands of tail stages stand behind the operator's own.
  size_t own_inputs = op.inputs.size();
  for (const TailStage& stage : op.tail.stages) {
    if (stage.operand.input >= 0) {
      own_inputs = std::min(own_inputs, static_cast<size_t>(stage.operand.input));
    }
  }
  FUSELITE_RETURN_IF_ERROR(CheckCount("inputs", own_inputs, def.min_inputs, def.max_inputs));
  FUSELITE_RETURN_IF_ERROR(
      CheckCount("outputs", op.outputs.size(), def.min_outputs, def.max_outputs));
  FUSELITE_RETURN_IF_ERROR(CheckTypes(op));
  return def.infer(op);
}

Result<std::unique_ptr<Kernel>> BuildReference(const OpDescription& op,
                                               const BuildContext& context) {
  return op.op->candidates.back().build(op, context);
}

const OperatorDef* FindOperator(int builtin_code) {
  for (const OperatorDef* op : AllOperators()) {
    if (op->builtin_code == builtin_code && builtin_code >= 0) return op;
  }
  return nullptr;
}

const OperatorDef* FindOperator(std::string_view name) {
  for (const OperatorDef* op : AllOperators()) {
    if (op->name == name) return op;
  }
  return nullptr;
}

}  // namespace fuselite::kernels
