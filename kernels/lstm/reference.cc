#include <algorithm>
#include <cmath>

#include "kernels/lstm/lstm.h"
#include "kernels/make_kernel.h"
#include "kernels/recurrent/row_products.h"
#include "kernels/shape_rules.h"

namespace fuselite::kernels {
namespace {

float Logistic(float x) { return 1.0f / (1.0f + std::exp(-x)); }

float Clip(float x, float bound) { return bound > 0 ? std::clamp(x, -bound, bound) : x; }

// One row of the batch: its states, and the scratch of one step.
class RowRun {
 public:
  // `scales`: of the hybrid form, else null.
  RowRun(const LstmShape& shape, const LstmParams& params, const LstmScales* scales,
         const KernelArgs& args, int64_t b)
      : s_(shape),
        params_(params),
        scales_(scales),
        args_(args),
        h_(State(kLstmOutputState) + b * shape.outputs),
        c_(State(kLstmCellState) + b * shape.cells),
        gates_(reinterpret_cast<float*>(args.scratch)),
        quantized_(reinterpret_cast<int16_t*>(gates_ + kLstmGates * shape.cells)) {}

  static size_t ScratchBytes(const LstmShape& s, bool hybrid) {
    const int64_t quantized = hybrid ? s.inputs + s.outputs + s.cells : 0;
    return kLstmGates * s.cells * sizeof(float) + quantized * sizeof(int16_t);
  }

  void Step(const float* x, float* y) {
    const RowOperand input = Prepare(x, s_.inputs, quantized_);
    const RowOperand state = Prepare(h_, s_.outputs, quantized_ + s_.inputs);
    for (int gate = s_.first_gate(); gate <= kCellGate; ++gate) SumGate(gate, input, state);
    // Here already: it reads the output state, which is written at the end.
    SumGate(kOutputGate, input, state);
    for (int gate = s_.first_gate(); gate <= kCellGate; ++gate) FinishGate(gate);
    for (int64_t i = 0; i < s_.cells; ++i) {
      const float forget = Gate(kForgetGate)[i];
      const float input = s_.coupled ? 1.0f - forget : Gate(kInputGate)[i];
      c_[i] = Clip(forget * c_[i] + input * Gate(kCellGate)[i], params_.cell_clip);
    }
    FinishGate(kOutputGate);
    float* m = Gate(kOutputGate);
    for (int64_t i = 0; i < s_.cells; ++i) m[i] *= Activate(params_.activation, c_[i]);
    Project(m, y);
    std::copy_n(y, s_.outputs, h_);
  }

 private:
  template <class T = float>
  const T* In(int i) const {
    return static_cast<const T*>(args_.inputs[i]);
  }
  // Variables are bound as inputs and written in place.
  float* State(int i) const { return const_cast<float*>(In(i)); }
  float* Gate(int gate) const { return gates_ + gate * s_.cells; }

  RowOperand Prepare(const float* values, int64_t n, int16_t* quantized) const {
    return PrepareRow(values, n, params_.asymmetric_quantize_inputs,
                      scales_ == nullptr ? nullptr : quantized);
  }

  // Row `row` of the weights in input `weights` times `x`.
  float Product(int weights, int64_t row, const RowOperand& x) const {
    const float scale = scales_ == nullptr ? 0 : (*scales_)[weights];
    return RowProduct(args_.inputs[weights], row, scale, x);
  }

  // Weights times input and output state; the bias too where no normalization comes between.
  void SumGate(int gate, const RowOperand& x, const RowOperand& h) {
    for (int64_t i = 0; i < s_.cells; ++i) {
      const float start = s_.layer_norm ? 0.0f : In(kLstmBias + gate)[i];
      Gate(gate)[i] = start + Product(kLstmInputWeights + gate, i, x) +
                      Product(kLstmRecurrentWeights + gate, i, h);
    }
  }

  float PeepholeWeight(int gate, int64_t i) const {
    const int input = kLstmPeephole + (gate == kOutputGate ? 2 : gate);
    return scales_ == nullptr ? In(input)[i] : In<int8_t>(input)[i] * (*scales_)[input];
  }

  void FinishGate(int gate) {
    float* g = Gate(gate);
    if (s_.peephole && gate != kCellGate) {
      for (int64_t i = 0; i < s_.cells; ++i) g[i] += PeepholeWeight(gate, i) * c_[i];
    }
    if (s_.layer_norm) Normalize(gate);
    for (int64_t i = 0; i < s_.cells; ++i) {
      g[i] = gate == kCellGate ? Activate(params_.activation, g[i]) : Logistic(g[i]);
    }
  }

  void Normalize(int gate) {
    float* g = Gate(gate);
    const auto count = static_cast<float>(s_.cells);
    float sum = 0, squares = 0;
    for (int64_t i = 0; i < s_.cells; ++i) sum += g[i];
    const float mean = sum / count;
    for (int64_t i = 0; i < s_.cells; ++i) squares += (g[i] - mean) * (g[i] - mean);
    const float scale = 1.0f / std::sqrt(squares / count + kLstmVarianceFloor);
    const float* coefficients = In(kLstmLayerNorm + gate);
    const float* bias = In(kLstmBias + gate);
    for (int64_t i = 0; i < s_.cells; ++i) {
      g[i] = (g[i] - mean) * scale * coefficients[i] + bias[i];
    }
  }

  void Project(const float* m, float* y) const {
    if (!s_.projection) {
      std::copy_n(m, s_.outputs, y);
      return;
    }
    const float* bias = In(kLstmProjectionBias);
    const RowOperand hidden = Prepare(m, s_.cells, quantized_ + s_.inputs + s_.outputs);
    for (int64_t o = 0; o < s_.outputs; ++o) {
      const float start = bias != nullptr ? bias[o] : 0.0f;
      const float sum = start + Product(kLstmProjection, o, hidden);
      y[o] = Clip(sum, params_.proj_clip);
    }
  }

  const LstmShape& s_;
  const LstmParams& params_;
  const LstmScales* scales_;
  const KernelArgs& args_;
  float* const h_;
  float* const c_;
  float* const gates_;
  int16_t* const quantized_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildLstmReference(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported(op.op->name, " takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  if (op.inputs[kLstmX].type == DataType::kInt8) return BuildLstmInteger(op);
  const LstmShape shape(op);
  const bool hybrid = IsHybridLstm(op);
  LstmScales scales{};
  if (hybrid) {
    FUSELITE_ASSIGN_OR_RETURN(scales, HybridLstmScales(op));
  }
  const Work work{.units = shape.steps > 0 ? shape.batch : 0,
                  .scratch_bytes = RowRun::ScratchBytes(shape, hybrid)};
  return MakeKernel(hybrid ? "lstm hybrid int8 reference" : "lstm f32 reference", work,
                    [shape, hybrid, scales, params = op.params.as<LstmParams>()](
                        const KernelArgs& args, int64_t begin, int64_t end) {
                      const auto* x = static_cast<const float*>(args.inputs[kLstmX]);
                      auto* y = static_cast<float*>(args.outputs[0]);
                      for (int64_t b = begin; b < end; ++b) {
                        RowRun run(shape, params, hybrid ? &scales : nullptr, args, b);
                        for (int64_t t = 0; t < shape.steps; ++t) {
                          const int64_t row = shape.Row(t, b);
                          run.Step(x + row * shape.inputs, y + row * shape.outputs);
                        }
                      }
                    });
}

}  // namespace fuselite::kernels
