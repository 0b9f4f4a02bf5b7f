#include "tools/zoo/net_builder.h"

// Numbers are written as numbers, never as text: without this the headers ask for the library's
// table of locales, which is no code for shared objects.
#define FLATBUFFERS_LOCALE_INDEPENDENT 0
#include <flatbuffers/flexbuffers.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <stdexcept>

#include "kernels/blockwise/blockwise.h"
#include "kernels/numbers/short_floats.h"
#include "runtime/tflite/builtin_codes.h"

namespace fuselite::tools {
namespace {

using kernels::Field;
using kernels::FieldKind;
using kernels::OperatorDef;
using kernels::Params;

// A zoo model is fixed at compile time: what goes wrong here is a mistake in its recipe, which the
// subcommand reports as an internal error.
[[noreturn]] void Fail(const std::string& what) { throw std::logic_error("zoo: " + what); }

void Check(const Status& status, const OperatorDef& op) {
  if (!status.ok()) Fail(std::string(op.name) + ": " + status.message());
}

template <class T>
void Put(Params* params, size_t offset, T value) {
  std::memcpy(static_cast<std::byte*>(params->data()) + offset, &value, sizeof value);
}

void SetOption(const OperatorDef& op, std::string_view name, double value, Params* params) {
  for (const Field& field : op.fields) {
    if (field.name != name) continue;
    switch (field.kind) {
      case FieldKind::kFloat: Put(params, field.offset, static_cast<float>(value)); return;
      case FieldKind::kBool: Put(params, field.offset, value != 0); return;
      case FieldKind::kInt64: Put(params, field.offset, static_cast<int64_t>(value)); return;
      case FieldKind::kDataType:
        Put(params, field.offset, static_cast<DataType>(static_cast<int>(value)));
        return;
      case FieldKind::kIntList:
      case FieldKind::kLongList:
      case FieldKind::kLongPairs:
      case FieldKind::kFloatList: Fail(std::string(name) + " is a list");
      default: Put(params, field.offset, static_cast<int32_t>(value)); return;
    }
  }
  Fail(std::string(op.name) + " has no option " + std::string(name));
}

const OperatorDef& Find(std::string_view name) {
  const OperatorDef* op = kernels::FindOperator(name);
  if (op == nullptr) Fail("there is no operator " + std::string(name));
  return *op;
}

// That LiteRT has a kernel for.
int OldestVersion(const OperatorDef& op) { return op.name == "BROADCAST_TO" ? 2 : 1; }

std::vector<std::byte> FlexibleMap(Options options) {
  flexbuffers::Builder map;
  map.Map([&] {
    for (const auto& [key, value] : options) {
      map.Float(std::string(key).c_str(), static_cast<float>(value));
    }
  });
  map.Finish();
  return interpreter::BytesOf(map.GetBuffer());
}

std::vector<int> Indices(const std::vector<Net>& nets) {
  std::vector<int> indices;
  for (const Net& net : nets) indices.push_back(net.tensor);
  return indices;
}

Params MakeParams(const OperatorDef& op, Options options) {
  Params params;
  kernels::SetDefaults(op.fields, params.data());
  for (const auto& [name, value] : options) SetOption(op, name, value, &params);
  return params;
}

}  // namespace

NetBuilder::NetBuilder(std::string description, uint64_t seed) : state_(seed) {
  writer_.set_description(std::move(description));
}

Net NetBuilder::Input(std::string name, const Shape& shape, DataType type) {
  const Net input = AddValue(name, type, shape);
  inputs_.emplace_back(std::move(name), input.tensor);
  return input;
}

Net NetBuilder::State(std::string name, const Shape& shape) {
  graphs_.back().push_back({{.type = DataType::kFloat32, .shape = shape}});
  interpreter::TensorSpec spec{.name = std::move(name), .shape = shape, .is_variable = true};
  return {writer_.AddTensor(std::move(spec)), shape};
}

Net NetBuilder::Variable(std::string name) {
  const Net handle = AddValue(Unique(name), DataType::kResource, {});
  writer_.AddVariableHandle(std::move(name), handle.tensor);
  return handle;
}

Net NetBuilder::Read(const Net& variable, const Shape& shape) {
  const Net value = AddValue(Unique("read"), DataType::kFloat32, shape);
  writer_.AddOperator(tflite::kTfLiteBuiltinReadVariable, {variable.tensor}, {value.tensor});
  return value;
}

void NetBuilder::Assign(const Net& variable, const Net& value) {
  writer_.AddOperator(tflite::kTfLiteBuiltinAssignVariable, {variable.tensor, value.tensor}, {});
}

void NetBuilder::CallOnce(int subgraph) {
  writer_.AddControlFlow(tflite::kTfLiteBuiltinCallOnce, {subgraph}, {}, {});
}

Net NetBuilder::AddValue(std::string name, DataType type, const Shape& shape) {
  graphs_.back().push_back({{.type = type, .shape = shape}});
  return {writer_.AddTensor(std::move(name), type, shape), shape};
}

std::string NetBuilder::Unique(std::string_view name) {
  return std::string(name) + "_" + std::to_string(count_++);
}

Net NetBuilder::AddConstant(std::string_view name, interpreter::TensorSpec spec) {
  constants_.push_back(spec.data);
  graphs_.back().push_back({.info = {.type = spec.type,
                                     .shape = spec.shape,
                                     .quantization = spec.quantization,
                                     .data = constants_.back().data()},
                            .block_scales = spec.blockwise.scales});
  spec.name = Unique(name);
  const Shape shape = spec.shape;
  return {writer_.AddTensor(std::move(spec)), shape};
}

Net NetBuilder::Constant(std::string_view name, const Shape& shape,
                         const std::vector<float>& values) {
  return AddConstant(
      name, {.type = DataType::kFloat32, .shape = shape, .data = interpreter::BytesOf(values)});
}

Net NetBuilder::IntConstant(std::string_view name, const std::vector<int32_t>& values) {
  return AddConstant(name, {.type = DataType::kInt32,
                            .shape = {static_cast<int32_t>(values.size())},
                            .data = interpreter::BytesOf(values)});
}

Net NetBuilder::Pairs(std::string_view name, const std::vector<int32_t>& values) {
  return AddConstant(name, {.type = DataType::kInt32,
                            .shape = {static_cast<int32_t>(values.size() / 2), 2},
                            .data = interpreter::BytesOf(values)});
}

Net NetBuilder::Random(std::string_view name, const Shape& shape, int64_t fan_in) {
  const float deviation = std::sqrt(2.0f / static_cast<float>(fan_in));
  std::vector<float> values(shape.elements());
  for (float& value : values) value = deviation * NextNormal();
  return Constant(name, shape, values);
}

Net NetBuilder::Zeros(std::string_view name, const Shape& shape) {
  return Constant(name, shape, std::vector<float>(shape.elements()));
}

std::vector<uint8_t> NetBuilder::RandomBits(int64_t count) {
  std::vector<uint8_t> values(count);
  uint64_t bits = 0;
  for (size_t i = 0; i < values.size(); ++i, bits >>= 8) {
    if (i % 8 == 0) bits = NextBits();
    values[i] = static_cast<uint8_t>(bits);
  }
  return values;
}

Net NetBuilder::RandomBytes(std::string_view name, const Shape& shape, int64_t fan_in) {
  std::vector<int8_t> values;
  for (uint8_t bits : RandomBits(shape.elements())) {
    values.push_back(std::max<int8_t>(static_cast<int8_t>(bits), -127));
  }
  // Uniform bytes deviate by 127 / sqrt(3).
  const float scale = std::sqrt(3.0f / static_cast<float>(fan_in)) / 127;
  return AddConstant(
      name, {.type = DataType::kInt8,
             .shape = shape,
             .quantization = {.scales = ChannelValues<float>::Repeated(shape[0], scale),
                              .zero_points = ChannelValues<int32_t>::Repeated(shape[0], 0)},
             .data = interpreter::BytesOf(values)});
}

Net NetBuilder::RandomBlocks(std::string_view name, const Shape& shape, int64_t fan_in,
                             int32_t block_size) {
  // Uniform integers from -8 to 7 deviate by sqrt(255 / 12).
  const float scale = std::sqrt(12.0f / 255.0f / static_cast<float>(fan_in));
  const Shape blocks{shape[0], shape[1] / block_size};
  const std::vector<uint16_t> scales(blocks.elements(), kernels::FloatToHalf(scale));
  const Net scale_tensor = AddConstant(
      std::string(name) + "_scales",
      {.type = DataType::kFloat16, .shape = blocks, .data = interpreter::BytesOf(scales)});
  interpreter::TensorSpec spec{.type = DataType::kInt4, .shape = shape};
  spec.blockwise = {.scales = scale_tensor.tensor, .block_size = block_size};
  spec.data = interpreter::BytesOf(RandomBits((shape.elements() + 1) / 2));
  return AddConstant(name, std::move(spec));
}

Net NetBuilder::Apply(std::string_view op, const std::vector<Net>& inputs, Options options,
                      DataType type) {
  const OperatorDef& def = Find(op);
  return Declare(def, MakeParams(def, options), inputs, type);
}

Net NetBuilder::Composite(std::string_view name, int decomposition, const std::vector<Net>& inputs,
                          const Shape& shape, Options attributes) {
  const Net output = AddValue(Unique(name), DataType::kFloat32, shape);
  writer_.AddComposite(std::string(name), FlexibleMap(attributes), decomposition, Indices(inputs),
                       {output.tensor});
  return output;
}

std::vector<Net> NetBuilder::Custom(std::string_view name, const std::vector<Net>& inputs,
                                    const std::vector<Shape>& shapes, Options options) {
  std::vector<Net> outputs;
  for (const Shape& shape : shapes) {
    outputs.push_back(AddValue(Unique(name), DataType::kFloat32, shape));
  }
  writer_.AddCustomOperator(std::string(name), FlexibleMap(options), Indices(inputs),
                            Indices(outputs));
  return outputs;
}

int NetBuilder::Begin(std::string name) {
  inputs_.clear();
  graphs_.emplace_back();
  return writer_.AddSubgraph(std::move(name));
}

void NetBuilder::End(const std::string& key,
                     const std::vector<std::pair<std::string, Net>>& outputs) {
  std::vector<int> inputs, results;
  interpreter::ModelWriter::NamedTensors named;
  for (const auto& [name, tensor] : inputs_) inputs.push_back(tensor);
  for (const auto& [name, net] : outputs) {
    results.push_back(net.tensor);
    named.emplace_back(name, net.tensor);
  }
  writer_.SetInputs(inputs);
  writer_.SetOutputs(results);
  if (!key.empty()) writer_.AddSignature(key, inputs_, named);
}

Net NetBuilder::Share(int subgraph, const Net& constant) {
  Value shared = graphs_[subgraph][constant.tensor];
  if (shared.block_scales >= 0) {
    shared.block_scales = Share(subgraph, {shared.block_scales, {}}).tensor;
  }
  graphs_.back().push_back(shared);
  return {writer_.ShareConstant(subgraph, constant.tensor, shared.block_scales), constant.shape};
}

Net NetBuilder::Conv(const Net& x, int32_t channels, int32_t filter, int32_t stride,
                     kernels::Activation activation) {
  const int32_t in = x.shape.dim(-1);
  const Net weights =
      Random("conv_weights", {channels, filter, filter, in}, int64_t{filter} * filter * in);
  return Apply("CONV_2D", {x, weights, Zeros("conv_bias", {channels})},
               {{"padding", static_cast<double>(kernels::Padding::kSame)},
                {"stride_w", stride},
                {"stride_h", stride},
                {"fused_activation_function", static_cast<double>(activation)}});
}

Net NetBuilder::Depthwise(const Net& x, int32_t filter, int32_t stride,
                          kernels::Activation activation) {
  const int32_t channels = x.shape.dim(-1);
  const Net weights =
      Random("depthwise_weights", {1, filter, filter, channels}, int64_t{filter} * filter);
  return Apply("DEPTHWISE_CONV_2D", {x, weights, Zeros("depthwise_bias", {channels})},
               {{"padding", static_cast<double>(kernels::Padding::kSame)},
                {"stride_w", stride},
                {"stride_h", stride},
                {"depth_multiplier", 1},
                {"fused_activation_function", static_cast<double>(activation)}});
}

Net NetBuilder::Dense(const Net& x, int32_t units) {
  const int32_t in = x.shape.dim(-1);
  // Half the variance of the convolutions': no ReLU follows directly.
  const Net weights = Random("dense_weights", {units, in}, 2 * int64_t{in});
  return Apply("FULLY_CONNECTED", {x, weights, Zeros("dense_bias", {units})},
               {{"keep_num_dims", x.shape.rank() > 2}});
}

Net NetBuilder::Add(const Net& x, const Net& y) { return Apply("ADD", {x, y}); }

Net NetBuilder::Declare(const OperatorDef& op, const Params& params, const std::vector<Net>& inputs,
                        DataType type) {
  kernels::OpDescription description;
  description.op = &op;
  description.params = params;
  std::vector<int> operands = Indices(inputs), scales;
  for (int i : operands) scales.push_back(i < 0 ? -1 : graphs_.back()[i].block_scales);
  Check(kernels::UseBlockScales(scales, &description.op, &operands), op);
  for (int i : operands) {
    description.inputs.push_back(i < 0 ? TensorInfo() : graphs_.back()[i].info);
  }
  description.outputs.push_back({.type = type});
  Check(kernels::Infer(description), op);
  const TensorInfo& result = description.outputs[0];
  const Net output = AddValue(Unique(op.name), result.type, result.shape);
  writer_.AddOperator(op, params, Indices(inputs), {output.tensor}, OldestVersion(op));
  return output;
}

std::vector<std::byte> NetBuilder::Finish(const Net& output) {
  std::vector<int> indices;
  for (const auto& [name, tensor] : inputs_) indices.push_back(tensor);
  writer_.SetInputs(indices);
  writer_.SetOutputs({output.tensor});
  writer_.AddSignature("serving_default", inputs_, {{"output", output.tensor}});
  return writer_.Finish();
}

uint64_t NetBuilder::NextBits() {
  uint64_t z = state_ += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

// SplitMix64 and Box-Muller: the standard library's distributions differ between implementations.
float NetBuilder::NextNormal() {
  const auto uniform = [this] { return (static_cast<double>(NextBits() >> 11) + 0.5) * 0x1p-53; };
  const double radius = std::sqrt(-2.0 * std::log(uniform()));
  return static_cast<float>(radius * std::cos(2.0 * std::numbers::pi * uniform()));
}

}  // namespace fuselite::tools
