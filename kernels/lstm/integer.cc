#include <algorithm>
#include <cmath>

#include "kernels/lstm/fixed_point16.h"
#include "kernels/lstm/integer_row.h"
#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"

namespace fuselite::kernels {
namespace {

// The intermediate that quantizes the hidden value: what the output gate lets through.
constexpr size_t kHiddenIntermediate = 4;

bool Usable(float scale) { return std::isfinite(scale) && scale > 0; }

// What weights with one scale are worth in a product; Unsupported where there are several.
Result<FixedPoint> Usable(const TensorInfo& weights, double scale) {
  return PositiveScale(weights.quantization.per_channel() ? 0 : static_cast<float>(scale));
}

// The scale from sums of `weights` times `values` to `to`.
Result<FixedPoint> ProductScale(const TensorInfo& weights, float values, float to) {
  return Usable(weights, weights.quantization.scale() * values / to);
}

Result<float> ScaleOfIntermediate(const OpDescription& op, size_t i) {
  if (i < op.intermediates.size() && Usable(op.intermediates[i].scale())) {
    return op.intermediates[i].scale();
  }
  return Unsupported("the model does not say how ",
                     i == kHiddenIntermediate ? "the hidden value is" : "sums are", " quantized");
}

// A row with the scratch of one step.
class IntegerRowRun : IntegerLstmRow {
 public:
  IntegerRowRun(const LstmShape& shape, const IntegerLstm& lstm, const KernelArgs& args, int64_t b)
      : IntegerLstmRow(shape, args, b),
        lstm_(lstm),
        b_(b),
        gates_(reinterpret_cast<int16_t*>(args.scratch)),
        hidden_(reinterpret_cast<int8_t*>(gates_ + kLstmGates * shape.cells)) {}

  static size_t ScratchBytes(const LstmShape& shape) {
    return static_cast<size_t>(shape.cells) * (kLstmGates * sizeof(int16_t) + sizeof(int8_t));
  }

  void Step(const int8_t* x, int8_t* y) {
    for (int gate = s_.first_gate(); gate < kOutputGate; ++gate) FillGate(gate, x);
    for (int64_t i = 0; i < s_.cells; ++i) UpdateCell(i);
    FillGate(kOutputGate, x);
    for (int64_t i = 0; i < s_.cells; ++i) (s_.projection ? hidden_ : y)[i] = Hidden(i);
    if (s_.projection) {
      for (int64_t i = 0; i < s_.outputs; ++i) y[i] = Projected(i);
    }
    std::copy_n(y, s_.outputs, h_);
  }

 private:
  int16_t* Gate(int gate) const { return gates_ + gate * s_.cells; }

  void FillGate(int gate, const int8_t* x) {
    int16_t* const sums = Gate(gate);
    for (int64_t i = 0; i < s_.cells; ++i) sums[i] = Sum(gate, i, x);
    if (s_.peephole && gate != kCellGate) {
      AddPeephole(s_, In<int16_t>(kLstmPeephole + PeepholeOf(gate)), c_, b_, lstm_.peephole[gate],
                  sums);
    }
    if (!s_.layer_norm) return;
    NormalizeGate(lstm_.norm[gate], In<int16_t>(kLstmLayerNorm + gate),
                  In<int32_t>(kLstmBias + gate), s_.cells, sums);
  }

  int16_t Sum(int gate, int64_t i, const int8_t* x) const {
    const int8_t* wx = In<int8_t>(kLstmInputWeights + gate) + i * s_.inputs;
    const int8_t* wr = In<int8_t>(kLstmRecurrentWeights + gate) + i * s_.outputs;
    const int32_t bias = s_.layer_norm ? 0 : In<int32_t>(kLstmBias + gate)[i];
    const int16_t first =
        Saturate16(Scale(Dot(wx, x, s_.inputs, lstm_.x_zero_point, bias), lstm_.input[gate]));
    const int32_t recurrent = Dot(wr, h_, s_.outputs, lstm_.h_zero_point, 0);
    return Saturate16(Scale(recurrent, lstm_.recurrent[gate]) + first);
  }

  void UpdateCell(int64_t i) {
    const int16_t forget = LogisticQ12(Gate(kForgetGate)[i]);
    const int16_t candidate = TanhFixed(Gate(kCellGate)[i], 3);
    const auto input =
        static_cast<int16_t>(s_.coupled ? 32767 - forget : LogisticQ12(Gate(kInputGate)[i]));
    const auto kept = static_cast<int16_t>(RoundingDivideByPowerOfTwo(forget * c_[i], 15));
    const auto taken =
        static_cast<int16_t>(RoundingDivideByPowerOfTwo(input * candidate, 30 + lstm_.cell_log2));
    const int32_t clip = lstm_.cell_clip;
    c_[i] = static_cast<int16_t>(std::clamp<int32_t>(Saturate16(kept + taken), -clip, clip));
  }

