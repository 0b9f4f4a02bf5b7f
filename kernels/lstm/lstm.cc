#include "kernels/lstm/lstm.h"

#include <cmath>
#include <string>

#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

using tflite::TfLiteLSTMParams;
using tflite::TfLiteUnidirectionalSequenceLSTMParams;

constexpr Field kLstmFields[] = {
    {"fused_activation_function", FieldKind::kActivation, 0, offsetof(LstmParams, activation),
     offsetof(TfLiteLSTMParams, activation)},
    {"cell_clip", FieldKind::kFloat, 1, offsetof(LstmParams, cell_clip),
     offsetof(TfLiteLSTMParams, cell_clip)},
    {"proj_clip", FieldKind::kFloat, 2, offsetof(LstmParams, proj_clip),
     offsetof(TfLiteLSTMParams, proj_clip)},
    {.name = "kernel_type",
     .kind = FieldKind::kEnum8,
     .id = 3,
     .offset = offsetof(LstmParams, kernel_type),
     .struct_offset = offsetof(TfLiteLSTMParams, kernel_type),
     .since_version = 2},
    {.name = "asymmetric_quantize_inputs",
     .kind = FieldKind::kBool,
     .id = 4,
     .offset = offsetof(LstmParams, asymmetric_quantize_inputs),
     .struct_offset = offsetof(TfLiteLSTMParams, asymmetric_quantize_inputs),
     .since_version = 4},
};

constexpr Field kSequenceFields[] = {
    {"fused_activation_function", FieldKind::kActivation, 0, offsetof(LstmParams, activation),
     offsetof(TfLiteUnidirectionalSequenceLSTMParams, activation)},
    {"cell_clip", FieldKind::kFloat, 1, offsetof(LstmParams, cell_clip),
     offsetof(TfLiteUnidirectionalSequenceLSTMParams, cell_clip)},
    {"proj_clip", FieldKind::kFloat, 2, offsetof(LstmParams, proj_clip),
     offsetof(TfLiteUnidirectionalSequenceLSTMParams, proj_clip)},
    {"time_major", FieldKind::kBool, 3, offsetof(LstmParams, time_major),
     offsetof(TfLiteUnidirectionalSequenceLSTMParams, time_major)},
    {.name = "asymmetric_quantize_inputs",
     .kind = FieldKind::kBool,
     .id = 4,
     .offset = offsetof(LstmParams, asymmetric_quantize_inputs),
     .struct_offset = offsetof(TfLiteUnidirectionalSequenceLSTMParams, asymmetric_quantize_inputs),
     .since_version = 3},
    {.name = "diagonal_recurrent_tensors",
     .kind = FieldKind::kBool,
     .id = 5,
     .offset = offsetof(LstmParams, diagonal_recurrent_tensors),
     .struct_offset = offsetof(TfLiteUnidirectionalSequenceLSTMParams, diagonal_recurrent_tensors),
     .since_version = 4},
};

constexpr DataType kF32 = DataType::kFloat32;
constexpr DataType kI8 = DataType::kInt8;
constexpr TypeRow kTypes[] = {
    {{kF32, kF32, kF32}, kF32}, {{kF32, kI8, kI8}, kF32}, {{kI8, kI8, kI8}, kI8}};
constexpr int kStateInputs[] = {kLstmOutputState, kLstmCellState};

constexpr const char* kGateNames[] = {"input gate's", "forget gate's", "cell gate's",
                                      "output gate's"};

// The types that those of X and the weights call for. `weights` has the projection too, `bias` the
// projection's.
struct OperandTypes {
  DataType weights, peephole, bias, layer_norm, output_state, cell_state;
};

OperandTypes TypesOf(const OpDescription& op) {
  constexpr DataType kI16 = DataType::kInt16;
  if (op.inputs[kLstmX].type == kI8) return {kI8, kI16, DataType::kInt32, kI16, kI8, kI16};
  const DataType weights = IsHybridLstm(op) ? kI8 : kF32;
  return {weights, weights, kF32, kF32, kF32, kF32};
}

