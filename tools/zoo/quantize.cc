#include "tools/zoo/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>

#include "interpreter/file/writer.h"
#include "interpreter/interpreter.h"
#include "kernels/numbers/short_floats.h"
#include "kernels/shape_rules.h"
#include "tools/inputs/tensors.h"

namespace fuselite::tools {
namespace {

using interpreter::ModelOperator;
using interpreter::ModelSubgraph;
using interpreter::ModelTensor;

template <class T>
T Check(Result<T> result) {
  if (!result.ok()) throw std::logic_error("zoo: " + result.status().message());
  return *std::move(result);
}

void Check(const Status& status) {
  if (!status.ok()) throw std::logic_error("zoo: " + status.message());
}

struct Range {
  float low = 0, high = 0;  // zero is always within
};

Range RangeOf(const void* data, size_t count) {
  Range range;
  for (size_t i = 0; i < count; ++i) {
    const auto value = kernels::LoadUnaligned<float>(data, static_cast<int64_t>(i));
    range.low = std::min(range.low, value);
    range.high = std::max(range.high, value);
  }
  return range;
}

// Finds the range of each tensor of floats.
std::vector<Range> Calibrate(const std::shared_ptr<const interpreter::Model>& model) {
  interpreter::InterpreterOptions options;
  options.preserve_all_tensors = true;
  const auto run = Check(interpreter::Interpreter::Create(model, options));
  Check(run->AllocateTensors());
  Check(FillRandom(*run, 1));
  Check(run->Invoke());
  std::vector<Range> ranges(run->tensor_count());
  for (int i = 0; i < run->tensor_count(); ++i) {
    const interpreter::TensorView view = run->tensor(i);
    if (view.type == DataType::kFloat32) ranges[i] = RangeOf(view.data, view.bytes / sizeof(float));
  }
  return ranges;
}

struct Layer {
  std::string_view op;
  int channel_axis;  // of its weights, which are operand 1; operand 2 is the bias
};
constexpr std::array<Layer, 3> kLayers = {
    {{"CONV_2D", 0}, {"DEPTHWISE_CONV_2D", 3}, {"FULLY_CONNECTED", 0}}};

const Layer* LayerOf(const ModelOperator& op) {
  const auto* const layer = std::ranges::find(kLayers, op.def->name, &Layer::op);
  return layer == kLayers.end() ? nullptr : layer;
}

// Operators that only move values, whose results have the scale of what they move.
bool Moves(const ModelOperator& op) {
  return op.def->name == "RESHAPE" || op.def->name == "TRANSPOSE";
}

// A tensor of the same name and shape, without data.
interpreter::TensorSpec Like(const ModelTensor& tensor, DataType type) {
  interpreter::TensorSpec spec;
  spec.name = tensor.name;
  spec.type = type;
  spec.shape = tensor.shape;
  return spec;
}

bool OfIntegers(Form form) {
  return form == Form::kInt8 || form == Form::kInt16 || form == Form::kUint8;
}

// What values or weights are rounded to.
struct Integers {
  DataType type;
  int32_t lowest, highest;
};
constexpr Integers kInt8 = {DataType::kInt8, -128, 127}, kUint8 = {DataType::kUInt8, 0, 255},
                   kInt16 = {DataType::kInt16, -32767, 32767};

// The zero point of 16 bits is always 0.
Quantization QuantizationFor(Range range, const Integers& integers) {
  if (integers.type == DataType::kInt16) {
    return {.scales = {std::max({range.high, -range.low, 1e-6f}) / kInt16.highest},
            .zero_points = {0}};
  }
  const float scale = std::max(range.high - range.low, 1e-6f) / 255;
  const auto zero = integers.lowest - static_cast<int32_t>(std::round(range.low / scale));
  return {.scales = {scale}, .zero_points = {std::clamp(zero, integers.lowest, integers.highest)}};
}

class Rewriter {
 public:
  // `ranges`: of the tensors of the first subgraph, for integers.
  Rewriter(const interpreter::Model& model, Form form, std::vector<Range> ranges)
      : model_(model),
        graph_(model.subgraphs[0]),
        form_(form),
        ranges_(std::move(ranges)),
        made_(graph_.tensors.size(), -1) {}

