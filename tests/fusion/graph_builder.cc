#include "tests/fusion/graph_builder.h"

#include <utility>

namespace fuselite::fusion::testing {
namespace {

void SetAttribute(const kernels::OperatorDef& op, std::string_view name, double value,
                  kernels::Params* params) {
  for (const kernels::Field& field : op.fields) {
    if (field.name != name) continue;
    std::byte* at = static_cast<std::byte*>(params->data()) + field.offset;
    switch (field.kind) {
      case kernels::FieldKind::kFloat: {
        const float v = static_cast<float>(value);
        std::memcpy(at, &v, sizeof v);
        return;
      }
      case kernels::FieldKind::kBool: {
        const bool v = value != 0;
        std::memcpy(at, &v, sizeof v);
        return;
      }
      case kernels::FieldKind::kDataType: *at = static_cast<std::byte>(value); return;
      case kernels::FieldKind::kInt64: {
        const int64_t v = static_cast<int64_t>(value);
        std::memcpy(at, &v, sizeof v);
        return;
      }
      case kernels::FieldKind::kIntList:
      case kernels::FieldKind::kLongList:
      case kernels::FieldKind::kLongPairs:
      case kernels::FieldKind::kFloatList: FAIL() << "no lists here";
      default: {
        const int32_t v = static_cast<int32_t>(value);
        std::memcpy(at, &v, sizeof v);
        return;
      }
    }
  }
  FAIL() << op.name << " has no field " << name;
}

const Attributes kConv = {{"stride_w", 1}, {"stride_h", 1}};
const Attributes kDepthwise = {{"stride_w", 1}, {"stride_h", 1}, {"depth_multiplier", 1}};

// Later ones win.
Attributes And(Attributes attributes, const Attributes& more) {
  attributes.insert(attributes.end(), more.begin(), more.end());
  return attributes;
}

TensorInfo FloatInfo(const Shape& shape) { return {.type = DataType::kFloat32, .shape = shape}; }

}  // namespace

ValueId GraphBuilder::Input(Shape shape, DataType type) {
  Value value;
  value.info = {.type = type, .shape = shape};
  value.input = true;
  value.name = "input_" + std::to_string(graph_.inputs.size());
  graph_.inputs.push_back(graph_.AddValue(std::move(value)));
  return graph_.inputs.back();
}

ValueId GraphBuilder::Variable(Shape shape) {
  const ValueId state = Input(shape);
  graph_.value(state).input = false;
  graph_.value(state).variable = true;
  return state;
}

ValueId GraphBuilder::Constant(Shape shape, float low, float high) {
  std::vector<float> values(shape.elements());
  for (float& v : values) v = random_.Float(low, high);
  return Constant(shape, values);
}

ValueId GraphBuilder::Constant(Shape shape, const std::vector<float>& values) {
  EXPECT_EQ(shape.elements(), static_cast<int64_t>(values.size()));
  return graph_.AddConstant(FloatInfo(shape), std::as_bytes(std::span(values)), "constant");
}

ValueId GraphBuilder::Ints(const std::vector<int32_t>& values) {
  return Ints(Shape({static_cast<int32_t>(values.size())}), values);
}

ValueId GraphBuilder::Ints(Shape shape, const std::vector<int32_t>& values) {
  EXPECT_EQ(shape.elements(), static_cast<int64_t>(values.size()));
  return graph_.AddConstant({.type = DataType::kInt32, .shape = shape},
                            std::as_bytes(std::span(values)), "ints");
}

std::vector<ValueId> GraphBuilder::Op(std::string_view name, const std::vector<ValueId>& inputs,
                                      const Attributes& attributes, int outputs,
                                      const TensorInfo& output) {
  Node node;
  node.op = kernels::FindOperator(name);
  if (node.op == nullptr) throw std::runtime_error("no operator " + std::string(name));
  node.version = node.op->max_version;
  kernels::SetDefaults(node.op->fields, node.params.data());
  for (const auto& [field, value] : attributes) SetAttribute(*node.op, field, value, &node.params);
  node.inputs = inputs;
  node.host_nodes = {host_nodes_++};
  for (int i = 0; i < outputs; ++i) {
    Value value;
    value.info = output;
    value.name = std::string(name) + "_" + std::to_string(node.host_nodes[0]);
    node.outputs.push_back(graph_.AddValue(std::move(value)));
  }
  const NodeId id = graph_.AddNode(std::move(node));
  kernels::OpDescription op = graph_.Describe(id);
  const Status status = kernels::Infer(op);
  if (!status.ok()) throw std::runtime_error(std::string(name) + ": " + status.ToString());
  for (int i = 0; i < outputs; ++i) graph_.value(graph_.node(id).outputs[i]).info = op.outputs[i];
  return graph_.node(id).outputs;
}

ValueId GraphBuilder::Int8Constant(Shape shape, float scale) {
  std::vector<int8_t> values(shape.elements());
  for (int8_t& v : values) v = static_cast<int8_t>(random_.Int(-127, 127));
  const TensorInfo info{.type = DataType::kInt8,
                        .shape = shape,
                        .quantization = {.scales = {scale}, .zero_points = {0}}};
  return graph_.AddConstant(info, std::as_bytes(std::span(values)), "int8");
}

ValueId GraphBuilder::Conv(ValueId x, int channels, int filter, const Attributes& attributes) {
  const float range = 1.0f / static_cast<float>(filter * filter);
  const ValueId weights = Constant({channels, filter, filter, shape(x).dim(-1)}, -range, range);
  return ConvBy(x, weights, Constant({channels}), attributes);
}

ValueId GraphBuilder::ConvBy(ValueId x, ValueId weights, ValueId bias,
                             const Attributes& attributes) {
  std::vector<ValueId> inputs = {x, weights};
  if (bias != kNone) inputs.push_back(bias);
  return Op("CONV_2D", inputs, And(kConv, attributes));
}

ValueId GraphBuilder::Depthwise(ValueId x, int filter, const Attributes& attributes) {
  const int channels = shape(x).dim(-1);
  const ValueId weights = Constant({1, filter, filter, channels});
  return Op("DEPTHWISE_CONV_2D", {x, weights, Constant({channels})}, And(kDepthwise, attributes));
}

ValueId GraphBuilder::Dense(ValueId x, int units, const Attributes& attributes) {
  const ValueId weights = Constant({units, shape(x).dim(-1)});
  return Op("FULLY_CONNECTED", {x, weights, Constant({units})}, attributes);
}

ValueId GraphBuilder::Rnn(ValueId x, ValueId state) {
  const int32_t units = shape(state).dim(-1);
  return Op("RNN", {x, Constant({units, shape(x).dim(-1)}), Constant({units, units}),
                    Constant({units}), state});
}

ValueId Int8Builder::Conv8(ValueId x, int channels, int filter, float scale, int32_t zero_point,
                           const Attributes& attributes) {
  const ValueId weights = Int8Constant({channels, filter, filter, shape(x).dim(-1)}, 0.01f);
  return Int8Op("CONV_2D", {x, weights}, scale, zero_point, And(kConv, attributes));
}

ValueId Int8Builder::Depthwise8(ValueId x, int filter, float scale, int32_t zero_point,
                                const Attributes& attributes) {
  const ValueId weights = Int8Constant({1, filter, filter, shape(x).dim(-1)}, 0.01f);
  return Int8Op("DEPTHWISE_CONV_2D", {x, weights}, scale, zero_point, And(kDepthwise, attributes));
}

ValueId Int8Builder::Dense8(ValueId x, int units, float scale, int32_t zero_point) {
  const ValueId weights = Int8Constant({units, shape(x).dim(-1)}, 0.01f);
  return Int8Op("FULLY_CONNECTED", {x, weights}, scale, zero_point);
}

void GraphBuilder::Output(ValueId value) {
  graph_.value(value).observed = true;
  graph_.outputs.push_back(value);
}

}  // namespace fuselite::fusion::testing