// Input `i` must be there with this type and these dimensions.
Status CheckOperand(const OpDescription& op, int i, const std::string& what, DataType type,
                    const Shape& shape) {
  if (!op.has_input(i)) return InvalidArgument("has no ", what);
  const TensorInfo& info = op.inputs[i];
  if (info.type != type) {
    return Unsupported("the ", what, " are ", DataTypeName(info.type), ", not ",
                       DataTypeName(type));
  }
  if (info.shape != shape) {
    return InvalidArgument("the ", what, " have shape ", info.shape, ", expected ", shape);
  }
  return Status();
}

Status CheckAbsent(const OpDescription& op, int i, const std::string& what, const char* why) {
  if (!op.has_input(i)) return Status();
  return InvalidArgument("has the ", what, ", but ", why);
}

Status CheckParams(const OpDescription& op) {
  const auto& params = op.params.as<LstmParams>();
  if (params.kernel_type != 0) return InvalidArgument("the basic form has five inputs");
  if (params.diagonal_recurrent_tensors) {
    return Unsupported("diagonal recurrent weights are not taken");
  }
  if (params.activation == Activation::kSignBit) {
    return Unsupported("the activation SIGN_BIT is not taken");
  }
  // The comparison is false for NaN, too.
  if (!(params.cell_clip >= 0) || !(params.proj_clip >= 0)) {
    return InvalidArgument("cell_clip ", params.cell_clip, " or proj_clip ", params.proj_clip,
                           " is negative");
  }
  return Status();
}

Status CheckGate(const OpDescription& op, const LstmShape& s, int gate) {
  const std::string name = kGateNames[gate];
  const auto dim = [](int64_t size) { return static_cast<int32_t>(size); };
  const Shape vector{dim(s.cells)};
  const OperandTypes types = TypesOf(op);
  FUSELITE_RETURN_IF_ERROR(CheckOperand(op, kLstmInputWeights + gate, name + " input weights",
                                        types.weights, {dim(s.cells), dim(s.inputs)}));
  FUSELITE_RETURN_IF_ERROR(CheckOperand(op, kLstmRecurrentWeights + gate,
                                        name + " recurrent weights", types.weights,
                                        {dim(s.cells), dim(s.outputs)}));
  FUSELITE_RETURN_IF_ERROR(
      CheckOperand(op, kLstmBias + gate, name + " biases", types.bias, vector));
  if (s.layer_norm) {
    FUSELITE_RETURN_IF_ERROR(CheckOperand(op, kLstmLayerNorm + gate,
                                          name + " layer normalization coefficients",
                                          types.layer_norm, vector));
  }
  if (s.peephole && gate != kCellGate) {
    FUSELITE_RETURN_IF_ERROR(CheckOperand(op, kLstmPeephole + PeepholeOf(gate),
                                          name + " peephole weights", types.peephole, vector));
  }
  return Status();
}

// What is only there as a whole: a gate, the peepholes, the projection, the normalization.
Status CheckLeftOut(const OpDescription& op, const LstmShape& s) {
  constexpr const char* kCoupled = "no input weights for that gate";
  if (s.coupled) {
    const std::string name = kGateNames[kInputGate];
    FUSELITE_RETURN_IF_ERROR(
        CheckAbsent(op, kLstmRecurrentWeights, name + " recurrent weights", kCoupled));
    FUSELITE_RETURN_IF_ERROR(CheckAbsent(op, kLstmPeephole, name + " peephole weights", kCoupled));
    FUSELITE_RETURN_IF_ERROR(CheckAbsent(op, kLstmBias, name + " biases", kCoupled));
    FUSELITE_RETURN_IF_ERROR(
        CheckAbsent(op, kLstmLayerNorm, name + " layer normalization coefficients", kCoupled));
  }
  for (int i = 0; i < 2 && !s.peephole; ++i) {
    FUSELITE_RETURN_IF_ERROR(CheckAbsent(op, kLstmPeephole + i,
                                         kGateNames[i] + std::string(" peephole weights"),
                                         "the output gate has none"));
  }
  for (int i = 0; i < kLstmGates && !s.layer_norm; ++i) {
    FUSELITE_RETURN_IF_ERROR(CheckAbsent(
        op, kLstmLayerNorm + i, kGateNames[i] + std::string(" layer normalization coefficients"),
        "the forget gate has none"));
  }
  if (!s.projection) {
    FUSELITE_RETURN_IF_ERROR(
        CheckAbsent(op, kLstmProjectionBias, "projection bias", "no projection weights"));
  }
  return Status();
}

