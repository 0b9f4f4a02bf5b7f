// The int8 LSTM with vectors.
#include <algorithm>
#include <cstdlib>

#include "kernels/lstm/integer_cells.h"
#include "kernels/lstm/products.h"
#include "kernels/lstm/two_phases.h"
#include "kernels/simd.h"
#include "runtime/memory/aligned_buffer.h"

namespace fuselite::kernels {
namespace {

class IntegerLstmKernel final : public TwoPhaseLstm {
 public:
  explicit IntegerLstmKernel(const OpDescription& op) : TwoPhaseLstm(op, sizeof(int16_t)) {}
  Status Plan(const OpDescription& op, const PlanContext& context);
  Status Pack(const OpDescription& op, const BuildContext& context);

  size_t scratch_bytes() const override {
    return std::max(block_sums_at() + AlignUp(kBlockRows * row_ * sizeof(int32_t)),
                    hidden_at() + Room<int8_t>(s_.cells));
  }

 private:
  template <class T>
  static size_t Room(int64_t values) {
    return AlignUp(values * sizeof(T) + kVectorRoom);
  }
  // Scratch in both phases: biases with corrections. In phase 0: the biases of all gates, rows of
  // inputs as products read them, sums. In phase 1, of a step: sums, the gates' values, the cell
  // state, the output state and hidden values to be projected as products read them, hidden values.
  size_t biases_at() const { return AlignUp(std::max(row_, s_.outputs) * sizeof(int32_t)); }
  size_t rows_at() const { return biases_at() + AlignUp(row_ * sizeof(int32_t)); }
  size_t block_sums_at() const {
    return rows_at() + AlignUp(kBlockRows * products_.RowBytes(s_.inputs));
  }
  size_t sums_at() const { return biases_at(); }
  size_t gates_at() const { return sums_at() + Room<int32_t>(std::max(row_, s_.outputs)); }
  size_t cells_at() const { return gates_at() + Room<int16_t>(row_); }
  size_t state_at() const { return cells_at() + Room<int16_t>(s_.cells); }
  size_t left_at() const { return state_at() + Room<std::byte>(products_.RowBytes(s_.outputs)); }
  size_t hidden_at() const { return left_at() + Room<std::byte>(products_.RowBytes(s_.cells)); }
  template <class T>
  static T* Scratch(const KernelArgs& args, size_t at) {
    return reinterpret_cast<T*>(args.scratch + at);
  }
  int16_t* FromInput(const KernelArgs& args, int64_t row) const {
    return reinterpret_cast<int16_t*>(args.shared) + row * row_;
  }

  void MultiplyInputs(const KernelArgs& args, int64_t first, int64_t rows) const override;
  void RunSteps(const KernelArgs& args, int64_t b) const override;
  IntegerLstmStep StepOf(const KernelArgs& args) const;
  // From the sums to the hidden values.
  void Cells(const KernelArgs& args, const IntegerLstmStep& step, int64_t b) const;
  // What peepholes and normalization do to the values of a gate.
  void FinishGate(const KernelArgs& args, const IntegerLstmStep& step, int gate, int64_t b) const;
  // The product of one row, a state or hidden values.
  void MultiplyRow(const KernelArgs& args, const IntegerMatrix& matrix, const IntegerRow& row,
                   const void* bias) const {
    products_.Multiply(matrix, row, 1, static_cast<const int32_t*>(bias), Scratch<int32_t>(args, 0),
                       Scratch<int32_t>(args, sums_at()));
  }

