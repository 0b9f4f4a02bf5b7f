// LSTM in int8 whose sums are rounded to int8 before they are added: the form with twelve
// intermediate values. As in TFLite's kernel the input gate is 1 - forget gate, whatever weights
// there are for it, peepholes count for nothing, and functions are computed in float.
#include <algorithm>
#include <cmath>

#include "kernels/lstm/fixed_point16.h"
#include "kernels/lstm/integer_row.h"
#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"

namespace fuselite::kernels {
namespace {

constexpr size_t kIntermediates = 12;

// Each gate has three intermediate values: the sum, and what the input and the state add.
struct ByteGate {
  FixedPoint from_input, from_state;  // products to the parts
  FixedPoint input, state;            // the parts to the sum
  int32_t input_zero_point, state_zero_point;
  float scale, bias_scale;  // of the coefficients, and what a step of the bias is worth
};

struct ByteLstm {
  ByteGate gates[kLstmGates];
  FixedPoint projection;
  int32_t x_zero_point, h_zero_point;
  int32_t cell_clip;   // 32768: none
  int32_t state_clip;  // StateClip
};

Result<ByteGate> ResolveGate(const OpDescription& op, int gate) {
  ByteGate g{};
  const auto scale_of = [&](int input) { return op.inputs[input].quantization.scale(); };
  const Quantization* parts = &op.intermediates[3 * gate];
  const float x = scale_of(kLstmX), h = scale_of(kLstmOutputState);
  const float sum = parts[0].scale(), input = parts[1].scale(), state = parts[2].scale();
  FUSELITE_ASSIGN_OR_RETURN(g.from_input,
                            PositiveScale(scale_of(kLstmInputWeights + gate) * x / input));
  FUSELITE_ASSIGN_OR_RETURN(g.from_state,
                            PositiveScale(scale_of(kLstmRecurrentWeights + gate) * h / state));
  FUSELITE_ASSIGN_OR_RETURN(g.input, PositiveScale(input / sum));
  FUSELITE_ASSIGN_OR_RETURN(g.state, PositiveScale(state / sum));
  // As int8, which TFLite passes them as.
  g.input_zero_point = static_cast<int8_t>(parts[1].zero_point());
  g.state_zero_point = static_cast<int8_t>(parts[2].zero_point());
  FUSELITE_ASSIGN_OR_RETURN(const FixedPoint norm, PositiveScale(scale_of(kLstmLayerNorm + gate)));
  g.scale = static_cast<float>(norm.multiplier * std::ldexp(1.0, norm.shift - 31));
  g.bias_scale = 0x1p-10f * g.scale;
  return g;
}

Result<ByteLstm> Resolve(const OpDescription& op) {
  ByteLstm lstm{};
  for (int gate = kForgetGate; gate < kLstmGates; ++gate) {
    FUSELITE_ASSIGN_OR_RETURN(lstm.gates[gate], ResolveGate(op, gate));
  }
  // TFLite's kernel takes other numbers for the output gate's state: the zero point of the cell
  // gate's input, and for a multiplier the shift of the forget gate's state.
  lstm.gates[kOutputGate].state.multiplier = lstm.gates[kForgetGate].state.shift;
  lstm.gates[kOutputGate].state_zero_point = lstm.gates[kCellGate].input_zero_point;
  lstm.x_zero_point = op.inputs[kLstmX].quantization.zero_point();
  lstm.h_zero_point = op.inputs[kLstmOutputState].quantization.zero_point();
  const float state = op.inputs[kLstmOutputState].quantization.scale();
  const float weights = op.inputs[kLstmProjection].quantization.scale();
  FUSELITE_ASSIGN_OR_RETURN(lstm.projection,
                            PositiveScale(static_cast<float>(weights * 0x1p-15 / state)));
  if (lstm.projection.shift > 14)
    return Unsupported("does not take a projection by too large a scale");
  const float cell_clip = op.params.as<LstmParams>().cell_clip;
  if (!(op.outputs[0].quantization.scale() > 0)) return InvalidArgument("the output has no scale");
  lstm.cell_clip = ClipInSteps(cell_clip * 32768, 32767);
  lstm.state_clip = StateClip(op);
  return lstm;
}

class ByteRow : IntegerLstmRow {
 public:
  ByteRow(const LstmShape& shape, const ByteLstm& lstm, const KernelArgs& args, int64_t b)
      : IntegerLstmRow(shape, args, b),
        lstm_(lstm),
        x_(In<int8_t>(kLstmX) + b * shape.inputs),
        gates_(reinterpret_cast<int16_t*>(args.scratch)) {}

  void Run(int8_t* y) {
    for (int gate = kForgetGate; gate < kLstmGates; ++gate) FillGate(gate);
    for (int64_t i = 0; i < s_.cells; ++i) {
      UpdateCell(i);
      const auto product = Gate(kOutputGate)[i] * Tanh(c_[i], 0x1p-15f);
      Gate(kOutputGate)[i] = static_cast<int16_t>(RoundingDivideByPowerOfTwo(product, 15));
    }
    for (int64_t i = 0; i < s_.outputs; ++i) y[i] = Projected(i);
    std::copy_n(y, s_.outputs, h_);
  }

 private:
  int16_t* Gate(int gate) const { return gates_ + (gate - kForgetGate) * s_.cells; }