// Other shapes with as many elements are taken, as in TFLite.
Status CheckState(const OpDescription& op, int i, const char* what, DataType type,
                  int64_t elements) {
  if (!op.has_input(i)) return InvalidArgument("has no ", what);
  const TensorInfo& info = op.inputs[i];
  if (info.type != type) {
    return Unsupported("the ", what, " is ", DataTypeName(info.type), ", not ", DataTypeName(type));
  }
  if (info.constant()) return InvalidArgument("the ", what, " is a constant");
  if (info.elements() != elements) {
    return InvalidArgument("the ", what, " has ", info.elements(), " elements, expected ",
                           elements);
  }
  return Status();
}

Status CheckOperands(const OpDescription& op, const LstmShape& s) {
  const OperandTypes types = TypesOf(op);
  for (int gate = s.first_gate(); gate < kLstmGates; ++gate) {
    FUSELITE_RETURN_IF_ERROR(CheckGate(op, s, gate));
  }
  FUSELITE_RETURN_IF_ERROR(CheckLeftOut(op, s));
  const auto outputs = static_cast<int32_t>(s.outputs), cells = static_cast<int32_t>(s.cells);
  if (s.projection) {
    FUSELITE_RETURN_IF_ERROR(
        CheckOperand(op, kLstmProjection, "projection weights", types.weights, {outputs, cells}));
    if (op.has_input(kLstmProjectionBias)) {
      FUSELITE_RETURN_IF_ERROR(
          CheckOperand(op, kLstmProjectionBias, "projection biases", types.bias, {outputs}));
    }
  } else if (outputs != cells) {
    return InvalidArgument("has ", cells, " cells and ", outputs, " outputs, and no projection");
  }
  FUSELITE_RETURN_IF_ERROR(
      CheckState(op, kLstmOutputState, "output state", types.output_state, s.batch * s.outputs));
  FUSELITE_RETURN_IF_ERROR(
      CheckState(op, kLstmCellState, "cell state", types.cell_state, s.batch * s.cells));
  if (IsHybridLstm(op)) return HybridLstmScales(op).status();
  return op.inputs[kLstmX].type == kI8 ? CheckIntegerLstm(op) : Status();
}

// `rank` of the input: [batch, inputs], or three dimensions with the steps.
Status InferLstm(OpDescription& op, int rank) {
  FUSELITE_RETURN_IF_ERROR(CheckParams(op));
  const TensorInfo& x = op.inputs[kLstmX];
  if (x.absent() || x.shape.rank() != rank) {
    return InvalidArgument("the input has shape ", x.shape, ", expected ", rank, " dimensions");
  }
  for (int i : {kLstmInputWeights + kOutputGate, kLstmRecurrentWeights + kOutputGate}) {
    if (!op.has_input(i) || op.inputs[i].shape.rank() != 2) {
      return InvalidArgument("the output gate's weights are not matrices");
    }
  }
  const LstmShape s(op);
  FUSELITE_RETURN_IF_ERROR(CheckOperands(op, s));
  Shape output = x.shape;
  output.set(rank - 1, static_cast<int32_t>(s.outputs));
  const auto checked = Shape::FromDims(output.dims());
  if (!checked) return InvalidArgument("the output ", output, " is too large");
  return SetOutput(op, 0, x.type, output);
}

