#include <algorithm>
#include <cmath>

#include "kernels/lstm/fixed_point16.h"
#include "kernels/lstm/integer.h"
#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"

namespace fuselite::kernels {
namespace {

// The intermediate that quantizes the hidden value: what the output gate lets through.
constexpr size_t kHiddenIntermediate = 4;

bool Usable(float scale) { return std::isfinite(scale) && scale > 0; }

Result<FixedPoint> ProductScale(const TensorInfo& weights, const TensorInfo& values) {
  constexpr float kSumScale = 0x1p-12f;
  const float product = weights.quantization.scale() * values.quantization.scale();
  const float scale = product / kSumScale;
  if (weights.quantization.per_channel() || !Usable(scale)) {
    return Unsupported("weights or what they multiply have no single scale that is positive");
  }
  return ToFixedPoint(scale);
}

// One row of the batch: its states, and the scratch of one step.
class IntegerRowRun {
 public:
  IntegerRowRun(const LstmShape& shape, const IntegerLstm& lstm, const KernelArgs& args, int64_t b)
      : s_(shape),
        lstm_(lstm),
        args_(args),
        // Variables are bound as inputs and written in place.
        h_(const_cast<int8_t*>(In<int8_t>(kLstmOutputState)) + b * shape.outputs),
        c_(const_cast<int16_t*>(In<int16_t>(kLstmCellState)) + b * shape.cells),
        gates_(reinterpret_cast<int16_t*>(args.scratch)) {}

  void Step(const int8_t* x, int8_t* y) {
    for (int gate = s_.first_gate(); gate < kLstmGates; ++gate) {
      for (int64_t i = 0; i < s_.cells; ++i) Gate(gate)[i] = Sum(gate, i, x);
    }
    for (int64_t i = 0; i < s_.cells; ++i) {
      UpdateCell(i);
      y[i] = Output(i);
    }
    std::copy_n(y, s_.outputs, h_);
  }

 private:
  template <class T>
  const T* In(int i) const {
    return static_cast<const T*>(args_.inputs[i]);
  }
  int16_t* Gate(int gate) const { return gates_ + gate * s_.cells; }

  // Wraps around, as TFLite's 32-bit sums do.
  static int32_t Dot(const int8_t* w, const int8_t* v, int64_t n, int32_t zero_point,
                     int32_t start) {
    auto sum = static_cast<uint32_t>(start);
    for (int64_t i = 0; i < n; ++i) sum += static_cast<uint32_t>(w[i] * (v[i] - zero_point));
    return static_cast<int32_t>(sum);
  }

  int16_t Sum(int gate, int64_t i, const int8_t* x) const {
    const int8_t* wx = In<int8_t>(kLstmInputWeights + gate) + i * s_.inputs;
    const int8_t* wr = In<int8_t>(kLstmRecurrentWeights + gate) + i * s_.outputs;
    const int32_t bias = In<int32_t>(kLstmBias + gate)[i];
    const int16_t first =
        Saturate16(Scale(Dot(wx, x, s_.inputs, lstm_.x_zero_point, bias), lstm_.input[gate]));
    const int32_t recurrent = Dot(wr, h_, s_.outputs, lstm_.h_zero_point, 0);
    return Saturate16(Scale(recurrent, lstm_.recurrent[gate]) + first);
  }

  static int32_t Scale(int32_t x, const FixedPoint& by) {
    return MultiplyByQuantizedMultiplier(x, by.multiplier, by.shift);
  }

