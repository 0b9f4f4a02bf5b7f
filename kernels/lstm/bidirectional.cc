// BIDIRECTIONAL_SEQUENCE_LSTM: two UNIDIRECTIONAL_SEQUENCE_LSTMs, of which one reads the sequence
// from its end; both outputs, or with merge_outputs one that has both side by side.
//
// An auxiliary input without weights is what the backward cell reads. With weights, which float32
// alone takes, each step's input is the auxiliary one behind the other, and so are the weights.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kernels/lstm/lstm.h"
#include "kernels/shape_rules.h"
#include "runtime/memory/aligned_buffer.h"
#include "runtime/support/ceil_div.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {

const OperatorDef& UnidirectionalSequenceLstmOperator();

namespace {

struct BidirectionalParams {
  Activation activation;
  float cell_clip, proj_clip;
  bool merge_outputs, time_major, asymmetric_quantize_inputs;
};
using tflite::TfLiteBidirectionalSequenceLSTMParams;
constexpr Field kFields[] = {
    {"fused_activation_function", FieldKind::kActivation, 0,
     offsetof(BidirectionalParams, activation),
     offsetof(TfLiteBidirectionalSequenceLSTMParams, activation)},
    {"cell_clip", FieldKind::kFloat, 1, offsetof(BidirectionalParams, cell_clip),
     offsetof(TfLiteBidirectionalSequenceLSTMParams, cell_clip)},
    {"proj_clip", FieldKind::kFloat, 2, offsetof(BidirectionalParams, proj_clip),
     offsetof(TfLiteBidirectionalSequenceLSTMParams, proj_clip)},
    {"merge_outputs", FieldKind::kBool, 3, offsetof(BidirectionalParams, merge_outputs),
     offsetof(TfLiteBidirectionalSequenceLSTMParams, merge_outputs)},
    {"time_major", FieldKind::kBool, 4, offsetof(BidirectionalParams, time_major),
     offsetof(TfLiteBidirectionalSequenceLSTMParams, time_major), -1, 1, 1},
    {"asymmetric_quantize_inputs", FieldKind::kBool, 5,
     offsetof(BidirectionalParams, asymmetric_quantize_inputs),
     offsetof(TfLiteBidirectionalSequenceLSTMParams, asymmetric_quantize_inputs), -1, 3},
};
constexpr DataType kF32 = DataType::kFloat32, kI8 = DataType::kInt8;
constexpr TypeRow kTypes[] = {{{kF32, kF32, kF32}, kF32}, {{kF32, kI8, kI8}, kF32}};

// Where the inputs of a cell are: 17 from `first` on, in the order of LstmInput, the states, and
// four weights of the auxiliary input.
struct CellPlace {
  int first, states, aux_weights;
};
constexpr CellPlace kForward = {1, 35, 40}, kBackward = {18, 37, 44};
constexpr int kCellOperands = kLstmProjectionBias;  // those between X and the states
constexpr int kAux = 39, kInputs = 48;
constexpr int kStateInputs[] = {35, 36, 37, 38};

bool HasAuxWeights(const OpDescription& op) {
  return op.has_input(kForward.aux_weights + kOutputGate) ||
         op.has_input(kBackward.aux_weights + kOutputGate);
}

// Which input is the X of a cell.
int SourceOf(const OpDescription& op, const CellPlace& place) {
  return place.first == kBackward.first && op.has_input(kAux) && !HasAuxWeights(op) ? kAux : 0;
}

// A cell as an operation of its own; with auxiliary weights X and its weights are wider.
OpDescription CellOf(const OpDescription& op, const CellPlace& place) {
  const auto& params = op.params.as<BidirectionalParams>();
  OpDescription cell;
  cell.op = &UnidirectionalSequenceLstmOperator();
  LstmParams own{};
  own.activation = params.activation;
  own.cell_clip = params.cell_clip;
  own.proj_clip = params.proj_clip;
  own.time_major = params.time_major;
  own.asymmetric_quantize_inputs = params.asymmetric_quantize_inputs;
  cell.params = Params(own);
  cell.version = cell.op->max_version;
  cell.inputs.resize(kLstmOutputState);
  cell.inputs[kLstmX] = op.inputs[SourceOf(op, place)];
  for (int i = 0; i < kCellOperands; ++i) cell.inputs[1 + i] = op.inputs[place.first + i];
  cell.inputs.push_back(op.inputs[place.states]);
  cell.inputs.push_back(op.inputs[place.states + 1]);
  cell.outputs = {{.type = kF32}};
  if (!HasAuxWeights(op)) return cell;
  const auto widen = [](TensorInfo& info, int32_t by) {
    const int last = info.shape.rank() - 1;
    info.shape.set(last, info.shape[last] + by);
  };
  const int32_t width = op.inputs[kAux].shape.dim(-1);
  widen(cell.inputs[kLstmX], width);
  for (int gate = 0; gate < kLstmGates; ++gate) {
    if (op.has_input(place.first + gate)) widen(cell.inputs[kLstmInputWeights + gate], width);
  }
  return cell;
}

Status CheckAux(const OpDescription& op) {
  if (!op.has_input(kAux)) {
    return HasAuxWeights(op) ? InvalidArgument("auxiliary weights without an input") : Status();
  }
  const Shape& x = op.inputs[0].shape;
  const TensorInfo& aux = op.inputs[kAux];
  if (aux.type != kF32 || aux.shape.rank() != 3 || aux.shape[0] != x[0] || aux.shape[1] != x[1]) {
    return InvalidArgument("an auxiliary input of ", aux.shape, " beside ", x);
  }
  if (!HasAuxWeights(op)) return Status();
  for (const CellPlace& place : {kForward, kBackward}) {
    for (int gate = 0; gate < kLstmGates; ++gate) {
      const TensorInfo& weights = op.inputs[place.first + gate];
      const TensorInfo& more = op.inputs[place.aux_weights + gate];
      if (weights.absent() && more.absent()) continue;
      if (weights.type != kF32 || more.type != kF32 || !weights.constant() || !more.constant()) {
        return Unsupported("auxiliary weights that are not constant float32");
      }
      if (weights.shape.rank() != 2 || more.shape != Shape{weights.shape[0], aux.shape[2]}) {
        return InvalidArgument("auxiliary weights of ", more.shape, " beside ", weights.shape);
      }
    }
  }
  return Status();
}

Status InferBidirectional(OpDescription& op) {
  const TensorInfo& x = op.inputs[0];
  if (x.shape.rank() != 3) return InvalidArgument("the input ", x.shape, " is not of rank 3");
  FUSELITE_RETURN_IF_ERROR(CheckAux(op));
  OpDescription forward = CellOf(op, kForward), backward = CellOf(op, kBackward);
  FUSELITE_RETURN_IF_ERROR(Infer(forward).In("the forward cell"));
  FUSELITE_RETURN_IF_ERROR(Infer(backward).In("the backward cell"));
  const bool merged = op.params.as<BidirectionalParams>().merge_outputs;
  if (op.outputs.size() != (merged ? 1 : 2)) {
    return InvalidArgument("has ", op.outputs.size(), " outputs");
  }
  Shape shape = forward.outputs[0].shape;
  const int32_t second = backward.outputs[0].shape[2];
  if (merged) shape.set(2, shape[2] + second);
  FUSELITE_RETURN_IF_ERROR(SetOutput(op, 0, kF32, shape));
  return merged ? Status() : SetOutput(op, 1, kF32, backward.outputs[0].shape);
}

// One of the two, with the rows that it reads and writes in shared memory where they are not the
// operator's own.
struct Cell {
  CellPlace place;
  int source;
  bool backward;
  OpDescription description;
  std::vector<std::vector<float>> weights;  // of X and the auxiliary input, joined
  std::optional<KernelPlan> plan;
  std::shared_ptr<const Kernel> kernel;      // until it is built: the plan's draft
  size_t x_at = 0, y_at = 0, shared_at = 0;  // in shared memory

