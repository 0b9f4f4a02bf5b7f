// Models of the operators of strings, tables and random numbers for tests, and runs of them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "interpreter/file/writer.h"
#include "interpreter/interpreter.h"
#include "interpreter/strings.h"
#include "kernels/hashtable/hashtable.h"

namespace fuselite::interpreter::testing {

using Strings = std::vector<std::string>;

inline constexpr DataType kText = DataType::kString, kNumber = DataType::kInt64,
                          kInt = DataType::kInt32, kFloat = DataType::kFloat32,
                          kHandle = DataType::kResource;

// The bytes of a tensor of these strings.
inline std::vector<std::byte> Table(const Strings& strings) {
  std::vector<int32_t> head = {static_cast<int32_t>(strings.size())};
  auto end = static_cast<int32_t>(sizeof(int32_t) * (strings.size() + 2));
  head.push_back(end);
  for (const std::string& string : strings) {
    end += static_cast<int32_t>(string.size());
    head.push_back(end);
  }
  std::vector<std::byte> table = BytesOf(head);
  for (const std::string& string : strings) {
    const auto bytes = std::as_bytes(std::span(string));
    table.insert(table.end(), bytes.begin(), bytes.end());
  }
  return table;
}

inline Strings StringsOf(const TensorView& view) {
  const std::span table(static_cast<const std::byte*>(view.data), view.bytes);
  const auto strings = ReadStringTable(table, view.shape.elements());
  EXPECT_TRUE(strings.ok()) << strings.status().ToString();
  return strings.ok() ? Strings(strings->begin(), strings->end()) : Strings();
}

template <class T>
std::vector<T> Values(const TensorView& view) {
  const auto* const data = static_cast<const T*>(view.data);
  return std::vector<T>(data, data + view.shape.elements());
}

// A model under construction, of one subgraph.
class Builder : public ModelWriter {
 public:
  // An input; inputs are the model's in the order in which they were added.
  int In(DataType type, const Shape& shape) {
    inputs_.push_back(AddTensor("in", type, shape));
    return inputs_.back();
  }
  int Texts(const Strings& strings) {
    return AddConstant("texts", kText, {static_cast<int32_t>(strings.size())}, Table(strings));
  }
  int Numbers(const std::vector<int64_t>& values) {
    return AddConstant("numbers", kNumber, {static_cast<int32_t>(values.size())}, values);
  }
  int Op(std::string_view name, std::vector<int> inputs, DataType type, const Shape& shape) {
    const int output = AddTensor(std::string(name), type, shape);
    AddOperator(*kernels::FindOperator(name), std::move(inputs), {output});
    return output;
  }
  int Op(std::string_view name, const kernels::Params& params, std::vector<int> inputs,
         DataType type, const Shape& shape) {
    const int output = AddTensor(std::string(name), type, shape);
    AddOperator(*kernels::FindOperator(name), params, std::move(inputs), {output});
    return output;
  }
  int Handle(DataType keys, DataType values, int32_t id = 7) {
    kernels::Params params;
    params.as<kernels::HashtableParams>() = {id, keys, values};
    return Op("HASHTABLE", params, {}, kHandle, {1});
  }
  void Import(int handle, int keys, int values) {
    AddOperator(*kernels::FindOperator("HASHTABLE_IMPORT"), {handle, keys, values}, {});
  }
  void End(std::vector<int> outputs) {
    SetInputs(std::exchange(inputs_, {}));
    SetOutputs(std::move(outputs));
  }

 private:
  std::vector<int> inputs_;
};

inline std::unique_ptr<Interpreter> Open(const ModelWriter& writer,
                                         const InterpreterOptions& options = {}) {
  const auto file = std::make_shared<const std::vector<std::byte>>(writer.Finish());
  const auto model = LoadModelFromMemory(*file, file);
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  return model.ok() ? *Interpreter::Create(*model, options) : nullptr;
}

inline Status RunOnce(Interpreter& interpreter) {
  FUSELITE_RETURN_IF_ERROR(interpreter.AllocateTensors());
  return interpreter.Invoke();
}

// The message of the first call that fails.
inline std::string ErrorOf(const ModelWriter& writer) {
  const auto interpreter = Open(writer);
  const Status status = interpreter ? RunOnce(*interpreter) : Internal("no model");
  return status.ok() ? "none" : std::string(status.message());
}

}  // namespace fuselite::interpreter::testing
