#include "kernels/hashtable/hashtable.h"

#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

using tflite::TfLiteHashtableParams;
using tflite::TfLiteSkipGramParams;
constexpr Field kTableFields[] = {
    {"table_id", FieldKind::kInt32, 0, offsetof(HashtableParams, table_id),
     offsetof(TfLiteHashtableParams, table_id)},
    {"key_dtype", FieldKind::kDataType, 1, offsetof(HashtableParams, key_type),
     offsetof(TfLiteHashtableParams, key_dtype)},
    {"value_dtype", FieldKind::kDataType, 2, offsetof(HashtableParams, value_type),
     offsetof(TfLiteHashtableParams, value_dtype)},
};
constexpr Field kSkipGramFields[] = {
    {"ngram_size", FieldKind::kInt32, 0, offsetof(SkipGramParams, ngram_size),
     offsetof(TfLiteSkipGramParams, ngram_size)},
    {"max_skip_size", FieldKind::kInt32, 1, offsetof(SkipGramParams, max_skip_size),
     offsetof(TfLiteSkipGramParams, max_skip_size)},
    {"include_all_ngrams", FieldKind::kBool, 2, offsetof(SkipGramParams, include_all_ngrams),
     offsetof(TfLiteSkipGramParams, include_all_ngrams)},
};

constexpr DataType kTable = DataType::kResource, kText = DataType::kString,
                   kNumber = DataType::kInt64;
constexpr TypeRow kTableTypes[] = {{{}, kTable}};
constexpr TypeRow kFindTypes[] = {{{kTable, kText, kNumber}, kNumber},
                                  {{kTable, kNumber, kText}, kText}};
constexpr TypeRow kImportTypes[] = {{{kTable, kText, kNumber}}, {{kTable, kNumber, kText}}};
constexpr TypeRow kSizeTypes[] = {{{kTable}, kNumber}};
constexpr TypeRow kWordTypes[] = {{{kText}, kText}};

Status InferNothing(OpDescription& op) {
  return Unsupported(op.op->name, " runs in an interpreter only");
}

constexpr OperatorDef Definition(std::string_view name, int code, int options_type,
                                 std::span<const TypeRow> types, int inputs, int outputs) {
  OperatorDef def;
  def.name = name;
  def.builtin_code = code;
  def.options_type = options_type;
  def.types = types;
  def.min_inputs = def.max_inputs = inputs;
  def.min_outputs = def.max_outputs = outputs;
  def.infer = InferNothing;
  return def;
}

}  // namespace

const OperatorDef& HashtableOperator() {
  static constexpr OperatorDef kDef = [] {
    OperatorDef def =
        Definition("HASHTABLE", tflite::kTfLiteBuiltinHashtable, 107, kTableTypes, 0, 1);
    def.fields = kTableFields;
    def.params_bytes = sizeof(HashtableParams);
    def.struct_bytes = sizeof(TfLiteHashtableParams);
    return def;
  }();
  return kDef;
}

const OperatorDef& HashtableFindOperator() {
  static constexpr OperatorDef kDef =
      Definition("HASHTABLE_FIND", tflite::kTfLiteBuiltinHashtableFind, 108, kFindTypes, 3, 1);
  return kDef;
}

const OperatorDef& HashtableImportOperator() {
  static constexpr OperatorDef kDef = Definition(
      "HASHTABLE_IMPORT", tflite::kTfLiteBuiltinHashtableImport, 109, kImportTypes, 3, 0);
  return kDef;
}

const OperatorDef& HashtableSizeOperator() {
  static constexpr OperatorDef kDef =
      Definition("HASHTABLE_SIZE", tflite::kTfLiteBuiltinHashtableSize, 110, kSizeTypes, 1, 1);
  return kDef;
}

const OperatorDef& SkipGramOperator() {
  static constexpr OperatorDef kDef = [] {
    OperatorDef def = Definition("SKIP_GRAM", tflite::kTfLiteBuiltinSkipGram, 18, kWordTypes, 1, 1);
    def.fields = kSkipGramFields;
    def.params_bytes = sizeof(SkipGramParams);
    def.struct_bytes = sizeof(TfLiteSkipGramParams);
    def.limits = "a sentence of at most 2 GiB";
    return def;
  }();
  return kDef;
}

}  // namespace fuselite::kernels
