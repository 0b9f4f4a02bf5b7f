// RNN, UNIDIRECTIONAL_SEQUENCE_RNN and BIDIRECTIONAL_SEQUENCE_RNN: for each step, with x its input
// and h the state before it, h' = activation(bias + W x + A a + R h), which is the output of the
// step; a is the auxiliary input of the bidirectional form, where it comes with weights. Without
// weights it is the input of the cell that runs backwards, in time-major order.
//
// float32; or float32 with int8 weights of one scale and zero point 0 (hybrid): x, a and h are then
// quantized row by row at each step. uint8 weights hold int8, as old converters wrote them. States
// are written in place. One unit is one row of the batch.
#include "kernels/recurrent/rnn.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "kernels/make_kernel.h"
#include "kernels/recurrent/row_functions.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

using tflite::TfLiteBidirectionalSequenceRNNParams;
using tflite::TfLiteRNNParams;
using tflite::TfLiteSequenceRNNParams;

constexpr Field kRnnFields[] = {
    {"fused_activation_function", FieldKind::kActivation, 0, offsetof(RnnParams, activation),
     offsetof(TfLiteRNNParams, activation)},
    {"asymmetric_quantize_inputs", FieldKind::kBool, 1,
     offsetof(RnnParams, asymmetric_quantize_inputs),
     offsetof(TfLiteRNNParams, asymmetric_quantize_inputs), -1, 3},
};
constexpr Field kSequenceFields[] = {
    {"time_major", FieldKind::kBool, 0, offsetof(RnnParams, time_major),
     offsetof(TfLiteSequenceRNNParams, time_major)},
    {"fused_activation_function", FieldKind::kActivation, 1, offsetof(RnnParams, activation),
     offsetof(TfLiteSequenceRNNParams, activation)},
    {"asymmetric_quantize_inputs", FieldKind::kBool, 2,
     offsetof(RnnParams, asymmetric_quantize_inputs),
     offsetof(TfLiteSequenceRNNParams, asymmetric_quantize_inputs), -1, 3},
};
constexpr Field kBidirectionalFields[] = {
    {"time_major", FieldKind::kBool, 0, offsetof(RnnParams, time_major),
     offsetof(TfLiteBidirectionalSequenceRNNParams, time_major)},
    {"fused_activation_function", FieldKind::kActivation, 1, offsetof(RnnParams, activation),
     offsetof(TfLiteBidirectionalSequenceRNNParams, activation)},
    {"merge_outputs", FieldKind::kBool, 2, offsetof(RnnParams, merge_outputs),
     offsetof(TfLiteBidirectionalSequenceRNNParams, merge_outputs)},
    {"asymmetric_quantize_inputs", FieldKind::kBool, 3,
     offsetof(RnnParams, asymmetric_quantize_inputs),
     offsetof(TfLiteBidirectionalSequenceRNNParams, asymmetric_quantize_inputs), -1, 3},
};

constexpr DataType kF32 = DataType::kFloat32, kI8 = DataType::kInt8, kU8 = DataType::kUInt8;
constexpr TypeRow kTypes[] = {
    {{kF32, kF32, kF32}, kF32}, {{kF32, kI8, kI8}, kF32}, {{kF32, kU8, kU8}, kF32}};

// Inputs of a cell; kAux counts where the cell has weights for it.
struct CellInputs {
  int x, weights, recurrent, bias, state, aux, aux_weights;
};
constexpr int kAux = 9;
constexpr CellInputs kForward = {0, 1, 2, 3, 4, kAux, 10};
constexpr CellInputs kBackward = {0, 5, 6, 7, 8, kAux, 11};
constexpr int kOneState[] = {kForward.state}, kTwoStates[] = {kForward.state, kBackward.state};

bool IsBidirectional(const OpDescription& op) {
  return op.op->builtin_code == tflite::kTfLiteBuiltinBidirectionalSequenceRnn;
}

// An auxiliary input without weights is what the backward cell reads, but LiteRT's kernel does so
// in time-major order alone.
CellInputs BackwardInputs(const OpDescription& op) {
  CellInputs inputs = kBackward;
  const bool own = op.has_input(kAux) && !op.has_input(inputs.aux_weights);
  if (own && op.params.as<RnnParams>().time_major) inputs.x = kAux;
  return inputs;
}