  void UpdateCell(int64_t i) {
    const int16_t forget = LogisticQ12(Gate(kForgetGate)[i]);
    const int16_t candidate = TanhFixed(Gate(kCellGate)[i], 3);
    const auto input =
        static_cast<int16_t>(s_.coupled ? 32767 - forget : LogisticQ12(Gate(kInputGate)[i]));
    const auto kept = static_cast<int16_t>(RoundingDivideByPowerOfTwo(forget * c_[i], 15));
    const auto taken =
        static_cast<int16_t>(RoundingDivideByPowerOfTwo(input * candidate, 30 + lstm_.cell_log2));
    c_[i] = Saturate16(kept + taken);
    if (lstm_.cell_clip > 0) {
      c_[i] = static_cast<int16_t>(std::clamp<int32_t>(c_[i], -lstm_.cell_clip, lstm_.cell_clip));
    }
  }

  int8_t Output(int64_t i) const {
    const int16_t gate = LogisticQ12(Gate(kOutputGate)[i]);
    const int32_t product = gate * TanhFixed(c_[i], 15 + lstm_.cell_log2);
    return static_cast<int8_t>(
        std::clamp(Scale(product, lstm_.hidden) + lstm_.hidden_zero_point, -128, 127));
  }

  const LstmShape& s_;
  const IntegerLstm& lstm_;
  const KernelArgs& args_;
  int8_t* const h_;
  int16_t* const c_;
  int16_t* const gates_;
};

}  // namespace

Result<IntegerLstm> ResolveIntegerLstm(const OpDescription& op) {
  const LstmShape shape(op);
  IntegerLstm lstm{};
  const TensorInfo& x = op.inputs[kLstmX];
  const TensorInfo& h = op.inputs[kLstmOutputState];
  for (int gate = shape.first_gate(); gate < kLstmGates; ++gate) {
    FUSELITE_ASSIGN_OR_RETURN(lstm.input[gate],
                              ProductScale(op.inputs[kLstmInputWeights + gate], x));
    FUSELITE_ASSIGN_OR_RETURN(lstm.recurrent[gate],
                              ProductScale(op.inputs[kLstmRecurrentWeights + gate], h));
  }
  lstm.x_zero_point = x.quantization.zero_point();
  lstm.h_zero_point = h.quantization.zero_point();
  const float cell_scale = op.inputs[kLstmCellState].quantization.scale();
  const float log2 = Usable(cell_scale) ? std::log2(cell_scale) : 0.0f;
  lstm.cell_log2 = static_cast<int>(std::round(log2));
  if (std::abs(log2 - std::round(log2)) >= 1e-3f || lstm.cell_log2 < -15 || lstm.cell_log2 > -9) {
    return Unsupported("the cell state's scale ", cell_scale,
                       " is not a power of two from 2^-15 to 2^-9");
  }
  if (op.intermediates.size() <= kHiddenIntermediate ||
      !Usable(op.intermediates[kHiddenIntermediate].scale())) {
    return Unsupported("the model does not say how the hidden value is quantized");
  }
  const Quantization& hidden = op.intermediates[kHiddenIntermediate];
  lstm.hidden = ToFixedPoint(static_cast<float>(0x1p-15 / hidden.scale() * 0x1p-15));
  lstm.hidden_zero_point = hidden.zero_point();
  const float clip = op.params.as<LstmParams>().cell_clip;
  lstm.cell_clip = clip > 0 ? static_cast<int32_t>(std::min(clip / cell_scale, 32767.0f)) : 0;
  return lstm;
}

Status CheckIntegerLstm(const OpDescription& op) {
  const LstmShape shape(op);
  if (shape.peephole || shape.projection || shape.layer_norm) {
    return Unsupported("int8 with peepholes, projection or layer normalization is not taken");
  }
  return ResolveIntegerLstm(op).status();
}

Result<std::unique_ptr<Kernel>> BuildLstmInteger(const OpDescription& op) {
  const LstmShape shape(op);
  FUSELITE_ASSIGN_OR_RETURN(const IntegerLstm lstm, ResolveIntegerLstm(op));
  const Work work{.units = shape.steps > 0 ? shape.batch : 0,
                  .scratch_bytes = kLstmGates * static_cast<size_t>(shape.cells) * sizeof(int16_t)};
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