  std::vector<std::byte> Write() {
    writer_.set_description(model_.description);
    for (int input : graph_.inputs) AddValue(input, nullptr);
    std::vector<int> outputs = graph_.outputs;
    for (const ModelOperator& op : graph_.operators) {
      if (of_integers() && op.def->name == "SOFTMAX" && op.outputs == outputs) {
        outputs = {op.inputs[0]};
        break;
      }
      if (const Layer* const layer = LayerOf(op)) AddLayer(op, *layer);
      for (int input : op.inputs) {
        if (input >= 0 && made_[input] < 0) AddConstant(input);
      }
      for (int output : op.outputs) AddValue(output, &op);
      writer_.AddOperator(*op.def, op.params, Made(op.inputs), Made(op.outputs), op.version);
    }
    writer_.SetInputs(Made(graph_.inputs));
    writer_.SetOutputs(Made(outputs));
    AddSignature(Made(outputs)[0]);
    return writer_.Finish();
  }

 private:
  bool of_integers() const { return OfIntegers(form_); }
  const Integers& weight_type() const { return form_ == Form::kUint8 ? kUint8 : kInt8; }
  const Integers& value_type() const { return form_ == Form::kInt16 ? kInt16 : weight_type(); }

  std::vector<int> Made(const std::vector<int>& tensors) const {
    std::vector<int> made;
    for (int tensor : tensors) made.push_back(tensor < 0 ? -1 : made_[tensor]);
    return made;
  }

  void AddSignature(int output) {
    const interpreter::Signature& signature = model_.signatures.at(0);
    interpreter::ModelWriter::NamedTensors inputs;
    for (const interpreter::SignatureTensor& input : signature.inputs) {
      inputs.emplace_back(input.name, made_[input.tensor]);
    }
    writer_.AddSignature(signature.key, inputs, {{signature.outputs.at(0).name, output}});
  }

  // Something that is computed by `op`, or an input.
  void AddValue(int index, const ModelOperator* op) {
    const ModelTensor& tensor = graph_.tensors[index];
    interpreter::TensorSpec spec = Like(tensor, tensor.type);
    if (of_integers() && tensor.type == DataType::kFloat32) {
      spec.type = value_type().type;
      spec.quantization = QuantizationOf(index, op);
    }
    Add(index, std::move(spec));
  }

  Quantization QuantizationOf(int index, const ModelOperator* op) const {
    if (op != nullptr && Moves(*op)) return quantization_.at(made_[op->inputs[0]]);
    const bool is_softmax = op != nullptr && op->def->name == "SOFTMAX";
    return QuantizationFor(is_softmax ? Range{0, 255.0f / 256} : ranges_[index], value_type());
  }

  void AddConstant(int index) {
    const ModelTensor& tensor = graph_.tensors[index];
    interpreter::TensorSpec spec = Like(tensor, tensor.type);
    spec.data.assign(tensor.data.begin(), tensor.data.end());
    if (of_integers() && tensor.type == DataType::kFloat32) {
      spec.type = value_type().type;
      spec.quantization = QuantizationFor(RangeOf(tensor.data.data(), Count(tensor)), value_type());
      spec.data = Bytes(tensor, spec.quantization, value_type());
    }
    Add(index, std::move(spec));
  }

  void AddLayer(const ModelOperator& op, const Layer& layer) {
    if (form_ == Form::kFloat16) {
      AddHalf(op.inputs[1]);
      AddHalf(op.inputs[2]);
      return;
    }
    const ModelTensor& weights = graph_.tensors[op.inputs[1]];
    interpreter::TensorSpec spec = Like(weights, weight_type().type);
    spec.quantization = form_ == Form::kUint8
                            ? QuantizationFor(RangeOf(weights.data.data(), Count(weights)), kUint8)
                            : ByChannel(weights, layer.channel_axis);
    spec.data = Bytes(weights, spec.quantization, weight_type());
    const Quantization quantization = spec.quantization;
    Add(op.inputs[1], std::move(spec));
    if (of_integers()) AddBias(op.inputs[2], quantization_.at(made_[op.inputs[0]]), quantization);
  }