struct RnnShape {
  int64_t steps = 1, batch;
  bool time_major;

  explicit RnnShape(const OpDescription& op)
      : batch(op.inputs[0].shape[0]), time_major(op.params.as<RnnParams>().time_major) {
    if (op.inputs[0].shape.rank() != 3) return;
    steps = op.inputs[0].shape[1];
    if (time_major) std::swap(steps, batch);
  }
  int64_t Row(int64_t step, int64_t b) const {
    return time_major ? step * batch + b : b * steps + step;
  }
};

Status CheckWeights(const OpDescription& op, int input, int32_t rows, int32_t columns) {
  const TensorInfo& weights = op.inputs[input];
  if (weights.type != op.inputs[kForward.weights].type) {
    return Unsupported("does not take weights of ", DataTypeName(weights.type),
                       " beside others of ", DataTypeName(op.inputs[kForward.weights].type));
  }
  if (weights.shape != Shape{rows, columns}) {
    return InvalidArgument("input ", input, " has shape ", weights.shape, ", expected ",
                           Shape{rows, columns});
  }
  const Quantization& q = weights.quantization;
  if (weights.type != kF32 && (q.empty() || q.per_channel() || !std::isfinite(q.scale()))) {
    return Unsupported("input ", input, " has not one finite scale");
  }
  return Status();
}

Status CheckCell(const OpDescription& op, const CellInputs& cell) {
  const TensorInfo& x = op.inputs[cell.x];
  for (const int i : {cell.weights, cell.recurrent, cell.bias, cell.state}) {
    if (!op.has_input(i)) return InvalidArgument("has no input ", i);
  }
  const int32_t units =
      op.inputs[cell.weights].shape.rank() == 2 ? op.inputs[cell.weights].shape[0] : 0;
  FUSELITE_RETURN_IF_ERROR(CheckWeights(op, cell.weights, units, x.shape.dim(-1)));
  FUSELITE_RETURN_IF_ERROR(CheckWeights(op, cell.recurrent, units, units));
  if (op.has_input(cell.aux_weights)) {
    const TensorInfo& aux = op.inputs[cell.aux];
    if (aux.type != kF32 || aux.shape.rank() != 3 || aux.shape[0] != x.shape[0] ||
        aux.shape[1] != x.shape[1]) {
      return InvalidArgument("an auxiliary input of ", aux.shape, " beside ", x.shape);
    }
    FUSELITE_RETURN_IF_ERROR(CheckWeights(op, cell.aux_weights, units, aux.shape[2]));
  }
  const TensorInfo& bias = op.inputs[cell.bias];
  const TensorInfo& state = op.inputs[cell.state];
  const auto batch = static_cast<int32_t>(RnnShape(op).batch);
  if (bias.type != kF32 || bias.shape.elements() != units || state.type != kF32 ||
      state.shape != Shape{batch, units} || state.constant()) {
    return InvalidArgument("bias ", bias.shape, " and state ", state.shape, " of ", units,
                           " units");
  }
  return Status();
}

Status InferRnn(OpDescription& op) {
  const TensorInfo& x = op.inputs[0];
  const auto& params = op.params.as<RnnParams>();
  const bool both = IsBidirectional(op);
  const int rank = op.op->builtin_code == tflite::kTfLiteBuiltinRnn ? 2 : 3;
  if (x.shape.rank() != rank) {
    return InvalidArgument("the input has shape ", x.shape, ", expected ", rank, " dimensions");
  }
  FUSELITE_RETURN_IF_ERROR(CheckCell(op, kForward));
  const int32_t forward = op.inputs[kForward.weights].shape[0];
  Shape shape = x.shape;
  shape.set(rank - 1, forward);
  if (!both) return SetOutput(op, 0, kF32, shape);
  const CellInputs inputs = BackwardInputs(op);
  const TensorInfo& reversed = op.inputs[inputs.x];
  if (op.has_input(kForward.aux_weights) != op.has_input(kBackward.aux_weights) ||
      reversed.type != kF32 || reversed.shape.rank() != 3 || reversed.shape[0] != x.shape[0] ||
      reversed.shape[1] != x.shape[1]) {
    return InvalidArgument("an auxiliary input that fits to neither cell");
  }
  FUSELITE_RETURN_IF_ERROR(CheckCell(op, inputs));
  const int32_t backward = op.inputs[kBackward.weights].shape[0];
  if (op.outputs.size() != (params.merge_outputs ? 1 : 2)) {
    return InvalidArgument("has ", op.outputs.size(), " outputs");
  }
  shape.set(2, params.merge_outputs ? forward + backward : forward);
  FUSELITE_RETURN_IF_ERROR(SetOutput(op, 0, kF32, shape));
  if (params.merge_outputs) return Status();
  shape.set(2, backward);
  return SetOutput(op, 1, kF32, shape);
}

