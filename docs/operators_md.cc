// Prints docs/operators.md from the table of operators, so that the page cannot say anything else
// than the code does:  build/release/docs/operators_md > docs/operators.md
#include <algorithm>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "jit/candidates.h"
#include "kernels/custom.h"
#include "kernels/operator.h"

namespace fuselite {
namespace {

using kernels::Field;
using kernels::OperatorDef;
using kernels::TypeRow;

std::string TypeText(DataType type) {
  return type == DataType::kNone ? "any" : std::string(DataTypeName(type));
}

// "float32 × float32 → float32"; trailing "any" inputs say nothing and are left out.
std::string RowText(const TypeRow& row) {
  size_t count = std::size(row.inputs);
  while (count > 1 && row.inputs[count - 1] == DataType::kNone) --count;
  std::string text;
  for (size_t i = 0; i < count; ++i) text += (i ? " × " : "") + TypeText(row.inputs[i]);
  return text + " → " + TypeText(row.output);
}

std::string TypesText(const OperatorDef& op) {
  if (op.types.empty()) return "any";
  std::string text;
  for (const TypeRow& row : op.types) {
    if (!text.empty()) text += "<br>";
    text += RowText(row);
  }
  return text;
}

std::string FieldsText(const OperatorDef& op) {
  std::string text;
  for (const Field& field : op.fields) {
    if (!text.empty()) text += ", ";
    text += "`" + std::string(field.name) + "`";
    if (field.since_version > 1)
      text += " (from version " + std::to_string(field.since_version) + ")";
  }
  return text.empty() ? "–" : text;
}

std::string CandidatesText(const OperatorDef& op) {
  std::vector<std::string> names;
#if FUSELITE_JIT
  for (const auto& candidate : jit::CandidatesFor(op)) names.emplace_back(candidate.name);
#endif
  for (const auto& candidate : op.candidates) names.emplace_back(candidate.name);
  if (op.candidates.empty()) names.emplace_back("its own code");
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// The limits one by one.
std::vector<std::string_view> LimitsOf(const OperatorDef& op) {
  std::vector<std::string_view> limits;
  for (std::string_view rest = op.limits; !rest.empty();) {
    const size_t end = rest.find("; ");
    limits.push_back(rest.substr(0, end));
    rest = end == std::string_view::npos ? "" : rest.substr(end + 2);
  }
  return limits;
}

// What a column of its own says of limits: what ranks the shape rule takes where that is not any,
// and which operands may be values of a run.
constexpr std::string_view kRank = "rank ", kRunTime = "run-time operands: ";

// What the limit that begins with `kind` says of it, or `otherwise`.
std::string LimitText(const OperatorDef& op, std::string_view kind, std::string_view otherwise) {
  for (std::string_view limit : LimitsOf(op)) {
    if (limit.starts_with(kind)) return std::string(limit.substr(kind.size()));
  }
  return std::string(otherwise);
}

std::string RanksText(const OperatorDef& op) { return LimitText(op, kRank, "any"); }

std::string RunTimeText(const OperatorDef& op) {
  return LimitText(op, kRunTime, op.state_inputs.empty() ? "all" : "all, states are variables");
}

std::string LimitsText(const OperatorDef& op) {
  std::string text;
  for (std::string_view limit : LimitsOf(op)) {
    if (limit.starts_with(kRank) || limit.starts_with(kRunTime)) continue;
    text += (text.empty() ? "" : "; ") + std::string(limit);
  }
  return text.empty() ? "–" : text;
}

std::string HostsText(const OperatorDef& op) {
  return op.candidates.empty() ? "our interpreter" : "LiteRT, our interpreter";
}

void PrintTable(const std::vector<const OperatorDef*>& operators) {
  std::cout
      << "| operator | versions | types of the first inputs → output | ranks | run-time operands "
         "| parameters | limits | hosts | computed by |\n|---|---|---|---|---|---|---|---|---|\n";
  for (const OperatorDef* op : operators) {
    const std::string versions = op->max_version > 1 ? "1–" + std::to_string(op->max_version) : "1";
    std::cout << "| " << op->name << " | " << (op->builtin_code < 0 ? "–" : versions) << " | "
              << TypesText(*op) << " | " << RanksText(*op) << " | " << RunTimeText(*op) << " | "
              << FieldsText(*op) << " | " << LimitsText(*op) << " | " << HostsText(*op) << " | "
              << CandidatesText(*op) << " |\n";
  }
}

void PrintPage() {
  std::vector<const OperatorDef*> builtin, custom, composite;
  for (const OperatorDef* op : kernels::AllOperators()) {
    const bool by_name = kernels::FindCustomOperator(op->name) != nullptr;
    (op->builtin_code >= 0 ? builtin : by_name ? custom : composite).push_back(op);
  }
  const auto by_name = [](const OperatorDef* a, const OperatorDef* b) { return a->name < b->name; };
  std::ranges::sort(builtin, by_name);
  std::ranges::sort(custom, by_name);
  std::ranges::sort(composite, by_name);
  std::cout
      << "# Operators\n\nGenerated by `docs/operators_md.cc` from the table of operators "
         "(`kernels/list.cc`); a test compares the two.\n\n"
         "A node is claimed when its version, types and parameters are in this table and the "
         "shapes pass the operator's\nshape rule; everything else stays with the host, and "
         "`fuselite explain` says why. \"Computed by\" lists the\nimplementations in the order "
         "in which they are asked.\n\n"
         "\"Ranks\" are those of the first input; no tensor has more than 16 dimensions. "
         "\"Run-time operands\" are those that may be\nvalues of a run instead of constants, in "
         "every host: axes, sizes, shapes, paddings and indices too; shapes that come from\nvalues "
         "are planned while the model runs.\n\n"
         "Control flow, composites and resource variables are no operators of the table. In our "
         "interpreter all of them run. With the\ndelegate IF, STABLEHLO_CASE and "
         "STABLEHLO_COMPOSITE are claimed whole where all that their subgraphs compute is ours "
         "and the\nhost tells their ends apart; VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE and "
         "CALL_ONCE where every user of the variable is ours; of\nWHILE what its subgraphs "
         "compute. The host's own kernel drives the turns inside the partition, since its "
         "interface does not tell in which order a body gives its results;\na body that is ours "
         "runs its turns in one call all the "
         "same.\n\n"
         "Our interpreter compares strings (EQUAL, NOT_EQUAL) and moves them (EXPAND_DIMS, FILL, "
         "GATHER, GATHER_ND, RESHAPE, SLICE, SQUEEZE,\nSTRIDED_SLICE, TILE); with the delegate the "
         "host keeps these nodes.\n\n"
         "Results are those of LiteRT's reference kernels, integers to the bit, but for these "
         "forms, which those kernels get wrong:\n\n"
         "- BATCH_MATMUL of integers whose right matrix has several scales: they multiply by 0; "
         "here each column has its own scale.\n"
         "- BATCH_MATMUL of float32 by int8 with several batch dimensions: they scale rows by the "
         "scales of others; here each has its own, as in XNNPACK.\n"
         "- BIDIRECTIONAL_SEQUENCE_LSTM, batch-major, with `merge_outputs` and two items or more: "
         "the last items run with wrong states; here each is\n  computed as it would be alone.\n"
         "- DEPTHWISE_CONV_2D of int16 by int4: they take the packed bytes for int8, and read "
         "beyond them; here the result is that of the same weights as int8.\n"
         "- RFFT2D with a last length of 1: most imaginary parts are the real ones with either "
         "sign; here the result is the transform.\n"
         "- SUM of int8 and int16: most sums are wrong; here they are rounded as those of uint8 "
         "are.\n"
         "- SVDF with a state of int8: they take it for int16, and write beyond its end.\n\n"
         "What they refuse or read as something else is refused: weights of several types in an "
         "LSTM, shuffled weights\nfor other than 1 or 4 rows.\n\n## Builtin operators ("
      << builtin.size() << ")\n\n";
  PrintTable(builtin);
  std::cout
      << "\n## Custom operators (" << custom.size()
      << ")\n\nThose called Flex are TensorFlow's own, which converters leave in a model where "
         "TFLite has none (\"Select TF ops\"). LiteRT's\nwheel refuses models with them; where "
         "all of them are in this table, such a model runs with the delegate, and in our\n"
         "interpreter, without TensorFlow.\n\n";
  PrintTable(custom);
  std::cout << "\n## Made by rewrites (" << composite.size() << ")\n\n";
  PrintTable(composite);
}

}  // namespace
}  // namespace fuselite

int main() { fuselite::PrintPage(); }
