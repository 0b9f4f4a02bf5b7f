// LSTM (its full form) and UNIDIRECTIONAL_SEQUENCE_LSTM: gates over a step or a sequence of steps,
// with a state that outlives the run.
#pragma once

#include <array>

#include "kernels/operator.h"

namespace fuselite::kernels {

struct LstmParams {
  Activation activation;  // of the cell's input and of its output; the gates are logistic
  float cell_clip;        // 0: none
  float proj_clip;        // 0: none
  int32_t kernel_type;    // LSTM only; 0: full, 1: basic
  bool time_major;        // UNIDIRECTIONAL_SEQUENCE_LSTM only
  bool asymmetric_quantize_inputs;
  bool diagonal_recurrent_tensors;
};

// The operator's inputs. Groups of four are in the order of the gates below.
enum LstmInput : int {
  kLstmX = 0,
  kLstmInputWeights = 1,      // 4 of [cells, inputs]
  kLstmRecurrentWeights = 5,  // 4 of [cells, outputs]
  kLstmPeephole = 9,          // 3 of [cells]: input gate, forget gate, output gate
  kLstmBias = 12,             // 4 of [cells]
  kLstmProjection = 16,       // [outputs, cells]
  kLstmProjectionBias = 17,   // [outputs]
  kLstmOutputState = 18,      // [batch, outputs], read and written
  kLstmCellState = 19,        // [batch, cells], read and written
  kLstmLayerNorm = 20,        // 4 of [cells]
  kLstmInputs = 24,
};

inline constexpr int kInputGate = 0, kForgetGate = 1, kCellGate = 2, kOutputGate = 3;
inline constexpr int kLstmGates = 4;

// What Infer has checked.
struct LstmShape {
  int64_t steps, batch, inputs, cells, outputs;
  bool time_major;  // rows of X and of the output are [steps, batch], else [batch, steps]
  // "Coupled input and forget gates": no input gate, 1 - forget gate stands for it.
  bool coupled;
  bool peephole, projection, layer_norm;
  bool batch_at_once;  // TFLite's kernels compute a step for all rows of the batch, else for each

  explicit LstmShape(const OpDescription& op);
  int64_t Row(int64_t step, int64_t b) const {
    return time_major ? step * batch + b : b * steps + step;
  }
  int first_gate() const { return coupled ? kForgetGate : kInputGate; }
};

// For each step, with x its input, h and c the states before it, c' and h' those after:
//   g = Wx[g] x + Wr[g] h + p[g] c + bias[g]     (p: peepholes; the output gate's reads c')
//   c' = clip(logistic(forget) c + logistic(input) activation(cell))
//   m = logistic(output) activation(c')
//   h' = clip(P m + projection bias), or m where there is no projection; the output of the step.
// With layer normalization a gate's sum, without the bias, is brought to mean 0 and variance 1 over
// the cells first, then scaled by its coefficients; the bias is added to that.
// float32; or float32 with int8 weights and peepholes (hybrid): x, h and m are then quantized row
// by row at each step (kernels/dynamic_quantization/dynamic_scale.h); or int8 with int8 weights,
// int32 biases, peepholes and coefficients of int16 and an int16 cell state, to the bit as TFLite's
// integer kernel, which has tanh for both activations whatever the parameter says, and takes the
// quantization of the hidden value m from op.intermediates[4], those of sums to be normalized from
// the first four; with twelve of them it is the form of integer_bytes.cc. The state inputs are
// written in place (OperatorDef::state_inputs). One unit is one row of the batch through all its
// steps.
Result<std::unique_ptr<Kernel>> BuildLstmReference(const OpDescription&, const BuildContext&);
// The weights are constant. Phase 0 multiplies every step's input at once.
Result<KernelPlan> PlanLstmHighway(const OpDescription&, const PlanContext&);

// Among the peepholes, which the cell gate has none of.
constexpr int PeepholeOf(int gate) { return gate == kOutputGate ? 2 : gate; }

// The hybrid form: the scale of each int8 input, by LstmInput. Fails unless each has one, and zero
// point 0.
bool IsHybridLstm(const OpDescription& op);
using LstmScales = std::array<float, kLstmInputs>;
Result<LstmScales> HybridLstmScales(const OpDescription& op);

// The int8 form: what Infer checks beyond shapes, the reference, and the part of the Highway
// version that takes it.
Status CheckIntegerLstm(const OpDescription& op);
Result<std::unique_ptr<Kernel>> BuildLstmInteger(const OpDescription& op);
Result<KernelPlan> PlanLstmIntegerHighway(const OpDescription&, const PlanContext&);

const OperatorDef& LstmOperator();

// FUSELITE_BASIC_LSTM, LSTM's form of five inputs: x [batch, inputs], the previous output h [batch,
// cells], weights [4 cells, inputs + cells], bias [4 cells], the state c [batch, cells]. With s the
// sums weights [x h] + bias, whose rows are those of the input gate, the new values, the forget
// gate and the output gate:
//   c' = logistic(s[0]) tanh(s[1]) + logistic(s[2]) c,   h' = logistic(s[3]) tanh(c')
// Outputs: h', c', [x h], s; h and c are variables and become h' and c'. float32; or uint8 with
// zero point 128, int32 biases, int16 sums of 12 fractional bits and an int16 state of 11, to the
// bit as TFLite's kernel. One unit is one row of the batch. TFLite's reference is
// reference_ops::LstmCell.
const OperatorDef& BasicLstmOperator();
// As BasicLstmOperator(), with states that are values of the run, and stay as they are.
const OperatorDef& BasicLstmStepOperator();

// What layer normalization adds to the variance.
inline constexpr float kLstmVarianceFloor = 1e-8f;

}  // namespace fuselite::kernels