// One cell over the steps of one row of the batch.
class RnnCell {
 public:
  RnnCell(const OpDescription& op, const CellInputs& inputs, bool backward,
          const RecurrentFunctions& functions)
      : functions_(functions),
        inputs_(inputs),
        shape_(op),
        params_(op.params.as<RnnParams>()),
        hybrid_(op.inputs[inputs.weights].type != kF32),
        backward_(backward),
        has_aux_(op.has_input(inputs.aux_weights)),
        width_(op.inputs[inputs.x].shape.dim(-1)),
        aux_width_(has_aux_ ? op.inputs[inputs.aux].shape[2] : 0),
        units_(op.inputs[inputs.weights].shape[0]) {
    const auto scale = [&](int i) { return op.inputs[i].quantization.scale(); };
    // LiteRT's kernel goes through the sequence once for each of its steps here; so do the states.
    if (hybrid_ && shape_.time_major && IsBidirectional(op)) passes_ = shape_.steps;
    scales_ = {scale(inputs.weights), scale(inputs.recurrent),
               has_aux_ ? scale(inputs.aux_weights) : 0};
  }

  int64_t units() const { return units_; }
  size_t scratch_bytes() const {
    const int64_t widest = std::max({width_, aux_width_, units_});
    return widest * sizeof(int16_t) + 2 * units_ * sizeof(float);
  }

  // Row `b`; its outputs are rows of `out`, `pitch` apart.
  void Run(const KernelArgs& args, int64_t b, float* out, int64_t pitch) const {
    auto* h =
        const_cast<float*>(static_cast<const float*>(args.inputs[inputs_.state])) + b * units_;
    auto* next = reinterpret_cast<float*>(args.scratch);
    auto* quantized = hybrid_ ? reinterpret_cast<int16_t*>(next + 2 * units_) : nullptr;
    for (int64_t i = 0; i < passes_ * shape_.steps; ++i) {
      const int64_t step = i % shape_.steps;
      const int64_t row = shape_.Row(backward_ ? shape_.steps - 1 - step : step, b);
      Step(args, row, h, quantized, next);
      std::copy_n(next, units_, h);
      std::copy_n(next, units_, out + row * pitch);
    }
  }

 private:
  struct Scales {
    float weights, recurrent, aux;
  };

  // `next` has room for two floats a unit: the sums, and those of one product.
  void Step(const KernelArgs& args, int64_t row, const float* h, int16_t* quantized,
            float* next) const {
    std::memcpy(next, args.inputs[inputs_.bias], units_ * sizeof(float));
    const auto add = [&](int weights, float scale, const float* values, int64_t n) {
      const RowOperand x =
          functions_.Prepare(values, n, params_.asymmetric_quantize_inputs, quantized);
      float* const products = next + units_;
      RowProducts(functions_.products, args.inputs[weights], units_, scale, x, products);
      for (int64_t u = 0; u < units_; ++u) next[u] += products[u];
    };
    const auto row_of = [&](int input, int64_t n) {
      return static_cast<const float*>(args.inputs[input]) + row * n;
    };
    add(inputs_.weights, scales_.weights, row_of(inputs_.x, width_), width_);
    if (has_aux_) {
      add(inputs_.aux_weights, scales_.aux, row_of(inputs_.aux, aux_width_), aux_width_);
    }
    add(inputs_.recurrent, scales_.recurrent, h, units_);
    functions_.activate(params_.activation, next, units_);
  }

  RecurrentFunctions functions_;
  CellInputs inputs_;
  RnnShape shape_;
  RnnParams params_;
  bool hybrid_, backward_, has_aux_;
  int64_t width_, aux_width_, units_, passes_ = 1;
  Scales scales_{};
};

