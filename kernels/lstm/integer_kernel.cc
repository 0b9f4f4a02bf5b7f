// The int8 LSTM with vectors.
#include <algorithm>
#include <cstdlib>

#include "kernels/lstm/fast_lstm.h"
#include "kernels/lstm/integer_cells.h"
#include "kernels/lstm/products.h"
#include "kernels/simd.h"
#include "runtime/memory/aligned_buffer.h"

namespace fuselite::kernels {
namespace {

class IntegerLstmKernel final : public FastLstm {
 public:
  explicit IntegerLstmKernel(const OpDescription& op) : FastLstm(op, sizeof(int16_t)) {}
  Status Plan(const OpDescription& op, const PlanContext& context);
  Status Pack(const OpDescription& op, const BuildContext& context);

  size_t scratch_bytes() const override {
    return std::max(block_sums_at() + AlignUp(kBlockRows * part_sums() * sizeof(int32_t)),
                    hidden_at() + Room<int8_t>(part_cells()));
  }

 private:
  template <class T>
  static size_t Room(int64_t values) {
    return AlignUp(values * sizeof(T) + kVectorRoom);
  }
  // Scratch in all phases, of a part of the cells: biases with corrections. In phase 0: the biases
  // of all gates, rows of inputs as products read them, sums. Of a step: sums, the gates' values,
  // the cell state, output states and hidden values to be projected as products read them, hidden
  // values.
  size_t biases_at() const { return AlignUp(std::max(part_sums(), s_.outputs) * sizeof(int32_t)); }
  size_t rows_at() const { return biases_at() + AlignUp(part_sums() * sizeof(int32_t)); }
  size_t block_sums_at() const {
    return rows_at() + AlignUp(kBlockRows * products_.RowBytes(s_.inputs));
  }
  size_t sums_at() const { return biases_at(); }
  size_t gates_at() const {
    return sums_at() + Room<int32_t>(std::max(rows_together() * part_sums(), s_.outputs));
  }
  size_t cells_at() const { return gates_at() + Room<int16_t>(part_sums()); }
  size_t state_at() const { return cells_at() + Room<int16_t>(part_cells()); }
  size_t left_at() const {
    return state_at() + Room<std::byte>(rows_together() * products_.RowBytes(s_.outputs));
  }
  size_t hidden_at() const { return left_at() + Room<std::byte>(products_.RowBytes(s_.cells)); }
  template <class T>
  static T* Scratch(const KernelArgs& args, size_t at) {
    return reinterpret_cast<T*>(args.scratch + at);
  }
  int16_t* FromInput(const KernelArgs& args, int64_t row) const {
    return reinterpret_cast<int16_t*>(args.shared) + row * row_;
  }

  void MultiplyInputs(const KernelArgs& args, size_t part, int64_t first,
                      int64_t rows) const override;
  void RunSteps(const KernelArgs& args, int64_t b) const override;
  void RunStep(const KernelArgs& args, int64_t step, size_t part, int64_t b,
               int64_t rows) const override;
  IntegerLstmStep StepOf(const KernelArgs& args, const Part& part) const;
  // From the sums to the hidden values.
  void Cells(const KernelArgs& args, const IntegerLstmStep& step, int64_t b) const;
  // What peepholes and normalization do to the values of a gate.
  void FinishGate(const KernelArgs& args, const IntegerLstmStep& step, int gate, int64_t b) const;
  // The product of one row, a state or hidden values.
  void MultiplyRow(const KernelArgs& args, const IntegerMatrix& matrix, const IntegerRow& row,
                   const void* bias, bool backwards) const {
    products_.Multiply(matrix, row,
                       {.rows = 1,
                        .bias = static_cast<const int32_t*>(bias),
                        .sums = Scratch<int32_t>(args, sums_at()),
                        .backwards = backwards},
                       Scratch<int32_t>(args, 0));
  }

