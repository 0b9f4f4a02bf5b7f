#include "kernels/operator.h"

#include <algorithm>

#include "kernels/evaluation.h"
#include "kernels/widened.h"

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

// Inputs that may be left out follow the others. Only recurrent operators, which have states, leave
// out some in between: their rules check that themselves.
Status CheckPresence(const OpDescription& op) {
  if (!op.op->state_inputs.empty()) return Status();
  for (int i = 0; i < op.op->min_inputs; ++i) {
    if (!op.has_input(i)) return InvalidArgument("input ", i, " is left out");
  }
  return Status();
}

// Plans of kernels count bytes in 63 bits, which elements of up to 16 bytes stay within.
Status CheckSizes(const OpDescription& op) {
  constexpr int64_t kMost = int64_t{1} << 58;
  for (const TensorInfo& output : op.outputs) {
    if (output.elements() <= kMost) continue;
    return OutOfMemory("no machine has the memory for an output of ", output.shape);
  }
  return Status();
}

}  // namespace

Status CheckSignature(const OpDescription& op) {
  const OperatorDef& def = *op.op;
  if (op.version > def.max_version) {
    return Unsupported("version ", op.version, " is newer than ", def.max_version,
                       ", the newest known here");
  }
  FUSELITE_RETURN_IF_ERROR(CheckCount("inputs", op.own_inputs(), def.min_inputs, def.max_inputs));
  FUSELITE_RETURN_IF_ERROR(CheckPresence(op));
  FUSELITE_RETURN_IF_ERROR(
      CheckCount("outputs", op.outputs.size(), def.min_outputs, def.max_outputs));
  return CheckTypes(op);
}

Status Infer(OpDescription& op) {
  FUSELITE_RETURN_IF_ERROR(CheckSignature(op));
  FUSELITE_RETURN_IF_ERROR(op.op->infer(op));
  return CheckSizes(op);
}

Status InferRewritten(OpDescription& op) {
  if (!HasBFloat16Values(op)) return Infer(op);
  OpDescription floats = WithFloat32(op);
  FUSELITE_RETURN_IF_ERROR(Infer(floats));
  for (size_t i = 0; i < op.outputs.size(); ++i) op.outputs[i].shape = floats.outputs[i].shape;
  return Status();
}

Result<std::shared_ptr<const Kernel>> BuildReference(const OpDescription& op) {
  if (op.op->candidates.empty()) return Unsupported(op.op->name, " runs in an interpreter only");
  return op.op->candidates.back().Build(op, PlanContext());
}

const OperatorDef* FindOperator(int builtin_code) {
  static const std::vector<const OperatorDef*> by_code = [] {
    std::vector<const OperatorDef*> defs;
    for (const OperatorDef* op : AllOperators()) {
      const auto code = static_cast<size_t>(op->builtin_code);
      if (op->builtin_code < 0) continue;
      if (code >= defs.size()) defs.resize(code + 1);
      if (defs[code] == nullptr) defs[code] = op;
    }
    return defs;
  }();
  const auto code = static_cast<size_t>(builtin_code);
  return code < by_code.size() ? by_code[code] : nullptr;
}

const OperatorDef* FindOperator(std::string_view name) {
  for (const OperatorDef* op : AllOperators()) {
    if (op->name == name) return op;
  }
  return nullptr;
}

const OperatorDef* FindCustomOperator(std::string_view name) {
  const OperatorDef* const op = FindOperator(name);
  return op != nullptr && op->custom() ? op : nullptr;
}

}  // namespace fuselite::kernels