  int8_t Hidden(int64_t i) const {
    const int16_t gate = LogisticQ12(Gate(kOutputGate)[i]);
    const int32_t product = gate * TanhFixed(c_[i], 15 + lstm_.cell_log2);
    return static_cast<int8_t>(
        std::clamp(Scale(product, lstm_.hidden) + lstm_.hidden_zero_point, -128, 127));
  }

  int8_t Projected(int64_t i) const {
    const int8_t* weights = In<int8_t>(kLstmProjection) + i * s_.cells;
    const int32_t* bias = In<int32_t>(kLstmProjectionBias);
    const int32_t sum =
        Dot(weights, hidden_, s_.cells, lstm_.hidden_zero_point, bias ? bias[i] : 0);
    return Clipped(Scale(sum, lstm_.projection) + lstm_.h_zero_point, lstm_.state_clip);
  }

  const IntegerLstm& lstm_;
  const int64_t b_;
  int16_t* const gates_;
  int8_t* const hidden_;
};

Status ResolveGate(const OpDescription& op, const LstmShape& shape, int gate, IntegerLstm* lstm) {
  float sums = 0x1p-12f;
  if (shape.layer_norm) {
    FUSELITE_ASSIGN_OR_RETURN(sums, ScaleOfIntermediate(op, gate));
    const TensorInfo& coefficients = op.inputs[kLstmLayerNorm + gate];
    const float scale = coefficients.quantization.scale();
    FUSELITE_ASSIGN_OR_RETURN(lstm->norm[gate].scale, Usable(coefficients, scale));
    if (scale > 1 || shape.cells < 1) return Unsupported("normalizes by a scale of ", scale);
    lstm->norm[gate].least_variance = std::max(1, static_cast<int32_t>(10000 * scale));
  }
  FUSELITE_ASSIGN_OR_RETURN(lstm->input[gate],
                            ProductScale(op.inputs[kLstmInputWeights + gate],
                                         op.inputs[kLstmX].quantization.scale(), sums));
  FUSELITE_ASSIGN_OR_RETURN(lstm->recurrent[gate],
                            ProductScale(op.inputs[kLstmRecurrentWeights + gate],
                                         op.inputs[kLstmOutputState].quantization.scale(), sums));
  if (!shape.peephole || gate == kCellGate) return Status();
  const TensorInfo& weights = op.inputs[kLstmPeephole + PeepholeOf(gate)];
  FUSELITE_ASSIGN_OR_RETURN(
      lstm->peephole[gate],
      Usable(weights, std::ldexp(1.0, lstm->cell_log2) * weights.quantization.scale() / sums));
  return Status();
}

Status ResolveHidden(const OpDescription& op, const LstmShape& shape, IntegerLstm* lstm) {
  FUSELITE_ASSIGN_OR_RETURN(const float scale, ScaleOfIntermediate(op, kHiddenIntermediate));
  lstm->hidden = ToFixedPoint(static_cast<float>(0x1p-15 / scale * 0x1p-15));
  lstm->hidden_zero_point = op.intermediates[kHiddenIntermediate].zero_point();
  if (!Usable(op.outputs[0].quantization.scale()))
    return InvalidArgument("the output has no scale");
  if (!shape.projection) return Status();
  lstm->hidden_zero_point = -lstm->hidden_zero_point;
  FUSELITE_ASSIGN_OR_RETURN(lstm->projection,
                            ProductScale(op.inputs[kLstmProjection], scale,
                                         op.inputs[kLstmOutputState].quantization.scale()));
  lstm->state_clip = StateClip(op);
  return Status();
}

}  // namespace

Result<FixedPoint> PositiveScale(float scale) {
  if (Usable(scale)) return ToFixedPoint(scale);
  return Unsupported("weights or what they multiply have no single scale that is positive");
}

int32_t ClipInSteps(float clip, int32_t largest) {
  const auto steps = static_cast<int32_t>(std::clamp(clip, 0.0f, static_cast<float>(largest)));
  return steps > 0 ? steps : largest + 1;
}

int32_t StateClip(const OpDescription& op) {
  const float clip = op.params.as<LstmParams>().proj_clip;
  const float to = op.outputs[0].quantization.scale();
  return ClipInSteps(clip / to, 127);
}

Result<IntegerLstm> ResolveIntegerLstm(const OpDescription& op) {
  const LstmShape shape(op);
  IntegerLstm lstm{};
  lstm.x_zero_point = op.inputs[kLstmX].quantization.zero_point();
  lstm.h_zero_point = op.inputs[kLstmOutputState].quantization.zero_point();
  const float cell_scale = op.inputs[kLstmCellState].quantization.scale();
  const float log2 = Usable(cell_scale) ? std::log2(cell_scale) : 0.0f;
  lstm.cell_log2 = static_cast<int>(std::round(log2));
  if (std::abs(log2 - std::round(log2)) >= 1e-3f || lstm.cell_log2 < -15 || lstm.cell_log2 > -9) {
    return Unsupported("the cell state's scale ", cell_scale,
                       " is not a power of two from 2^-15 to 2^-9");
  }
  const float clip = op.params.as<LstmParams>().cell_clip;
  lstm.cell_clip = ClipInSteps(clip / cell_scale, 32767);
  for (int gate = shape.first_gate(); gate < kLstmGates; ++gate) {
    FUSELITE_RETURN_IF_ERROR(ResolveGate(op, shape, gate, &lstm));
  }
  FUSELITE_RETURN_IF_ERROR(ResolveHidden(op, shape, &lstm));
  return lstm;
}

void AddPeephole(const LstmShape& shape, const int16_t* weights, const int16_t* cells, int64_t b,
                 const FixedPoint& scale, int16_t* gate) {
  // What TFLite's kernel goes through at once: the batch, or a row where rows are batches.
  const int64_t rows = shape.batch_at_once ? shape.batch : 1;
  const int64_t first = shape.batch_at_once ? b * shape.cells : 0;
  const int64_t in_blocks = shape.outputs / 16 * 16;
  for (int64_t i = 0; i < shape.cells; ++i) {
    const int64_t place = first + i, output = place % shape.outputs;
    if (place >= rows * shape.outputs) break;
    const int32_t product = weights[output] * cells[i];
    const int32_t added =
        output < in_blocks ? ScaleTiesUpwards(product, scale)
                           : MultiplyByQuantizedMultiplier(product, scale.multiplier, scale.shift);
    gate[i] = Saturate16(added + gate[i]);
  }
}

// The mean has 10 fractional bits, the variance 20 while it is computed.
void NormalizeGate(const IntegerLstmNorm& norm, const int16_t* coefficients, const int32_t* bias,
                   int64_t cells, int16_t* gate) {
  int64_t sum = 0, squares = 0;
  for (int64_t i = 0; i < cells; ++i) {
    sum += gate[i];
    squares += int32_t{gate[i]} * gate[i];
  }
  const auto mean = static_cast<int32_t>(sum * 1024 / cells);
  const int64_t scaled = squares * ((1 << 20) / static_cast<int32_t>(cells)) - int64_t{mean} * mean;
  auto variance = static_cast<int32_t>(scaled / (1 << 20));
  if (variance < 1) variance = norm.least_variance;
  const FixedPoint inverse = FixedInverseSqrt(variance);
  for (int64_t i = 0; i < cells; ++i) {
    const int32_t deviation =
        MultiplyByQuantizedMultiplier(1024 * gate[i] - mean, inverse.multiplier, inverse.shift);
    // Wraps around, as TFLite's 32-bit sums do.
    const int64_t product = static_cast<int32_t>(static_cast<uint32_t>(deviation) *
                                                     static_cast<uint32_t>(coefficients[i]) +
                                                 static_cast<uint32_t>(bias[i]));
    const auto value = static_cast<int32_t>((product > 0 ? product + 512 : product - 512) / 1024);
    gate[i] = Saturate16(
        MultiplyByQuantizedMultiplier(value, norm.scale.multiplier, norm.scale.shift + 12));
  }
}

Status CheckIntegerLstm(const OpDescription& op) {
  if (IsByteLstm(op)) return CheckByteLstm(op);
  const LstmShape shape(op);
  if (shape.layer_norm && shape.coupled) {
    FUSELITE_RETURN_IF_ERROR(ScaleOfIntermediate(op, kInputGate).status());
  }
  if (op.intermediates.size() != kHiddenIntermediate + 1) {
    return InvalidArgument("has ", op.intermediates.size(), " intermediate values");
  }
  if (shape.peephole && shape.outputs > shape.cells) {
    return Unsupported(
        "does not take peepholes with more outputs than cells, which TFLite reads beyond their "
        "end");
  }
  return ResolveIntegerLstm(op).status();
}

Result<std::unique_ptr<Kernel>> BuildLstmInteger(const OpDescription& op) {
  if (IsByteLstm(op)) return BuildByteLstm(op);
  const LstmShape shape(op);
  FUSELITE_ASSIGN_OR_RETURN(const IntegerLstm lstm, ResolveIntegerLstm(op));
  const Work work{.units = shape.steps > 0 ? shape.batch : 0,
                  .scratch_bytes = IntegerRowRun::ScratchBytes(shape)};
  return MakeKernel("lstm s8 reference", work,
                    [shape, lstm](const KernelArgs& args, int64_t begin, int64_t end) {
                      const auto* x = static_cast<const int8_t*>(args.inputs[kLstmX]);
                      auto* y = static_cast<int8_t*>(args.outputs[0]);
                      for (int64_t b = begin; b < end; ++b) {
                        IntegerRowRun run(shape, lstm, args, b);
                        for (int64_t t = 0; t < shape.steps; ++t) {
                          const int64_t row = shape.Row(t, b);
                          run.Step(x + row * shape.inputs, y + row * shape.outputs);
                        }
                      }
                    });
}

}  // namespace fuselite::kernels