  int64_t width() const { return description.inputs[kLstmX].shape[2]; }
  int64_t outputs() const { return description.outputs[0].shape[2]; }
};

// The rows of X are gathered, both cells run side by side, phase by phase, and the rows of the
// outputs are written.
class BidirectionalLstm final : public Kernel {
 public:
  BidirectionalLstm(const OpDescription& op, const Candidate& cell)
      : cell_(cell),
        merged_(op.params.as<BidirectionalParams>().merge_outputs),
        aux_width_(HasAuxWeights(op) ? op.inputs[kAux].shape[2] : 0) {}

  Status Plan(const OpDescription& op, const PlanContext& context) {
    PlanContext own = context;
    own.threads = static_cast<int>(CeilDiv(context.threads, 2));  // the cells share them
    size_t at = 0;
    const auto take = [&](size_t bytes) { return std::exchange(at, at + AlignUp(bytes)); };
    for (const bool backward : {false, true}) {
      Cell& cell = cells_[backward];
      cell.place = backward ? kBackward : kForward;
      cell.source = SourceOf(op, cell.place);
      cell.backward = backward;
      cell.description = CellOf(op, cell.place);
      FUSELITE_RETURN_IF_ERROR(Infer(cell.description));
      if (aux_width_ > 0) JoinWeights(op, cell);
      FUSELITE_ASSIGN_OR_RETURN(cell.plan, cell_.Plan(cell.description, own));
      cell.kernel = cell.plan->draft();
      steps_ = LstmShape(cell.description).steps;
      batch_ = LstmShape(cell.description).batch;
      time_major_ = LstmShape(cell.description).time_major;
      rows_ = steps_ * batch_;
      cell.x_at = take(rows_ * cell.width() * sizeof(float));
      cell.y_at = take(rows_ * cell.outputs() * sizeof(float));
      cell.shared_at = take(cell.kernel->shared_bytes());
    }
    shared_bytes_ = at;
    name_ = "bidirectional " + std::string(cells_[0].kernel->name());
    return Status();
  }