  IntegerLstm lstm_{};
  IntegerProducts products_;
  const IntegerLstmFunctions* functions_ = nullptr;
  IntegerMatrix input_, recurrent_, projection_;  // the first two of all gates
};

Status IntegerLstmKernel::Plan(const OpDescription& op, const PlanContext& context) {
  if (IsByteLstm(op)) return Unsupported("does not take sums of 8 bits");
  FUSELITE_RETURN_IF_ERROR(products_.Init(context.isa));
  functions_ = FindIntegerLstm(context.isa);
  FUSELITE_RETURN_IF_ERROR(CheckSharedBytes());
  FUSELITE_ASSIGN_OR_RETURN(lstm_, ResolveIntegerLstm(op));
  for (const int32_t zero_point :
       {lstm_.x_zero_point, lstm_.h_zero_point, lstm_.hidden_zero_point}) {
    if (std::abs(zero_point) > 255) return Unsupported("does not take a zero point beyond 8 bits");
  }
  name_ = internal::Join("lstm s8 ", SimdName(context.isa));
  for (int gate = s_.first_gate(); gate < kLstmGates; ++gate) {
    FUSELITE_RETURN_IF_ERROR(CheckLstmWeights(op.inputs[kLstmInputWeights + gate]));
    FUSELITE_RETURN_IF_ERROR(CheckLstmWeights(op.inputs[kLstmRecurrentWeights + gate]));
  }
  return s_.projection ? CheckLstmWeights(op.inputs[kLstmProjection]) : Status();
}

Status IntegerLstmKernel::Pack(const OpDescription& op, const BuildContext& context) {
  const auto gates = [&](int first) { return LstmGateWeights(op, first); };
  FUSELITE_ASSIGN_OR_RETURN(input_,
                            products_.Pack(gates(kLstmInputWeights), lstm_.x_zero_point, context));
  FUSELITE_ASSIGN_OR_RETURN(
      recurrent_, products_.Pack(gates(kLstmRecurrentWeights), lstm_.h_zero_point, context));
  if (!s_.projection) return Status();
  FUSELITE_ASSIGN_OR_RETURN(projection_, products_.Pack({&op.inputs[kLstmProjection], 1},
                                                        lstm_.hidden_zero_point, context));
  return Status();
}

void IntegerLstmKernel::MultiplyInputs(const KernelArgs& args, int64_t first, int64_t rows) const {
  const auto* x = static_cast<const int8_t*>(args.inputs[kLstmX]) + first * s_.inputs;
  const int64_t row_bytes = products_.RowBytes(s_.inputs);
  const auto row = [&](int64_t r) {
    return products_.RowIn(args.scratch + rows_at() + r * row_bytes, input_);
  };
  for (int64_t r = 0; r < rows; ++r) products_.Prepare(x + r * s_.inputs, s_.inputs, row(r));
  const int32_t* bias = JoinBiases(args, Scratch<int32_t>(args, biases_at()));
  auto* const sums = Scratch<int32_t>(args, block_sums_at());
  products_.Multiply(input_, row(0), rows, bias, Scratch<int32_t>(args, 0), sums);
  for (int gate = s_.first_gate(); gate < kLstmGates; ++gate) {
    const int64_t at = (gate - s_.first_gate()) * s_.cells;
    functions_->from_input(sums + at, rows, row_, s_.cells, lstm_.input[gate],
                           FromInput(args, first) + at);
  }
}

IntegerLstmStep IntegerLstmKernel::StepOf(const KernelArgs& args) const {
  IntegerLstmStep step{};
  step.lstm = &lstm_;
  step.cells = s_.cells;
  step.first_gate = s_.first_gate();
  step.from_state = Scratch<int32_t>(args, sums_at());
  step.gates = Scratch<int16_t>(args, gates_at());
  step.c = Scratch<int16_t>(args, cells_at());
  step.hidden = Scratch<int8_t>(args, hidden_at());
  step.left = s_.projection ? products_.RowIn(args.scratch + left_at(), projection_)
                            : products_.RowIn(args.scratch + state_at(), recurrent_);
  return step;
}

void IntegerLstmKernel::RunSteps(const KernelArgs& args, int64_t b) const {
  // Variables are bound as inputs and written in place.
  const auto variable = [&](int i) { return const_cast<void*>(args.inputs[i]); };
  auto* const h_state = static_cast<int8_t*>(variable(kLstmOutputState)) + b * s_.outputs;
  auto* const c_state = static_cast<int16_t*>(variable(kLstmCellState)) + b * s_.cells;
  const IntegerRow h = products_.RowIn(args.scratch + state_at(), recurrent_);
  IntegerLstmStep step = StepOf(args);
  std::copy_n(c_state, s_.cells, step.c);
  products_.Prepare(h_state, s_.outputs, h);
  const int8_t* last = h_state;
  for (int64_t t = 0; t < s_.steps; ++t) {
    const int64_t row = s_.Row(t, b);
    int8_t* const y = static_cast<int8_t*>(args.outputs[0]) + row * s_.outputs;
    MultiplyRow(args, recurrent_, h, nullptr);
    step.from_input = FromInput(args, row);
    Cells(args, step, b);
    if (s_.projection) {
      MultiplyRow(args, projection_, step.left, args.inputs[kLstmProjectionBias]);
      functions_->project(lstm_, step.from_state, s_.outputs, y, h);
    } else {
      std::copy_n(step.hidden, s_.cells, y);
    }
    last = y;
  }
  std::copy_n(step.c, s_.cells, c_state);
  if (last != h_state) std::copy_n(last, s_.outputs, h_state);
}

void IntegerLstmKernel::Cells(const KernelArgs& args, const IntegerLstmStep& step,
                              int64_t b) const {
  if (!s_.peephole && !s_.layer_norm) return functions_->whole(step);
  functions_->gates(step);
  for (int gate = s_.first_gate(); gate < kOutputGate; ++gate) FinishGate(args, step, gate, b);
  functions_->update(step);
  FinishGate(args, step, kOutputGate, b);
  functions_->output(step);
}

void IntegerLstmKernel::FinishGate(const KernelArgs& args, const IntegerLstmStep& step, int gate,
                                   int64_t b) const {
  const auto coefficients = [&](int first, int i) {
    return static_cast<const int16_t*>(args.inputs[first + i]);
  };
  int16_t* const values = step.gates + step.At(gate);
  if (s_.peephole && gate != kCellGate) {
    AddPeephole(s_, coefficients(kLstmPeephole, PeepholeOf(gate)), step.c, b, lstm_.peephole[gate],
                values);
  }
  if (!s_.layer_norm) return;
  NormalizeGate(lstm_.norm[gate], coefficients(kLstmLayerNorm, gate),
                static_cast<const int32_t*>(args.inputs[kLstmBias + gate]), s_.cells, values);
}

}  // namespace

Result<KernelPlan> PlanLstmIntegerHighway(const OpDescription& op, const PlanContext& context) {
  return PlanThenPack(IntegerLstmKernel(op), op, context);
}

}  // namespace fuselite::kernels
