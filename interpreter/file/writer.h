// Writes .tflite files: for tests, fuzzers and the zoo of generated models.
//
// Generic over the operators' field tables, so an operator can be written as soon as it has one.
// Nothing is checked here: writers of broken files are wanted, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "interpreter/file/model.h"
#include "kernels/operator.h"
#include "runtime/tensor.h"

namespace fuselite::interpreter {

struct TensorSpec {
  std::string name{};
  DataType type = DataType::kFloat32;
  Shape shape{};
  Quantization quantization{};
  std::vector<std::byte> data{};  // empty: not a constant
  bool is_variable = false;
  std::vector<int32_t> shape_signature{};  // empty: none
  BlockwiseQuantization blockwise{};       // in place of `quantization`; block_size 0: none
};

// The bytes of `values`, for TensorSpec::data.
template <class T>
std::vector<std::byte> BytesOf(std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  return {bytes.begin(), bytes.end()};
}
template <class T>
std::vector<std::byte> BytesOf(const std::vector<T>& values) {
  return BytesOf(std::span<const T>(values));
}

class ModelWriter {
 public:
  ModelWriter();
  ~ModelWriter();
  ModelWriter(const ModelWriter&) = delete;
  ModelWriter& operator=(const ModelWriter&) = delete;

  void set_description(std::string description);

  // Tensors, operators and ends go to the subgraph begun last; the first is there from the start.
  int AddSubgraph(std::string name);

  // The index of the tensor in its subgraph.
  int AddTensor(TensorSpec spec);
  // Adds a computed value or an input.
  int AddTensor(std::string name, DataType type, const Shape& shape,
                Quantization quantization = {});
  template <class T>
  int AddConstant(const std::string& name, DataType type, const Shape& shape,
                  const std::vector<T>& values, const Quantization& quantization = {}) {
    return AddTensor({.name = name,
                      .type = type,
                      .shape = shape,
                      .quantization = quantization,
                      .data = BytesOf(values)});
  }

  // A constant of another subgraph in the current one: both have the same bytes of the file.
  // `block_scales`: the tensor of the current one that has the scales of its blocks.
  int ShareConstant(int subgraph, int tensor, int block_scales = -1);

  // `params`: of the operator's own type.
  void AddOperator(const kernels::OperatorDef& op, const kernels::Params& params,
                   std::vector<int> inputs, std::vector<int> outputs, int version = 1);
  // The options are the defaults of its field table.
  void AddOperator(const kernels::OperatorDef& op, std::vector<int> inputs,
                   std::vector<int> outputs, int version = 1);
  // Adds one without options, as for codes that have no table.
  void AddOperator(int builtin_code, std::vector<int> inputs, std::vector<int> outputs,
                   int version = 1);
  void AddCustomOperator(std::string name, std::vector<std::byte> options, std::vector<int> inputs,
                         std::vector<int> outputs, int version = 1);
  // IF (then, else), WHILE (condition, body), CALL_ONCE (initializer) and STABLEHLO_CASE (the
  // branches) with the subgraphs they run.
  void AddControlFlow(int builtin_code, std::vector<int> subgraphs, std::vector<int> inputs,
                      std::vector<int> outputs);

  // VAR_HANDLE of the variable with this name; empty: without one, which is a variable of its own.
  void AddVariableHandle(std::string name, int handle);

  // STABLEHLO_COMPOSITE with its decomposition; `attributes` as FlexBuffers, or empty.
  void AddComposite(std::string name, std::vector<std::byte> attributes, int decomposition,
                    std::vector<int> inputs, std::vector<int> outputs);

  void SetInputs(std::vector<int> inputs);
  void SetOutputs(std::vector<int> outputs);

  using NamedTensors = std::vector<std::pair<std::string, int>>;
  // Adds it to the current subgraph.
  void AddSignature(std::string key, NamedTensors inputs, NamedTensors outputs);
  void AddMetadata(std::string name, std::vector<std::byte> data);

  // The file's bytes. The writer can go on and finish again.
  std::vector<std::byte> Finish() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fuselite::interpreter
