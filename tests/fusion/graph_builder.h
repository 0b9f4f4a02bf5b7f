// Graphs for tests, in few words.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "fusion/compile.h"
#include "fusion/graph/validate.h"
#include "fusion/rewrite.h"
#include "runtime/execution/execution.h"
#include "tests/fusion/outcome.h"
#include "tests/kernels/op_tester.h"

namespace fuselite::fusion::testing {

using kernels::testing::Random;

// Parameters by the names of the operator's field table: {"stride_w", 2}.
using Attributes = std::vector<std::pair<std::string_view, double>>;
inline constexpr double kSame = 0, kValid = 1;                  // "padding"
inline constexpr double kRelu = 1, kReluN1To1 = 2, kRelu6 = 3;  // "fused_activation_function"

// Builds a graph node by node; shapes come from the operators' shape rules. Node i stands for the
// host's node i.
class GraphBuilder {
 public:
  explicit GraphBuilder(uint64_t seed = 1) : random_(seed) {}
  explicit GraphBuilder(Random random) : random_(random) {}

  ValueId Input(Shape shape, DataType type = DataType::kFloat32);
  // The host's state, which RNN reads and writes; RunGraph() gives it after the run, too.
  ValueId Variable(Shape shape);
  // Random in [low, high].
  ValueId Constant(Shape shape, float low = -1, float high = 1);
  ValueId Constant(Shape shape, const std::vector<float>& values);
  ValueId Scalar(float value) { return Constant(Shape(), std::vector<float>{value}); }
  ValueId Ints(const std::vector<int32_t>& values);
  ValueId Ints(Shape shape, const std::vector<int32_t>& values);

  std::vector<ValueId> Op(std::string_view name, const std::vector<ValueId>& inputs,
                          const Attributes& attributes, int outputs, const TensorInfo& output = {});
  ValueId Op(std::string_view name, const std::vector<ValueId>& inputs,
             const Attributes& attributes = {}) {
    return Op(name, inputs, attributes, 1)[0];
  }

  // int8 values: a constant with one scale, and what an operator gives.
  ValueId Int8Constant(Shape shape, float scale);
  ValueId Int8Op(std::string_view name, const std::vector<ValueId>& inputs, float scale,
                 int32_t zero_point, const Attributes& attributes = {}) {
    const TensorInfo output{.type = DataType::kInt8,
                            .quantization = {.scales = {scale}, .zero_points = {zero_point}}};
    return Op(name, inputs, attributes, 1, output)[0];
  }

  // Layers with random weights and a bias. `filter` x `filter` taps.
  ValueId Conv(ValueId x, int channels, int filter, const Attributes& attributes = {});
  // One with weights that the caller made, and without a bias unless there is one.
  ValueId ConvBy(ValueId x, ValueId weights, ValueId bias = kNone,
                 const Attributes& attributes = {});
  ValueId Depthwise(ValueId x, int filter, const Attributes& attributes = {});
  ValueId Dense(ValueId x, int units, const Attributes& attributes = {});
  ValueId Softmax(ValueId x) { return Op("SOFTMAX", {x}, {{"beta", 1}}); }
  ValueId Transpose(ValueId x, const std::vector<int32_t>& permutation) {
    return Op("TRANSPOSE", {x, Ints(permutation)});
  }
  // A turn of RNN, which moves `state`, of as many units.
  ValueId Rnn(ValueId x, ValueId state);

  void Output(ValueId value);

  const Shape& shape(ValueId value) const { return graph_.value(value).info.shape; }
  Random& random() { return random_; }
  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }

 private:
  Random random_;
  Graph graph_;
  int host_nodes_ = 0;
};

// A graph of int8 values between QUANTIZE and DEQUANTIZE. Layers have random weights and no bias.
class Int8Builder : public GraphBuilder {
 public:
  using GraphBuilder::GraphBuilder;

  ValueId In(Shape shape, float scale = 0.03f, int32_t zero_point = -3) {
    return Int8Op("QUANTIZE", {Input(shape)}, scale, zero_point);
  }
  void Out(ValueId value) { Output(Op("DEQUANTIZE", {value})); }

  ValueId Conv8(ValueId x, int channels, int filter, float scale, int32_t zero_point,
                const Attributes& attributes = {});
  ValueId Depthwise8(ValueId x, int filter, float scale, int32_t zero_point,
                     const Attributes& attributes = {});
  ValueId Dense8(ValueId x, int units, float scale, int32_t zero_point);
};

}  // namespace fuselite::fusion::testing
