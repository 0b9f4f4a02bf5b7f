#include "interpreter/op_resolver.h"

#include "interpreter/operators/control_flow.h"
#include "interpreter/operators/hash_tables.h"
#include "interpreter/operators/random.h"
#include "interpreter/operators/skip_gram.h"
#include "interpreter/resources.h"
#include "runtime/tflite/operator.h"

namespace fuselite::interpreter {

using tflite::TfLiteRegistration;

OpResolver OpResolver::WithBuiltins() {
  OpResolver resolver;
  for (const kernels::OperatorDef* def : kernels::AllOperators()) {
    // Without kernels, it is one of those added below, each for the versions that it knows: its
    // parameters are no C struct that BuiltinOp could read.
    if (!def->candidates.empty()) resolver.table_[def->builtin_code].def = def;
    if (def->custom()) resolver.custom_table_[std::string(def->name)].def = def;
  }
  AddControlFlow(resolver);
  AddResources(resolver);
  AddRandom(resolver);
  AddHashTables(resolver);
  AddSkipGram(resolver);
  return resolver;
}

void OpResolver::AddBuiltin(int builtin_code, const TfLiteRegistration& registration,
                            int min_version, int max_version) {
  for (int version = min_version; version <= max_version; ++version) {
    OpImplementation& entry = builtin_[{builtin_code, version}];
    entry.registration = registration;
    entry.registration.builtin_code = builtin_code;
    entry.registration.version = version;
  }
}

void OpResolver::AddCustom(const std::string& name, const TfLiteRegistration& registration,
                           int min_version, int max_version) {
  for (int version = min_version; version <= max_version; ++version) {
    const auto [entry, added] = custom_.insert_or_assign({name, version}, OpImplementation{});
    entry->second.registration = registration;
    entry->second.registration.builtin_code = tflite::kTfLiteBuiltinCustom;
    entry->second.registration.custom_name = entry->first.first.c_str();
    entry->second.registration.version = version;
  }
}

Status OpResolver::AddOperator(const tflite::TfLiteOperator& op) {
  if (op.magic != tflite::TfLiteOperator::kMagic) {
    return InvalidArgument("an operator was not made by libfuselite_custom_operators.so");
  }
  TfLiteRegistration registration{};
  // Read only; the struct's member is not const.
  registration.registration_external = const_cast<tflite::TfLiteOperator*>(&op);
  registration.inplace_operator = op.inplace_operator;
  if (op.builtin_code != tflite::kTfLiteBuiltinCustom) {
    AddBuiltin(op.builtin_code, registration, op.version, op.version);
    return Status();
  }
  if (op.custom_name == nullptr) return InvalidArgument("a custom operator has no name");
  AddCustom(op.custom_name, registration, op.version, op.version);
  return Status();
}

void OpResolver::AddAll(const OpResolver& other) {
  for (const auto& [code, entry] : other.table_) table_[code] = entry;
  for (const auto& [name, entry] : other.custom_table_) custom_table_[name] = entry;
  for (const auto& [key, entry] : other.builtin_) {
    AddBuiltin(key.first, entry.registration, key.second, key.second);
  }
  for (const auto& [key, entry] : other.custom_) {
    AddCustom(key.first, entry.registration, key.second, key.second);
  }
}

const OpImplementation* OpResolver::FindBuiltin(int builtin_code, int version) const {
  if (const auto found = builtin_.find({builtin_code, version}); found != builtin_.end()) {
    return &found->second;
  }
  const auto found = table_.find(builtin_code);
  return found == table_.end() ? nullptr : &found->second;
}

const OpImplementation* OpResolver::FindCustom(const std::string& name, int version) const {
  if (const auto found = custom_.find({name, version}); found != custom_.end()) {
    return &found->second;
  }
  const auto found = custom_table_.find(name);
  return found == custom_table_.end() ? nullptr : &found->second;
}

}  // namespace fuselite::interpreter
