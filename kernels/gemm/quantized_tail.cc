#include "kernels/gemm/quantized_tail.h"

#include <optional>

#include "kernels/check_tail.h"
#include "kernels/numbers/quantization.h"
#include "kernels/shape_rules.h"

namespace fuselite::kernels {
namespace {

// Beyond it, the single-rounding multiplication would shift by a negative amount.
constexpr int32_t kMaxWideShift = 14;

// `inputs.scaling` with the exception that kReal has.
SumScaling ScalingOf(const OpDescription& op, const ProductInputs& inputs) {
  const TensorInfo& weights = op.inputs[inputs.weights];
  if (inputs.scaling != SumScaling::kReal || weights.type != DataType::kInt16) {
    return inputs.scaling;
  }
  return weights.quantization.per_channel() ? SumScaling::kFixedPoint
                                            : SumScaling::kFixedPointOfFloat;
}

// Gives `make` (OutputScales, CheckOutputScales) what decides the scales.
template <class Make>
auto AskScales(const OpDescription& op, const ProductInputs& inputs, SumScaling scaling,
               int64_t channels, Make make)
    -> decltype(make(Quantization(), Quantization(), Quantization(), false)) {
  const TensorInfo& x = op.inputs[inputs.x];
  const Quantization& weights = op.inputs[inputs.weights].quantization;
  if (weights.per_channel() && static_cast<int64_t>(weights.scales.size()) != channels) {
    return InvalidArgument("the weights have ", weights.scales.size(), " scales for ", channels,
                           " channels");
  }
  const bool float_product = scaling == SumScaling::kFixedPointOfFloat ||
                             (scaling == SumScaling::kFixedPoint && x.type == DataType::kUInt8);
  return make(x.quantization, weights, op.outputs[0].quantization, float_product);
}

bool TakesSums(const Tail& tail) {
  using Kind = TailStage::Kind;
  if (tail.empty()) return false;
  const Kind kind = tail.stages.front().kind;
  return kind == Kind::kRequantize || kind == Kind::kRescale || kind == Kind::kDequantize;
}

// The scaling that a stage made by RequantizeStage stands for.
Result<WideScaling> MakeWideScaling(const TailStage& stage, int64_t channels) {
  WideScaling result{.zero_point = stage.zero_point, .min = stage.min, .max = stage.max};
  const auto channel = [](const auto& values, int64_t c) {
    return values[values.size() > 1 ? c : 0];
  };
  for (int64_t c = 0; c < channels; ++c) {
    if (stage.kind == TailStage::Kind::kRescale) {
      result.real.push_back(channel(stage.real_scales, c));
      continue;
    }
    const FixedPoint fixed{channel(stage.requantize.multipliers, c),
                           channel(stage.requantize.shifts, c)};
    if (fixed.shift > kMaxWideShift) {
      return Unsupported("does not take an output scale too small for 16 bits");
    }
    const WideFixedPoint wide = ToWideFixedPoint(fixed);
    result.multipliers.push_back(wide.multiplier);
    result.shifts.push_back(wide.shift);
  }
  return result;
}

// The biases of all channels, zeros where there are none; nothing where they are known only at run
// time.
std::optional<std::vector<int64_t>> ConstantBiases(const OpDescription& op, int input,
                                                   int64_t channels) {
  std::vector<int64_t> biases(channels, 0);
  if (!op.has_input(input)) return biases;
  const TensorInfo& bias = op.inputs[input];
  if (!bias.constant()) return std::nullopt;
  for (int64_t c = 0; c < channels; ++c) {
    biases[c] = bias.type == DataType::kInt64 ? LoadUnaligned<int64_t>(bias.data, c)
                                              : LoadUnaligned<int32_t>(bias.data, c);
  }
  return biases;
}

}  // namespace

Result<TailStage> RequantizeStage(const OpDescription& op, Activation activation,
                                  int64_t channels) {
  const ProductInputs& inputs = *op.op->product_inputs;
  const SumScaling scaling = ScalingOf(op, inputs);
  FUSELITE_ASSIGN_OR_RETURN(std::vector<double> scales,
                            AskScales(op, inputs, scaling, channels, OutputScales));
  const TensorInfo& output = op.outputs[0];
  TailStage stage;
  stage.zero_point = output.quantization.zero_point();
  FUSELITE_RETURN_IF_ERROR(QuantizedActivationRange(activation, output.type, output.quantization,
                                                    &stage.min, &stage.max));
  if (scaling == SumScaling::kReal) {
    stage.kind = TailStage::Kind::kRescale;
    stage.real_scales = std::move(scales);
    return stage;
  }
  stage.kind = TailStage::Kind::kRequantize;
  std::vector<int32_t> multipliers(scales.size()), shifts(scales.size());
  for (size_t c = 0; c < scales.size(); ++c) {
    const FixedPoint fixed = ToFixedPoint(scales[c]);
    multipliers[c] = fixed.multiplier;
    shifts[c] = fixed.shift;
  }
  stage.requantize.multipliers = std::move(multipliers);
  stage.requantize.shifts = std::move(shifts);
  stage.requantize.zero_point = stage.zero_point;
  stage.requantize.min = stage.min;
  stage.requantize.max = stage.max;
  return stage;
}

Result<QuantizedTail> MakeQuantizedTail(const OpDescription& op, Activation activation,
                                        DataType bias_hint, int64_t channels) {
  const ProductInputs& inputs = *op.op->product_inputs;
  QuantizedTail result;
  result.tail = op.tail;
  result.output = op.outputs[0];
  result.inputs = inputs;
  result.channels = channels;
  if (op.has_input(inputs.bias)) result.bias_type = op.inputs[inputs.bias].type;
  const DataType sum_type = result.bias_type == DataType::kNone ? bias_hint : result.bias_type;
  result.wide =
      op.inputs[inputs.x].type == DataType::kInt16 &&
      (sum_type != DataType::kInt32 || op.inputs[inputs.weights].type == DataType::kInt16);
  if (result.output.type == DataType::kInt32 && op.tail.empty()) return result;  // the sums
  if (!TakesSums(op.tail)) {
    FUSELITE_ASSIGN_OR_RETURN(TailStage stage, RequantizeStage(op, activation, channels));
    if (result.wide) {
      FUSELITE_ASSIGN_OR_RETURN(result.wide_scaling, MakeWideScaling(stage, channels));
      const auto biases = ConstantBiases(op, inputs.bias, channels);
      if (biases) UseDoubles(*biases, &result.wide_scaling);
      result.source_type = DataType::kInt16;
    } else {
      result.tail.stages.insert(result.tail.stages.begin(), std::move(stage));
    }
  } else if (result.wide) {
    return Unsupported("does not take a tail on 64-bit sums");
  }
  const bool requantizes = !result.wide && !TakesSums(op.tail);
  FUSELITE_RETURN_IF_ERROR(CheckTail(op, requantizes ? result.output.type : result.source_type));
  return result;
}

Status CheckQuantizedTail(const OpDescription& op, Activation activation, DataType bias_hint,
                          int64_t channels) {
  const ProductInputs& inputs = *op.op->product_inputs;
  const TensorInfo& output = op.outputs[0];
  // Wide sums have conditions of their own.
  if (op.inputs[inputs.x].type == DataType::kInt16 || output.type == DataType::kInt32 ||
      TakesSums(op.tail)) {
    return MakeQuantizedTail(op, activation, bias_hint, channels).status();
  }
  FUSELITE_RETURN_IF_ERROR(
      AskScales(op, inputs, ScalingOf(op, inputs), channels, CheckOutputScales));
  int32_t min, max;
  FUSELITE_RETURN_IF_ERROR(
      QuantizedActivationRange(activation, output.type, output.quantization, &min, &max));
  return CheckTail(op, output.type);
}

int64_t QuantizedTail::Bias(const KernelArgs& args, int64_t c) const {
  if (bias_type == DataType::kNone) return 0;
  const void* bias = args.inputs[inputs.bias];
  return bias_type == DataType::kInt64 ? static_cast<const int64_t*>(bias)[c]
                                       : static_cast<const int32_t*>(bias)[c];
}

void QuantizedTail::StoreRow(const KernelArgs& args, int64_t row, const int64_t* sums,
                             std::byte* scratch) const {
  if (wide) {
    ScaleWideRows(
        WideRowsOf(args, sums, {.n = channels, .to = reinterpret_cast<int16_t*>(scratch)}));
  } else {
    for (int64_t c = 0; c < channels; ++c) {
      // Wraps around as sums of 32 bits do.
      const auto sum = static_cast<uint64_t>(sums[c]) + static_cast<uint64_t>(Bias(args, c));
      reinterpret_cast<int32_t*>(scratch)[c] = static_cast<int32_t>(sum);
    }
  }
  ApplyTailReference(tail, args.inputs,
                     {.source = scratch,
                      .source_pitch = channels,
                      .source_type = source_type,
                      .destination = static_cast<std::byte*>(args.outputs[0]) +
                                     row * output.pitch() * (BitWidth(output.type) / 8),
                      .destination_pitch = output.pitch(),
                      .destination_type = output.type,
                      .row = row,
                      .rows = 1,
                      .channel = 0,
                      .channels = channels});
}

Status CheckZeroPoints(const OpDescription& op, bool weights_may_offset) {
  const ProductInputs& inputs = *op.op->product_inputs;
  const TensorInfo& x = op.inputs[inputs.x];
  const TensorInfo& weights = op.inputs[inputs.weights];
  if (x.type == DataType::kInt16 &&
      (x.quantization.zero_point() != 0 || op.outputs[0].quantization.zero_point() != 0)) {
    return InvalidArgument("int16 activations must have zero point 0");
  }
  const bool may_offset = weights.type == DataType::kUInt8 ||
                          (weights_may_offset && !weights.quantization.per_channel());
  for (int32_t zero_point : weights.quantization.zero_points) {
    if (zero_point != 0 && !may_offset) {
      return InvalidArgument(DataTypeName(weights.type), " weights must have zero point 0, not ",
                             zero_point);
    }
  }
  return Status();
}

}  // namespace fuselite::kernels