double Cost(const OpDescription& op) {
  const LstmShape s(op);
  const double gates = kLstmGates - s.first_gate();
  const double cell = gates * static_cast<double>(s.inputs + s.outputs) +
                      (s.projection ? static_cast<double>(s.outputs) : 0.0);
  return static_cast<double>(s.steps) * static_cast<double>(s.batch) *
         static_cast<double>(s.cells) * cell;
}

constexpr Candidate kCandidates[] = {
    {"highway", PlanLstmHighway},
    {"reference", BuildLstmReference},
};

}  // namespace

bool IsHybridLstm(const OpDescription& op) {
  return op.inputs[kLstmX].type == kF32 && op.has_input(kLstmInputWeights + kOutputGate) &&
         op.inputs[kLstmInputWeights + kOutputGate].type == kI8;
}

Result<LstmScales> HybridLstmScales(const OpDescription& op) {
  LstmScales scales{};
  for (int i = 0; i < kLstmInputs; ++i) {
    if (!op.has_input(i) || op.inputs[i].type != kI8) continue;
    const Quantization& q = op.inputs[i].quantization;
    if (q.empty() || q.per_channel() || !std::isfinite(q.scale()) || q.zero_point() != 0) {
      return Unsupported("input ", i, " is 8-bit without a single finite scale and zero point 0");
    }
    scales[i] = q.scale();
  }
  return scales;
}

LstmShape::LstmShape(const OpDescription& op)
    : steps(1),
      batch(op.inputs[kLstmX].shape[0]),
      inputs(op.inputs[kLstmX].shape.dim(-1)),
      cells(op.inputs[kLstmInputWeights + kOutputGate].shape[0]),
      outputs(op.inputs[kLstmRecurrentWeights + kOutputGate].shape[1]),
      time_major(op.params.as<LstmParams>().time_major),
      coupled(!op.has_input(kLstmInputWeights)),
      peephole(op.has_input(kLstmPeephole + 2)),
      projection(op.has_input(kLstmProjection)),
      layer_norm(op.has_input(kLstmLayerNorm + kForgetGate)),
      batch_at_once(op.inputs[kLstmX].shape.rank() != 3 || time_major) {
  if (op.inputs[kLstmX].shape.rank() != 3) return;
  steps = op.inputs[kLstmX].shape[1];
  if (time_major) std::swap(steps, batch);
}

const OperatorDef& LstmOperator() {
  static constexpr OperatorDef kDef = {
      .name = "LSTM",
      .builtin_code = tflite::kTfLiteBuiltinLstm,
      .options_type = 14,
      .max_version = 4,
      .fields = kLstmFields,
      .params_bytes = sizeof(LstmParams),
      .struct_bytes = sizeof(TfLiteLSTMParams),
      .min_inputs = 20,
      .max_inputs = 24,
      .state_inputs = kStateInputs,
      .types = kTypes,
      .limits = "rank 2; the form of five inputs is FUSELITE_BASIC_LSTM",
      .infer = [](OpDescription& op) { return InferLstm(op, 2); },
      .candidates = kCandidates,
      .cost = Cost,
  };
  return kDef;
}

const OperatorDef& UnidirectionalSequenceLstmOperator() {
  static constexpr OperatorDef kDef = {
      .name = "UNIDIRECTIONAL_SEQUENCE_LSTM",
      .builtin_code = tflite::kTfLiteBuiltinUnidirectionalSequenceLstm,
      .options_type = 71,
      .max_version = 4,
      .fields = kSequenceFields,
      .params_bytes = sizeof(LstmParams),
      .struct_bytes = sizeof(TfLiteUnidirectionalSequenceLSTMParams),
      .min_inputs = 20,
      .max_inputs = 24,
      .state_inputs = kStateInputs,
      .types = kTypes,
      .limits = "rank 3; no diagonal recurrent weights",
      .infer = [](OpDescription& op) { return InferLstm(op, 3); },
      .candidates = kCandidates,
      .cost = Cost,
  };
  return kDef;
}

}  // namespace fuselite::kernels
