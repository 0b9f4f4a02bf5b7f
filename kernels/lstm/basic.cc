// FUSELITE_BASIC_LSTM: LSTM's form of five inputs, and the same with states that it is given at
// each run and does not keep.
#include <algorithm>
#include <cmath>

#include "kernels/lstm/basic.h"
#include "kernels/lstm/fixed_point16.h"
#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"

namespace fuselite::kernels {
namespace {

using namespace basic_lstm;

constexpr DataType kF32 = DataType::kFloat32, kU8 = DataType::kUInt8;
constexpr TypeRow kTypes[] = {{{kF32, kF32, kF32}, kF32}, {{kU8, kU8, kU8}, kU8}};
constexpr int kStates[] = {kPrevious, kState};

// The scale of a state with 11 fractional bits; TFLite has no other.
constexpr float kStateScale = 1.0f / 2048;

Status CheckQuantization(const OpDescription& op) {
  const Quantization &weights = op.inputs[kWeights].quantization,
                     &bias = op.inputs[kBias].quantization,
                     &state = op.outputs[kStateOut].quantization;
  if (weights.empty() || weights.per_channel() || bias.empty() || bias.per_channel()) {
    return InvalidArgument("its weights and biases have no single scale");
  }
  // Others leave nothing of the sums, or saturate all of them.
  if (!(bias.scale() > 1e-9f && bias.scale() < 1)) {
    return Unsupported("the biases' scale is ", bias.scale());
  }
  // TFLite allows for a thousandth of a power of two.
  if (state.empty() || !(std::abs(std::log2(state.scale() / kStateScale)) < 1e-3f)) {
    return Unsupported("the state has another scale than 1/2048");
  }
  return Status();
}

Status InferBasicLstm(OpDescription& op) {
  if (op.params.as<LstmParams>().kernel_type != 1) {
    return InvalidArgument("has five inputs, which the full form does not take");
  }
  for (int i : {kX, kPrevious}) {
    if (op.inputs[i].absent() || op.inputs[i].shape.rank() != 2) {
      return InvalidArgument("input ", i, " is no matrix");
    }
  }
  const BasicShape s(op);
  FUSELITE_ASSIGN_OR_RETURN(const Shape weights, MakeShape({s.sums(), s.depth()}));
  FUSELITE_ASSIGN_OR_RETURN(const Shape concatenated, MakeShape({s.batch, s.depth()}));
  FUSELITE_ASSIGN_OR_RETURN(const Shape sums, MakeShape({s.batch, s.sums()}));
  FUSELITE_ASSIGN_OR_RETURN(const Shape bias, MakeShape({s.sums()}));
  FUSELITE_ASSIGN_OR_RETURN(const Shape state, MakeShape({s.batch, s.cells}));
  const bool quantized = op.inputs[kX].type == kU8;
  const DataType sum_type = quantized ? DataType::kInt16 : kF32;
  const struct {
    int input;
    DataType type;
    const Shape& shape;
  } wanted[] = {{kPrevious, op.inputs[kX].type, state},
                {kWeights, op.inputs[kX].type, weights},
                {kBias, quantized ? DataType::kInt32 : kF32, bias},
                {kState, sum_type, state}};
  for (const auto& [input, type, shape] : wanted) {
    const TensorInfo& info = op.inputs[input];
    if (info.absent() || info.type != type || info.shape != shape) {
      return InvalidArgument("input ", input, " is ", DataTypeName(info.type), info.shape,
                             ", expected ", DataTypeName(type), shape);
    }
    if (info.constant() && (input == kPrevious || input == kState)) {
      return InvalidArgument("input ", input, " is a state, but a constant");
    }
  }
  if (quantized) FUSELITE_RETURN_IF_ERROR(CheckQuantization(op));
  FUSELITE_RETURN_IF_ERROR(SetOutput(op, kActivation, op.inputs[kX].type, state));
  FUSELITE_RETURN_IF_ERROR(SetOutput(op, kStateOut, sum_type, state));
  FUSELITE_RETURN_IF_ERROR(SetOutput(op, kConcatenated, op.inputs[kX].type, concatenated));
  return SetOutput(op, kSums, sum_type, sums);
}

// One row of the batch; the states are written last.
template <class T, class S>
struct Row {
  Row(const BasicShape& s, const KernelArgs& args, int64_t b)
      : x(static_cast<const T*>(args.inputs[kX]) + b * s.width),
        weights(static_cast<const T*>(args.inputs[kWeights])),
        previous(static_cast<T*>(const_cast<void*>(args.inputs[kPrevious])) + b * s.cells),
        state(static_cast<S*>(const_cast<void*>(args.inputs[kState])) + b * s.cells),
        activation(static_cast<T*>(args.outputs[kActivation]) + b * s.cells),
        state_out(static_cast<S*>(args.outputs[kStateOut]) + b * s.cells),
        both(static_cast<T*>(args.outputs[kConcatenated]) + b * s.depth()),
        sums(static_cast<S*>(args.outputs[kSums]) + b * s.sums()),
        shape(s) {
    std::copy_n(x, s.width, both);
    std::copy_n(previous, s.cells, both + s.width);
  }
  S Sum(Gate gate, int64_t cell) const { return sums[gate * shape.cells + cell]; }
  void KeepStates() const {
    if (!shape.keeps_states) return;
    std::copy_n(activation, shape.cells, previous);
    std::copy_n(state_out, shape.cells, state);
  }