  void AddBias(int index, const Quantization& input, const Quantization& weights) {
    const ModelTensor& bias = graph_.tensors[index];
    std::vector<float> scales(weights.scales.begin(), weights.scales.end());
    for (float& scale : scales) scale *= input.scale();
    std::vector<int64_t> values(Count(bias));
    for (size_t i = 0; i < values.size(); ++i) {
      const float scale = scales[scales.size() == 1 ? 0 : i];
      values[i] = static_cast<int64_t>(std::round(ValueAt(bias, i) / scale));
    }
    const bool wide = form_ == Form::kInt16;
    interpreter::TensorSpec spec = Like(bias, wide ? DataType::kInt64 : DataType::kInt32);
    spec.quantization.zero_points = ChannelValues<int32_t>::Repeated(scales.size(), 0);
    spec.quantization.scales = std::move(scales);
    spec.data = wide ? interpreter::BytesOf(values)
                     : interpreter::BytesOf(std::vector<int32_t>(values.begin(), values.end()));
    Add(index, std::move(spec));
  }

  // The float16 constant, and an operator that widens it.
  void AddHalf(int index) {
    const ModelTensor& tensor = graph_.tensors[index];
    std::vector<uint16_t> values(Count(tensor));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = kernels::FloatToHalf(ValueAt(tensor, i));
    }
    const int half =
        writer_.AddConstant(tensor.name + "_half", DataType::kFloat16, tensor.shape, values);
    quantization_.emplace_back();
    Add(index, Like(tensor, DataType::kFloat32));
    writer_.AddOperator(*kernels::FindOperator("DEQUANTIZE"), {half}, {made_[index]});
  }

  void Add(int index, interpreter::TensorSpec spec) {
    quantization_.push_back(spec.quantization);
    made_[index] = writer_.AddTensor(std::move(spec));
  }

  static size_t Count(const ModelTensor& tensor) { return tensor.data.size() / sizeof(float); }
  static float ValueAt(const ModelTensor& tensor, size_t i) {
    return kernels::LoadUnaligned<float>(tensor.data.data(), static_cast<int64_t>(i));
  }
  // Which channel element `i` belongs to.
  static size_t ChannelOf(const ModelTensor& tensor, int axis, size_t i) {
    int64_t inner = 1;
    for (int d = axis + 1; d < tensor.shape.rank(); ++d) inner *= tensor.shape[d];
    return i / inner % tensor.shape[axis];
  }

  // Symmetric, with the largest value of each channel at 127.
  static Quantization ByChannel(const ModelTensor& weights, int axis) {
    std::vector<float> scales(weights.shape[axis], 1e-6f);
    for (size_t i = 0; i < Count(weights); ++i) {
      float& scale = scales[ChannelOf(weights, axis, i)];
      scale = std::max(scale, std::abs(ValueAt(weights, i)) / 127);
    }
    const size_t count = scales.size();
    return {.scales = std::move(scales),
            .zero_points = ChannelValues<int32_t>::Repeated(count, 0),
            .axis = axis};
  }

  // The nearest integers, little-endian.
  static std::vector<std::byte> Bytes(const ModelTensor& tensor, const Quantization& quantization,
                                      const Integers& integers) {
    std::vector<std::byte> bytes;
    for (size_t i = 0; i < Count(tensor); ++i) {
      const size_t channel =
          quantization.per_channel() ? ChannelOf(tensor, quantization.axis, i) : 0;
      const auto steps =
          static_cast<int32_t>(std::round(ValueAt(tensor, i) / quantization.scales[channel]));
      const int32_t stored =
          std::clamp(steps + quantization.zero_points[channel], integers.lowest, integers.highest);
      bytes.push_back(static_cast<std::byte>(stored & 0xFF));
      if (integers.type == DataType::kInt16) {
        bytes.push_back(static_cast<std::byte>(stored >> 8 & 0xFF));
      }
    }
    return bytes;
  }

  const interpreter::Model& model_;
  const ModelSubgraph& graph_;
  const Form form_;
  const std::vector<Range> ranges_;  // of the tensors of `graph_`
  interpreter::ModelWriter writer_;
  std::vector<int> made_;                   // what each tensor of `graph_` is in the new file
  std::vector<Quantization> quantization_;  // of the new tensors
};

}  // namespace

std::vector<std::byte> Rewrite(std::span<const std::byte> network, Form form) {
  const std::shared_ptr<const interpreter::Model> model =
      Check(interpreter::LoadModelFromMemory(network, nullptr));
  return Rewriter(*model, form, OfIntegers(form) ? Calibrate(model) : std::vector<Range>()).Write();
}

}  // namespace fuselite::tools
