// Models of several subgraphs for tests of the interpreter alone.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/tflite/builtin_codes.h"
#include "tests/interpreter/test_graph.h"

namespace fuselite::interpreter::testing {

inline constexpr DataType kFloat = DataType::kFloat32, kInt = DataType::kInt32,
                          kBool = DataType::kBool, kHandle = DataType::kResource;
inline constexpr int kIf = tflite::kTfLiteBuiltinIf, kCase = tflite::kTfLiteBuiltinStablehloCase,
                     kWhile = tflite::kTfLiteBuiltinWhile, kOnce = tflite::kTfLiteBuiltinCallOnce,
                     kRead = tflite::kTfLiteBuiltinReadVariable,
                     kAssign = tflite::kTfLiteBuiltinAssignVariable,
                     kVarHandle = tflite::kTfLiteBuiltinVarHandle;

// A model under construction, one subgraph after the other.
class Builder : public ModelWriter {
 public:
  int In(const Shape& shape, DataType type = kFloat) {
    inputs_.push_back(AddTensor("in", type, shape));
    return inputs_.back();
  }
  int Out(const Shape& shape, DataType type = kFloat) { return AddTensor("out", type, shape); }
  int Number(float value) { return AddConstant("number", kFloat, Shape(), std::vector{value}); }
  int Op(std::string_view name, std::vector<int> inputs, const Shape& shape,
         DataType type = kFloat) {
    const int output = AddTensor(std::string(name), type, shape);
    AddOperator(*kernels::FindOperator(name), std::move(inputs), {output});
    return output;
  }
  void End(std::vector<int> outputs) {
    SetInputs(std::exchange(inputs_, {}));
    SetOutputs(std::move(outputs));
  }

 private:
  std::vector<int> inputs_;
};

// The first error of preparing and running the model on what its inputs have; "none".
inline std::string ErrorOf(const ModelWriter& writer) {
  const auto interpreter = OpenBuiltin(writer);
  Status status = interpreter->AllocateTensors();
  if (status.ok()) status = interpreter->Invoke();
  return status.ok() ? "none" : std::string(status.message());
}

}  // namespace fuselite::interpreter::testing