Result<std::unique_ptr<Kernel>> BuildRnn(const RecurrentFunctions& functions,
                                         const std::string& target, const OpDescription& op) {
  if (!op.tail.empty()) return Unsupported(op.op->name, " takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  const RnnShape shape(op);
  const RnnCell forward(op, kForward, false, functions);
  const int64_t units = shape.steps > 0 ? shape.batch : 0;
  if (!IsBidirectional(op)) {
    return MakeKernel("rnn " + target, {.units = units, .scratch_bytes = forward.scratch_bytes()},
                      [forward](const KernelArgs& args, int64_t begin, int64_t end) {
                        for (int64_t b = begin; b < end; ++b) {
                          forward.Run(args, b, static_cast<float*>(args.outputs[0]),
                                      forward.units());
                        }
                      });
  }
  const RnnCell backward(op, BackwardInputs(op), true, functions);
  const size_t scratch = std::max(forward.scratch_bytes(), backward.scratch_bytes());
  return MakeKernel("bidirectional rnn " + target, {.units = units, .scratch_bytes = scratch},
                    [forward, backward, merged = op.params.as<RnnParams>().merge_outputs](
                        const KernelArgs& args, int64_t begin, int64_t end) {
                      auto* first = static_cast<float*>(args.outputs[0]);
                      auto* second =
                          merged ? first + forward.units() : static_cast<float*>(args.outputs[1]);
                      const int64_t both = forward.units() + backward.units();
                      for (int64_t b = begin; b < end; ++b) {
                        forward.Run(args, b, first, merged ? both : forward.units());
                        backward.Run(args, b, second, merged ? both : backward.units());
                      }
                    });
}

constexpr Candidate kCandidates[] = {{"highway", BuildWithVectors<BuildRnn>},
                                     {"reference", BuildReference<BuildRnn>}};

double Cost(const OpDescription& op) {
  const double width = op.inputs[0].shape.dim(-1), units = op.inputs[1].shape[0];
  return static_cast<double>(op.inputs[0].elements()) / width * units * (width + units) *
         (IsBidirectional(op) ? 2 : 1);
}

constexpr OperatorDef Make(std::string_view name, int code, int options_type,
                           std::span<const Field> fields) {
  OperatorDef def;
  def.name = name;
  def.builtin_code = code;
  def.options_type = options_type;
  def.max_version = 3;
  def.fields = fields;
  def.params_bytes = sizeof(RnnParams);
  def.min_inputs = def.max_inputs = 5;
  def.state_inputs = kOneState;
  def.types = kTypes;
  def.limits = "rank 3";
  def.infer = InferRnn;
  def.candidates = kCandidates;
  def.cost = Cost;
  return def;
}

}  // namespace

const OperatorDef& RnnOperator() {
  static constexpr OperatorDef kDef = [] {
    OperatorDef def = Make("RNN", tflite::kTfLiteBuiltinRnn, 7, kRnnFields);
    def.struct_bytes = sizeof(TfLiteRNNParams);
    def.limits = "rank 2";
    return def;
  }();
  return kDef;
}

const OperatorDef& UnidirectionalSequenceRnnOperator() {
  static constexpr OperatorDef kDef = [] {
    OperatorDef def = Make("UNIDIRECTIONAL_SEQUENCE_RNN",
                           tflite::kTfLiteBuiltinUnidirectionalSequenceRnn, 31, kSequenceFields);
    def.struct_bytes = sizeof(TfLiteSequenceRNNParams);
    return def;
  }();
  return kDef;
}

const OperatorDef& BidirectionalSequenceRnnOperator() {
  static constexpr OperatorDef kDef = [] {
    OperatorDef def =
        Make("BIDIRECTIONAL_SEQUENCE_RNN", tflite::kTfLiteBuiltinBidirectionalSequenceRnn, 70,
             kBidirectionalFields);
    def.struct_bytes = sizeof(TfLiteBidirectionalSequenceRNNParams);
    def.min_inputs = 9;
    def.max_inputs = 12;
    def.max_outputs = 2;
    def.state_inputs = kTwoStates;
    return def;
  }();
  return kDef;
}

}  // namespace fuselite::kernels