  // The joined weights that the descriptions point to are those of the plan, which is still there.
  Status Pack(const OpDescription&, const BuildContext& context) {
    for (Cell& cell : cells_) {
      FUSELITE_ASSIGN_OR_RETURN(cell.kernel, cell.plan->Build(cell.description, context));
    }
    return Status();
  }

  std::string_view name() const override { return name_; }
  int phases() const override {
    return 2 + std::max(cells_[0].kernel->phases(), cells_[1].kernel->phases());
  }
  int64_t units(int phase) const override {
    return moves_rows(phase) ? rows_ : UnitsOf(cells_[0], phase) + UnitsOf(cells_[1], phase);
  }
  int64_t grain(int phase) const override {
    if (moves_rows(phase)) return 64;
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const Cell& cell : cells_) {
      if (UnitsOf(cell, phase) > 0) least = std::min(least, cell.kernel->grain(phase - 1));
    }
    return least;
  }
  size_t scratch_bytes() const override {
    return std::max(cells_[0].kernel->scratch_bytes(), cells_[1].kernel->scratch_bytes());
  }
  size_t shared_bytes() const override { return shared_bytes_; }

  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const override {
    if (!moves_rows(phase)) return RunCells(args, phase, begin, end);
    for (int64_t row = begin; row < end; ++row) {
      for (const Cell& each : cells_) {
        phase == 0 ? Gather(each, args, row) : Store(each, args, row);
      }
    }
    return Status();
  }

 private:
  // Whether rows are gathered or stored; in all other phases both cells run their next one.
  bool moves_rows(int phase) const { return phase == 0 || phase == phases() - 1; }
  static int64_t UnitsOf(const Cell& cell, int phase) {
    return phase <= cell.kernel->phases() ? cell.kernel->units(phase - 1) : 0;
  }

  // Each row of a gate's weights, then that of its auxiliary weights.
  void JoinWeights(const OpDescription& op, Cell& cell) {
    cell.weights.resize(kLstmGates);
    for (int gate = 0; gate < kLstmGates; ++gate) {
      const TensorInfo& weights = op.inputs[cell.place.first + gate];
      const TensorInfo& more = op.inputs[cell.place.aux_weights + gate];
      if (weights.absent()) continue;
      std::vector<float>& joined = cell.weights[gate];
      const int64_t width = weights.shape[1], both = width + aux_width_;
      joined.resize(weights.shape[0] * both);
      for (int64_t r = 0; r < weights.shape[0]; ++r) {
        std::memcpy(&joined[r * both], static_cast<const float*>(weights.data) + r * width,
                    width * sizeof(float));
        std::memcpy(&joined[r * both + width],
                    static_cast<const float*>(more.data) + r * aux_width_,
                    aux_width_ * sizeof(float));
      }
      cell.description.inputs[kLstmInputWeights + gate].data = joined.data();
    }
  }

  // The row of the operator that is row `row` of the cell.
  int64_t Mirrored(const Cell& cell, int64_t row) const {
    if (!cell.backward) return row;
    if (time_major_) return (steps_ - 1 - row / batch_) * batch_ + row % batch_;
    return row / steps_ * steps_ + steps_ - 1 - row % steps_;
  }

