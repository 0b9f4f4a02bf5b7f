// Builds networks layer by layer, with seeded weights, for the zoo.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "interpreter/file/writer.h"
#include "kernels/operator.h"
#include "runtime/tensor.h"

namespace fuselite::tools {

// A tensor of the network being built; as it is made, an operand that is left out.
struct Net {
  int tensor = -1;
  Shape shape;
};

// Options of an operator by the names of its field table: {"stride_w", 2}. Enums by number.
using Options = std::initializer_list<std::pair<std::string_view, double>>;

// Weights have zero mean and the variance that keeps activations near unit size through ReLUs
// (2 / fan-in); the same seed gives the same bytes everywhere.
class NetBuilder {
 public:
  NetBuilder(std::string description, uint64_t seed);

  Net Input(std::string name, const Shape& shape, DataType type = DataType::kFloat32);
  // Any operator of one output: computes the shape by the operator's own shape rule.
  Net Apply(std::string_view op, const std::vector<Net>& inputs, Options options = {},
            DataType type = DataType::kFloat32);
  // A composite of one output, with attributes that are numbers.
  Net Composite(std::string_view name, int decomposition, const std::vector<Net>& inputs,
                const Shape& shape, Options attributes);
  // A custom operator, with options that are numbers; an output for each shape.
  std::vector<Net> Custom(std::string_view name, const std::vector<Net>& inputs,
                          const std::vector<Shape>& shapes, Options options);
  Net Constant(std::string_view name, const Shape& shape, const std::vector<float>& values);
  Net IntConstant(std::string_view name, const std::vector<int32_t>& values);
  // [values / 2, 2], for paddings.
  Net Pairs(std::string_view name, const std::vector<int32_t>& values);
  Net Random(std::string_view name, const Shape& shape, int64_t fan_in);
  Net Zeros(std::string_view name, const Shape& shape);
  // Random int8 weights with a scale for each index of the outermost dimension.
  Net RandomBytes(std::string_view name, const Shape& shape, int64_t fan_in);
  // Random int4 weights, two a byte, with a float16 scale for each block of so many along a row,
  // which is a whole number of blocks.
  Net RandomBlocks(std::string_view name, const Shape& shape, int64_t fan_in, int32_t block_size);

  // State of an operator, which starts at zero.
  Net State(std::string name, const Shape& shape);
  // A resource variable: what a run assigns is what the next one reads. CallOnce() runs the
  // subgraph that assigns it first.
  Net Variable(std::string name);
  Net Read(const Net& variable, const Shape& shape);
  void Assign(const Net& variable, const Net& value);
  void CallOnce(int subgraph);

  // SAME padding, square filters, bias; `activation` as kernels::Activation numbers it.
  Net Conv(const Net& x, int32_t channels, int32_t filter, int32_t stride,
           kernels::Activation activation);
  Net Depthwise(const Net& x, int32_t filter, int32_t stride, kernels::Activation activation);
  // Over the innermost dimension, which is kept among the others.
  Net Dense(const Net& x, int32_t units);
  Net Add(const Net& x, const Net& y);

  // Further subgraphs: what follows goes to the one begun last, whose index is returned. End() ends
  // one, with a signature unless the key is empty.
  int Begin(std::string name);
  void End(const std::string& key, const std::vector<std::pair<std::string, Net>>& outputs);
  // A constant of another subgraph in the current one, with its block scales.
  Net Share(int subgraph, const Net& constant);

  // The file's bytes, with `output` as the only output and a signature "serving_default".
  std::vector<std::byte> Finish(const Net& output);
  // The file's bytes, of subgraphs that have been ended.
  std::vector<std::byte> Finish() const { return writer_.Finish(); }

 private:
  // A constant whose elements have the type, shape and quantization of `spec`.
  Net AddConstant(std::string_view name, interpreter::TensorSpec spec);
  Net AddValue(std::string name, DataType type, const Shape& shape);
  // Bytes that are all equally probable.
  std::vector<uint8_t> RandomBits(int64_t count);
  Net Declare(const kernels::OperatorDef& op, const kernels::Params& params,
              const std::vector<Net>& inputs, DataType type);
  std::string Unique(std::string_view name);
  uint64_t NextBits();
  float NextNormal();

  interpreter::ModelWriter writer_;
  uint64_t state_;
  int count_ = 0;
  std::vector<std::pair<std::string, int>> inputs_;
  // The tensors of each subgraph, by index, for the shape rules.
  struct Value {
    TensorInfo info;
    int block_scales = -1;  // the tensor that has the scales of its blocks
  };
  std::vector<std::vector<Value>> graphs_ = {{}};
  std::vector<std::vector<std::byte>> constants_;  // what their `data` points into
};

}  // namespace fuselite::tools