  IntegerLstm lstm_{};
  IntegerProducts products_;
  const IntegerLstmFunctions* functions_ = nullptr;
  std::vector<IntegerMatrix> input_, recurrent_;  // of all gates, for each part
  IntegerMatrix projection_;
};

Status IntegerLstmKernel::Plan(const OpDescription& op, const PlanContext& context) {
  if (IsByteLstm(op)) return Unsupported("does not take sums of 8 bits");
  FUSELITE_RETURN_IF_ERROR(products_.Init(context.isa));
  functions_ = FindIntegerLstm(context.isa);
  FUSELITE_RETURN_IF_ERROR(DivideCells(context, products_.weight_bytes()));
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
  for (const Part& part : parts()) {
    const auto gates = [&](int first) { return GateWeights(op, first, part); };
    FUSELITE_ASSIGN_OR_RETURN(input_.emplace_back(), products_.Pack(gates(kLstmInputWeights),
                                                                    lstm_.x_zero_point, context));
    FUSELITE_ASSIGN_OR_RETURN(
        recurrent_.emplace_back(),
        products_.Pack(gates(kLstmRecurrentWeights), lstm_.h_zero_point, context));
  }
  if (!s_.projection) return Status();
  FUSELITE_ASSIGN_OR_RETURN(projection_, products_.Pack({&op.inputs[kLstmProjection], 1},
                                                        lstm_.hidden_zero_point, context));
  return Status();
}

void IntegerLstmKernel::MultiplyInputs(const KernelArgs& args, size_t part, int64_t first,
                                       int64_t rows) const {
  const Part& at = parts()[part];
  const auto* x = static_cast<const int8_t*>(args.inputs[kLstmX]) + first * s_.inputs;
  const int64_t row_bytes = products_.RowBytes(s_.inputs);
  const auto row = [&](int64_t r) {
    return products_.RowIn(args.scratch + rows_at() + r * row_bytes, input_[part]);
  };
  for (int64_t r = 0; r < rows; ++r) products_.Prepare(x + r * s_.inputs, s_.inputs, row(r));
  auto* const sums = Scratch<int32_t>(args, block_sums_at());
  products_.Multiply(input_[part], row(0),
                     {.rows = rows,
                      .bias = JoinBiases(args, at, Scratch<int32_t>(args, biases_at())),
                      .sums = sums,
                      .backwards = Backwards(args, 0)},
                     Scratch<int32_t>(args, 0));
  for (int gate = s_.first_gate(); gate < kLstmGates; ++gate) {
    const int64_t of_gate = (gate - s_.first_gate()) * at.cells;
    functions_->from_input({.sums = sums + of_gate,
                            .rows = rows,
                            .pitch = at.sums,
                            .cells = at.cells,
                            .to = FromInput(args, first) + at.sums_at + of_gate,
                            .to_pitch = row_},
                           lstm_.input[gate]);
  }
}

IntegerLstmStep IntegerLstmKernel::StepOf(const KernelArgs& args, const Part& part) const {
  IntegerLstmStep step{};
  step.lstm = &lstm_;
  step.cells = part.cells;
  step.first_gate = s_.first_gate();
  step.from_state = Scratch<int32_t>(args, sums_at());
  step.gates = Scratch<int16_t>(args, gates_at());
  step.c = Scratch<int16_t>(args, cells_at());
  step.hidden = Scratch<int8_t>(args, hidden_at());
  step.left = s_.projection ? products_.RowIn(args.scratch + left_at(), projection_)
                            : products_.RowIn(args.scratch + state_at(), recurrent_.front());
  return step;
}

void IntegerLstmKernel::RunSteps(const KernelArgs& args, int64_t b) const {
  // Variables are bound as inputs and written in place.
  const auto variable = [&](int i) { return const_cast<void*>(args.inputs[i]); };
  auto* const h_state = static_cast<int8_t*>(variable(kLstmOutputState)) + b * s_.outputs;
  auto* const c_state = static_cast<int16_t*>(variable(kLstmCellState)) + b * s_.cells;
  const IntegerRow h = products_.RowIn(args.scratch + state_at(), recurrent_.front());
  IntegerLstmStep step = StepOf(args, parts().front());
  std::copy_n(c_state, s_.cells, step.c);
  products_.Prepare(h_state, s_.outputs, h);
  const int8_t* last = h_state;
  for (int64_t t = 0; t < s_.steps; ++t) {
    const int64_t row = s_.Row(t, b);
    int8_t* const y = static_cast<int8_t*>(args.outputs[0]) + row * s_.outputs;
    MultiplyRow(args, recurrent_.front(), h, nullptr, Backwards(args, t));
    step.from_input = FromInput(args, row);
    Cells(args, step, b);
    if (s_.projection) {
      MultiplyRow(args, projection_, step.left, args.inputs[kLstmProjectionBias],
                  Backwards(args, t));
      functions_->project(lstm_, step.from_state, s_.outputs, y, h);
    } else {
      std::copy_n(step.hidden, s_.cells, y);
    }
    last = y;
  }
  std::copy_n(step.c, s_.cells, c_state);
  if (last != h_state) std::copy_n(last, s_.outputs, h_state);
}

void IntegerLstmKernel::RunStep(const KernelArgs& args, int64_t step, size_t part, int64_t b,
                                int64_t rows) const {
  const Part& at = parts()[part];
  const int64_t row_bytes = products_.RowBytes(s_.outputs);
  const auto state = [&](int64_t r) {
    return products_.RowIn(args.scratch + state_at() + r * row_bytes, recurrent_[part]);
  };
  for (int64_t r = 0; r < rows; ++r) {
    products_.Prepare(StateBefore<int8_t>(args, step, b + r), s_.outputs, state(r));
  }
  IntegerLstmStep now = StepOf(args, at);
  // The next step makes its rows of what all parts have written.
  now.left = products_.RowIn(args.scratch + left_at(), recurrent_[part]);
  auto* const sums = Scratch<int32_t>(args, sums_at());
  products_.Multiply(
      recurrent_[part], state(0),
      {.rows = rows, .bias = nullptr, .sums = sums, .backwards = Backwards(args, step)},
      Scratch<int32_t>(args, 0));
  auto* const c_states = static_cast<int16_t*>(const_cast<void*>(args.inputs[kLstmCellState]));
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t row = s_.Row(step, b + r);
    int16_t* const c_state = c_states + (b + r) * s_.cells + at.first;
    now.from_input = FromInput(args, row) + at.sums_at;
    now.from_state = sums + r * at.sums;
    std::copy_n(c_state, at.cells, now.c);
    functions_->whole(now);
    std::copy_n(now.c, at.cells, c_state);
    std::copy_n(now.hidden, at.cells,
                static_cast<int8_t*>(args.outputs[0]) + row * s_.outputs + at.first);
  }
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