  static int32_t Part(const int8_t* weights, const int8_t* values, int64_t n, int32_t zero_point,
                      const FixedPoint& scale, int32_t to_zero_point) {
    const int32_t sum = Dot(weights, values, n, zero_point, 0);
    return std::clamp(Scale(sum, scale) + to_zero_point, -128, 127) - to_zero_point;
  }

  void FillGate(int gate) {
    const ByteGate& g = lstm_.gates[gate];
    int16_t* const to = Gate(gate);
    for (int64_t i = 0; i < s_.cells; ++i) {
      const int32_t x = Part(In<int8_t>(kLstmInputWeights + gate) + i * s_.inputs, x_, s_.inputs,
                             lstm_.x_zero_point, g.from_input, g.input_zero_point);
      const int32_t h = Part(In<int8_t>(kLstmRecurrentWeights + gate) + i * s_.outputs, h_,
                             s_.outputs, lstm_.h_zero_point, g.from_state, g.state_zero_point);
      to[i] = Saturate16(Scale(h, g.state) + Scale(x, g.input));
    }
    Normalize(gate, to);
    for (int64_t i = 0; i < s_.cells; ++i) {
      to[i] = gate == kCellGate ? Tanh(to[i], 0x1p-12f) : Logistic(to[i]);
    }
  }

  void Normalize(int gate, int16_t* values) const {
    const ByteGate& g = lstm_.gates[gate];
    const auto n = static_cast<float>(s_.cells);
    float sum = 0, squares = 0;
    for (int64_t i = 0; i < s_.cells; ++i) {
      const float value = values[i];
      sum += value;
      squares += value * value;
    }
    const float mean = sum / n;
    const float variance = squares / n - mean * mean;
    const float inverse = 1.0f / std::sqrt(variance == 0 ? 1e-8f : variance);
    for (int64_t i = 0; i < s_.cells; ++i) {
      const float normal = (static_cast<float>(values[i]) - mean) * inverse;
      const float value =
          normal * static_cast<float>(In<int16_t>(kLstmLayerNorm + gate)[i]) * g.scale +
          static_cast<float>(In<int32_t>(kLstmBias + gate)[i]) * g.bias_scale;
      // Beyond int32 the conversion is not defined.
      values[i] =
          Saturate16(static_cast<int64_t>(std::clamp(std::round(value * 4096), -1e9f, 1e9f)));
    }
  }

  // With 15 fractional bits, cut off.
  static int16_t Logistic(int16_t x) {
    const float y = 1.0f / (1.0f + std::exp(-(static_cast<float>(x) * 0x1p-12f)));
    return Saturate16(static_cast<int32_t>(y * 32768.0f));
  }
  static int16_t Tanh(int16_t x, float scale) {
    return Saturate16(static_cast<int32_t>(std::tanh(static_cast<float>(x) * scale) * 32768.0f));
  }

  void UpdateCell(int64_t i) {
    const int16_t forget = Gate(kForgetGate)[i];
    const auto kept = static_cast<int16_t>(RoundingDivideByPowerOfTwo(forget * c_[i], 15));
    const auto input = static_cast<int16_t>(32767 - forget);
    const auto taken =
        static_cast<int16_t>(RoundingDivideByPowerOfTwo(input * Gate(kCellGate)[i], 15));
    const int32_t clip = lstm_.cell_clip;
    c_[i] = static_cast<int16_t>(std::clamp<int32_t>(Saturate16(kept + taken), -clip, clip));
  }

  int8_t Projected(int64_t i) const {
    const int8_t* weights = In<int8_t>(kLstmProjection) + i * s_.cells;
    int64_t sum = In<int32_t>(kLstmProjectionBias)[i];
    for (int64_t k = 0; k < s_.cells; ++k) sum += Gate(kOutputGate)[k] * weights[k];
    const int32_t y =
        MultiplyByQuantizedMultiplier64(sum, lstm_.projection.multiplier, lstm_.projection.shift) +
        lstm_.h_zero_point;
    return Clipped(y, lstm_.state_clip);
  }

  const ByteLstm& lstm_;
  const int8_t* const x_;
  int16_t* const gates_;
};

}  // namespace

bool IsByteLstm(const OpDescription& op) {
  return op.inputs[kLstmX].shape.rank() == 2 && op.intermediates.size() == kIntermediates;
}

Status CheckByteLstm(const OpDescription& op) {
  const LstmShape shape(op);
  if (!shape.layer_norm || !shape.projection || !op.has_input(kLstmProjectionBias)) {
    return Unsupported(
        "does not take sums of 8 bits without layer normalization or a projection with a bias");
  }
  if (op.inputs[kLstmCellState].quantization.scale() != 0x1p-15f) {
    return InvalidArgument("the cell state's scale is not 2^-15");
  }
  return Resolve(op).status();
}

Result<std::unique_ptr<Kernel>> BuildByteLstm(const OpDescription& op) {
  const LstmShape shape(op);
  FUSELITE_ASSIGN_OR_RETURN(const ByteLstm lstm, Resolve(op));
  const Work work{.units = shape.batch,
                  .scratch_bytes = 3 * static_cast<size_t>(shape.cells) * sizeof(int16_t)};
  return MakeKernel("lstm s8 bytes reference", work,
                    [shape, lstm](const KernelArgs& args, int64_t begin, int64_t end) {
                      auto* y = static_cast<int8_t*>(args.outputs[0]);
                      for (int64_t b = begin; b < end; ++b) {
                        ByteRow(shape, lstm, args, b).Run(y + b * shape.outputs);
                      }
                    });
}

}  // namespace fuselite::kernels
