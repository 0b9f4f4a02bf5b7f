// Who computes which operator: the builtin ones of kernels/, and what an application adds.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "kernels/operator.h"
#include "runtime/support/status.h"
#include "runtime/tflite/abi.h"

namespace fuselite::interpreter {

// How an operator is computed: by a table entry of kernels/, or by functions of the application.
struct OpImplementation {
  const kernels::OperatorDef* def = nullptr;
  // Meaningful where `def` is null. Its version is set to the operator's.
  tflite::TfLiteRegistration registration{};
};

// Finds implementations. A registration that is added replaces what was there for its code or name
// and version. Registrations are copied; the strings in them are not.
class OpResolver {
 public:
  // Has no operator yet.
  OpResolver() = default;
  OpResolver(OpResolver&&) = default;
  OpResolver& operator=(OpResolver&&) = default;
  // A resolver with every operator of kernels/, and the control flow that the interpreter runs.
  static OpResolver WithBuiltins();

  void AddBuiltin(int builtin_code, const tflite::TfLiteRegistration& registration,
                  int min_version = 1, int max_version = 1);
  void AddCustom(const std::string& name, const tflite::TfLiteRegistration& registration,
                 int min_version = 1, int max_version = 1);
  // An operator in the opaque form, which must outlive the interpreters. kInvalidArgument where it
  // has no name, or was not made by libfuselite_custom_operators.so.
  Status AddOperator(const tflite::TfLiteOperator& op);
  // What `other` has replaces what is here.
  void AddAll(const OpResolver& other);

  // nullptr where there is none.
  const OpImplementation* FindBuiltin(int builtin_code, int version) const;
  const OpImplementation* FindCustom(const std::string& name, int version) const;

 private:
  std::map<std::pair<int, int>, OpImplementation> builtin_;
  std::map<std::pair<std::string, int>, OpImplementation> custom_;
  // The operators of kernels/' table, by code; they check versions themselves.
  std::map<int, OpImplementation> table_;
  std::map<std::string, OpImplementation> custom_table_;
};

}  // namespace fuselite::interpreter