  void Gather(const Cell& cell, const KernelArgs& args, int64_t row) const {
    auto* x = reinterpret_cast<float*>(args.shared + cell.x_at) + row * cell.width();
    const int64_t from = Mirrored(cell, row), width = cell.width() - aux_width_;
    std::memcpy(x, static_cast<const float*>(args.inputs[cell.source]) + from * width,
                width * sizeof(float));
    if (aux_width_ == 0) return;
    std::memcpy(x + width, static_cast<const float*>(args.inputs[kAux]) + from * aux_width_,
                aux_width_ * sizeof(float));
  }

  // The units of the forward cell come first.
  Status RunCells(const KernelArgs& args, int phase, int64_t begin, int64_t end) const {
    const int64_t forward = UnitsOf(cells_[0], phase);
    if (begin < forward) {
      FUSELITE_RETURN_IF_ERROR(RunCell(cells_[0], args, phase - 1, begin, std::min(end, forward)));
    }
    if (end <= forward) return Status();
    return RunCell(cells_[1], args, phase - 1, std::max(begin, forward) - forward, end - forward);
  }

  Status RunCell(const Cell& cell, const KernelArgs& args, int phase, int64_t begin,
                 int64_t end) const {
    std::array<const void*, kLstmInputs> inputs{};
    inputs[kLstmX] = args.shared + cell.x_at;
    for (int i = 0; i < kCellOperands; ++i) inputs[1 + i] = args.inputs[cell.place.first + i];
    for (size_t gate = 0; gate < cell.weights.size(); ++gate) {
      if (!cell.weights[gate].empty()) inputs[kLstmInputWeights + gate] = cell.weights[gate].data();
    }
    inputs[kLstmOutputState] = args.inputs[cell.place.states];
    inputs[kLstmCellState] = args.inputs[cell.place.states + 1];
    void* output = args.shared + cell.y_at;
    KernelArgs own = args;
    own.inputs = inputs.data();
    own.outputs = &output;
    own.shared = args.shared + cell.shared_at;
    return cell.kernel->Run(own, phase, begin, end);
  }

  void Store(const Cell& cell, const KernelArgs& args, int64_t row) const {
    const auto* y = reinterpret_cast<const float*>(args.shared + cell.y_at) + row * cell.outputs();
    const int64_t both = cells_[0].outputs() + cells_[1].outputs();
    auto* out = static_cast<float*>(args.outputs[cell.backward && !merged_ ? 1 : 0]);
    if (merged_ && cell.backward) out += cells_[0].outputs();
    std::memcpy(out + Mirrored(cell, row) * (merged_ ? both : cell.outputs()), y,
                cell.outputs() * sizeof(float));
  }

  Candidate cell_;
  bool merged_, time_major_ = false;
  int64_t aux_width_, steps_ = 0, batch_ = 0, rows_ = 0;
  std::array<Cell, 2> cells_;
  size_t shared_bytes_ = 0;
  std::string name_;
};

constexpr Candidate kHighwayCell{"highway", PlanLstmHighway};
constexpr Candidate kReferenceCell{"reference", BuildLstmReference};

template <const Candidate& kCell>
Result<KernelPlan> Plan(const OpDescription& op, const PlanContext& context) {
  if (!op.tail.empty()) return Unsupported(op.op->name, " takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  return PlanThenPack(BidirectionalLstm(op, kCell), op, context);
}

constexpr Candidate kCandidates[] = {
    {"highway", Plan<kHighwayCell>},
    {"reference", Plan<kReferenceCell>},
};

}  // namespace

const OperatorDef& BidirectionalSequenceLstmOperator() {
  static constexpr OperatorDef kDef = {
      .name = "BIDIRECTIONAL_SEQUENCE_LSTM",
      .builtin_code = tflite::kTfLiteBuiltinBidirectionalSequenceLstm,
      .options_type = 69,
      .max_version = 3,
      .fields = kFields,
      .params_bytes = sizeof(BidirectionalParams),
      .struct_bytes = sizeof(TfLiteBidirectionalSequenceLSTMParams),
      .min_inputs = kInputs,
      .max_inputs = kInputs,
      .max_outputs = 2,
      .state_inputs = kStateInputs,
      .types = kTypes,
      .limits =
          "rank 3; run-time operands: all but auxiliary weights, states are variables; "
          "auxiliary weights of constant float32 alone",
      .infer = InferBidirectional,
      .candidates = kCandidates,
      .cost =
          [](const OpDescription& op) {
            const OpDescription forward = CellOf(op, kForward), backward = CellOf(op, kBackward);
            return forward.op->cost(forward) + backward.op->cost(backward);
          },
  };
  return kDef;
}

}  // namespace fuselite::kernels