  const T *x, *weights;
  T* previous;
  S* state;
  T* activation;
  S* state_out;
  T* both;
  S* sums;
  const BasicShape& shape;
};

float Logistic(float x) { return 1 / (1 + std::exp(-x)); }

void RunFloatRow(const BasicShape& s, const KernelArgs& args, int64_t b) {
  const Row<float, float> row(s, args, b);
  const auto* bias = static_cast<const float*>(args.inputs[kBias]);
  for (int64_t i = 0; i < s.sums(); ++i) {
    float sum = bias[i];
    for (int64_t d = 0; d < s.depth(); ++d) sum += row.both[d] * row.weights[i * s.depth() + d];
    row.sums[i] = sum;
  }
  for (int64_t c = 0; c < s.cells; ++c) {
    row.state_out[c] = Logistic(row.Sum(kIn, c)) * std::tanh(row.Sum(kNew, c)) +
                       Logistic(row.Sum(kForget, c)) * row.state[c];
    row.activation[c] = Logistic(row.Sum(kOut, c)) * std::tanh(row.state_out[c]);
  }
  row.KeepStates();
}

struct QuantizedCell {
  int32_t weights_zero_point;
  FixedPoint scaling;  // of the sums to 12 fractional bits

  int16_t Scaled(int64_t sum) const { return Saturate16(ScaleTiesUpwards(sum, scaling)); }

  // `sums` have 12 fractional bits, gates 15, the state 11.
  void Run(const BasicShape& s, const KernelArgs& args, int64_t b) const {
    const Row<uint8_t, int16_t> row(s, args, b);
    const auto* bias = static_cast<const int32_t*>(args.inputs[kBias]);
    for (int64_t i = 0; i < s.sums(); ++i) {
      const uint8_t* weights = row.weights + i * s.depth();
      int64_t sum = bias[i];
      for (int64_t d = 0; d < s.depth(); ++d) {
        sum += (row.both[d] - kBasicLstmZeroPoint) * (weights[d] - weights_zero_point);
      }
      row.sums[i] = Scaled(sum);
    }
    for (int64_t c = 0; c < s.cells; ++c) {
      const int16_t added =
          MultiplyQ15(LogisticQ12(row.Sum(kIn, c)), TanhFixed(row.Sum(kNew, c), 3));
      const int16_t kept = MultiplyQ15(LogisticQ12(row.Sum(kForget, c)), row.state[c]);
      row.state_out[c] = Saturate16(RoundingDivideByPowerOfTwo(added, 4) + kept);
      const int16_t y = MultiplyQ15(LogisticQ12(row.Sum(kOut, c)),
                                    TanhFixed(Saturate16(2 * row.state_out[c]), 3));
      row.activation[c] =
          static_cast<uint8_t>(128 + std::clamp(RoundingDivideByPowerOfTwo(y, 8), -128, 127));
    }
    row.KeepStates();
  }
};

Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported(op.op->name, " takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  const BasicShape s(op);
  const Work work{.units = s.batch, .grain = GrainFor(s.depth() * s.sums())};
  if (op.inputs[kX].type == kF32) {
    return MakeKernel("basic lstm reference", work,
                      [s](const KernelArgs& args, int64_t begin, int64_t end) {
                        for (int64_t b = begin; b < end; ++b) RunFloatRow(s, args, b);
                      });
  }
  const QuantizedCell cell{op.inputs[kWeights].quantization.zero_point(), BasicLstmScale(op)};
  return MakeKernel("basic lstm uint8 reference", work,
                    [s, cell](const KernelArgs& args, int64_t begin, int64_t end) {
                      for (int64_t b = begin; b < end; ++b) cell.Run(s, args, b);
                    });
}

constexpr Candidate kCandidates[] = {{"highway", PlanBasicLstmHighway}, {"reference", Build}};

constexpr OperatorDef Definition(std::string_view name) {
  OperatorDef def;
  def.name = name;
  def.max_version = 4;
  def.params_bytes = sizeof(LstmParams);
  def.min_inputs = def.max_inputs = 5;
  def.min_outputs = def.max_outputs = 4;
  def.types = kTypes;
  def.limits = "rank 2; LSTM of five inputs; uint8 with a state of 1/2048";
  def.infer = InferBasicLstm;
  def.candidates = kCandidates;
  def.cost = [](const OpDescription& op) {
    const BasicShape s(op);
    return static_cast<double>(s.batch * s.depth() * s.sums());
  };
  return def;
}

}  // namespace

FixedPoint BasicLstmScale(const OpDescription& op) {
  return ToFixedPoint(4096.0 * op.inputs[kBias].quantization.scale());
}

const OperatorDef& BasicLstmOperator() {
  static constexpr OperatorDef kDef = [] {
    OperatorDef def = Definition("FUSELITE_BASIC_LSTM");
    def.state_inputs = kStates;
    return def;
  }();
  return kDef;
}

const OperatorDef& BasicLstmStepOperator() {
  static constexpr OperatorDef kDef = Definition("FUSELITE_BASIC_LSTM_STEP");
  return kDef;
}

}  // namespace fuselite::kernels
