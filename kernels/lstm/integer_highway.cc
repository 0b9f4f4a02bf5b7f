#include <algorithm>
#include <cstring>

#include "kernels/gemm/gemm_s16.h"
#include "kernels/gemm/short_rows.h"
#include "kernels/lstm/integer.h"
#include "kernels/lstm/products.h"
#include "kernels/lstm/two_phases.h"
#include "runtime/aligned_buffer.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/lstm/integer_highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/lstm/fixed_point16-inl.h"
#include "kernels/simd.h"
#include "kernels/simd_math/uniform_scale-inl.h"
#include "kernels/tail/integer_stages-inl.h"

#ifndef FUSELITE_KERNELS_LSTM_INTEGER_HIGHWAY_ONCE
#define FUSELITE_KERNELS_LSTM_INTEGER_HIGHWAY_ONCE
namespace fuselite::kernels {

// A step of one row of the batch, behind its products. Arrays of gates hold those that there are
// side by side, `cells` values of each. Whole vectors are read and written: there is room for one
// behind each array, and what lies there counts nowhere. (A masked store costs more than a gate's
// arithmetic where the next step waits for it.)
struct IntegerLstmStep {
  const IntegerLstm* lstm;
  int64_t cells;
  int first_gate;
  const int16_t* from_input;  // what the inputs give, in steps of the gates' values
  const int32_t* from_state;  // sums of the products with the state
  int16_t* gates;
  int16_t* c;  // the cell state, in and out
  int8_t* hidden;
  int16_t* wide;  // the same less `zero_point`, as the next product reads them
  int32_t zero_point;

  int64_t At(int gate) const { return (gate - first_gate) * cells; }
};

struct IntegerLstmFunctions {
  // to[i] = saturated(scaled sums[i]), `rows` times of `cells` values, which in both begin `pitch`
  // values behind those before.
  void (*from_input)(const int32_t* sums, int64_t rows, int64_t pitch, int64_t cells,
                     const FixedPoint& by, int16_t* to);
  // From the sums to the hidden values, where nothing else happens to the gates' values.
  void (*whole)(const IntegerLstmStep& step);
  // The same in three parts: to the gates' values, from them to the cell state, and from that and
  // the output gate to the hidden values.
  void (*gates)(const IntegerLstmStep& step);
  void (*update)(const IntegerLstmStep& step);
  void (*output)(const IntegerLstmStep& step);
  // y[i] = quantized sums[i] of the projection, wide[i] the same less the zero point
  void (*project)(const IntegerLstm& lstm, const int32_t* sums, int64_t n, int8_t* y,
                  int16_t* wide);
};

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE UniformScale ScaleOf(const FixedPoint& by) { return {by.multiplier, by.shift}; }

// The lanes of a vector of int16 in int32.
struct IntPair {
  IntVec low, high;
};

HWY_INLINE IntPair Widen(ShortVec x) {
  const hn::Half<ShortTag> dh;
  const IntTag d;
  return {hn::PromoteTo(d, hn::LowerHalf(dh, x)), hn::PromoteTo(d, hn::UpperHalf(dh, x))};
}

// Saturates.
HWY_INLINE ShortVec Narrow(const IntPair& x) {
  const hn::Half<ShortTag> dh;
  return hn::Combine(ShortTag(), hn::DemoteTo(dh, x.high), hn::DemoteTo(dh, x.low));
}

template <class F>
HWY_INLINE IntPair InEach(const IntPair& x, const IntPair& y, F f) {
  return {f(x.low, y.low), f(x.high, y.high)};
}

// f(i) for the first cell of each vector of int16.
template <class F>
HWY_INLINE void ForCells(int64_t cells, F f) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(ShortTag()));
  for (int64_t i = 0; i < cells; i += lanes) f(i);
}

HWY_INLINE IntPair LoadSums(const int32_t* sums) {
  const IntTag d;
  return {hn::LoadU(d, sums), hn::LoadU(d, sums + hn::Lanes(d))};
}

void FromLstmInput(const int32_t* sums, int64_t rows, int64_t pitch, int64_t cells,
                   const FixedPoint& by, int16_t* to) {
  const UniformScale scale = ScaleOf(by);
  for (int64_t r = 0; r < rows; ++r) {
    ForVectors(static_cast<size_t>(cells), [&](size_t i, size_t count) HWY_ATTR {
      StoreInt(scale(LoadInt(sums + r * pitch + i, count)), to + r * pitch + i, count);
    });
  }
}

// The values of a gate from cell `i` on.
HWY_INLINE ShortVec GateOfSums(const IntegerLstmStep& step, int gate, int64_t i) {
  const int64_t at = step.At(gate) + i;
  const UniformScale scale = ScaleOf(step.lstm->recurrent[gate]);
  const auto sum = [&](IntVec from_state, IntVec from_input)
                       HWY_ATTR { return hn::Add(scale(from_state), from_input); };
  const IntPair from_input = Widen(hn::LoadU(ShortTag(), step.from_input + at));
  return Narrow(InEach(LoadSums(step.from_state + at), from_input, sum));
}

HWY_INLINE IntVec RoundingDivideVec(IntVec x, int exponent) {
  const IntTag d;
  const int32_t mask = (1 << exponent) - 1;
  const auto threshold = hn::Sub(hn::Set(d, mask >> 1), hn::ShiftRight<31>(x));
  const auto up = hn::VecFromMask(d, hn::Gt(hn::And(x, hn::Set(d, mask)), threshold));
  return hn::Sub(hn::ShiftRightSame(x, exponent), up);
}

// x y / 2^exponent, whose lanes fit.
HWY_INLINE IntPair DividedProduct(ShortVec x, ShortVec y, int exponent) {
  return InEach(Widen(x), Widen(y), [=](IntVec a, IntVec b) HWY_ATTR {
    return RoundingDivideVec(hn::Mul(a, b), exponent);
  });
}

// The cell state behind the step from that before it and the gates' values. `input` counts nothing
// where coupled.
HWY_INLINE ShortVec NextState(const IntegerLstmStep& step, ShortVec input, ShortVec forget,
                              ShortVec candidate, ShortVec c) {
  const ShortTag d;
  const ShortVec keep = LogisticQ12Vec(forget);
  const ShortVec take =
      step.first_gate == kForgetGate ? hn::Sub(Shorts(32767), keep) : LogisticQ12Vec(input);
  const IntPair kept = DividedProduct(keep, c, 15);
  const IntPair taken = DividedProduct(take, TanhFixedVec(candidate, 3), 30 + step.lstm->cell_log2);
  const ShortVec sum =
      Narrow(InEach(kept, taken, [](IntVec a, IntVec b) HWY_ATTR { return hn::Add(a, b); }));
  const int32_t clip = step.lstm->cell_clip;  // of which 32768 bounds nothing
  if (clip > 32767) return sum;
  return hn::Min(hn::Max(sum, hn::Set(d, static_cast<int16_t>(-clip))),
                 hn::Set(d, static_cast<int16_t>(clip)));
}

// Stores the hidden values from cell `i` on.
HWY_INLINE void StoreHidden(const IntegerLstmStep& step, ShortVec output, ShortVec c, int64_t i) {
  const ShortTag d;
  const UniformScale scale = ScaleOf(step.lstm->hidden);
  const auto zero_point = hn::Set(IntTag(), step.lstm->hidden_zero_point);
  const ShortVec activated = TanhFixedVec(c, 15 + step.lstm->cell_log2);
  const auto quantized = [&](IntVec gate, IntVec value)
                             HWY_ATTR { return hn::Add(scale(hn::Mul(gate, value)), zero_point); };
  const IntPair value = InEach(Widen(LogisticQ12Vec(output)), Widen(activated), quantized);
  const hn::Rebind<int8_t, ShortTag> bytes;
  const auto hidden = hn::DemoteTo(bytes, Narrow(value));
  hn::StoreU(hidden, bytes, step.hidden + i);
  hn::StoreU(hn::Sub(hn::PromoteTo(d, hidden), Shorts(step.zero_point)), d, step.wide + i);
}

// As NextState(), of the cells from `i` on.
HWY_INLINE ShortVec UpdateState(const IntegerLstmStep& step, ShortVec input, ShortVec forget,
                                ShortVec candidate, int64_t i) {
  const ShortTag d;
  const ShortVec c = NextState(step, input, forget, candidate, hn::LoadU(d, step.c + i));
  hn::StoreU(c, d, step.c + i);
  return c;
}

void WholeLstmStep(const IntegerLstmStep& step) {
  ForCells(step.cells, [&](int64_t i) HWY_ATTR {
    const ShortVec input =
        step.first_gate == kInputGate ? GateOfSums(step, kInputGate, i) : hn::Zero(ShortTag());
    const ShortVec forget = GateOfSums(step, kForgetGate, i);
    const ShortVec candidate = GateOfSums(step, kCellGate, i);
    const ShortVec c = UpdateState(step, input, forget, candidate, i);
    StoreHidden(step, GateOfSums(step, kOutputGate, i), c, i);
  });
}

// In the order of the gates: what a vector leaves behind its gate, the next one overwrites.
void FillLstmGates(const IntegerLstmStep& step) {
  for (int gate = step.first_gate; gate < kLstmGates; ++gate) {
    ForCells(step.cells, [&](int64_t i) HWY_ATTR {
      hn::StoreU(GateOfSums(step, gate, i), ShortTag(), step.gates + step.At(gate) + i);
    });
  }
}

HWY_INLINE ShortVec LoadGate(const IntegerLstmStep& step, int gate, int64_t i) {
  return hn::LoadU(ShortTag(), step.gates + step.At(gate) + i);
}

void UpdateLstmState(const IntegerLstmStep& step) {
  ForCells(step.cells, [&](int64_t i) HWY_ATTR {
    const ShortVec input =
        step.first_gate == kInputGate ? LoadGate(step, kInputGate, i) : hn::Zero(ShortTag());
    UpdateState(step, input, LoadGate(step, kForgetGate, i), LoadGate(step, kCellGate, i), i);
  });
}

void LstmOutput(const IntegerLstmStep& step) {
  ForCells(step.cells, [&](int64_t i) HWY_ATTR {
    StoreHidden(step, LoadGate(step, kOutputGate, i), hn::LoadU(ShortTag(), step.c + i), i);
  });
}

void ProjectLstm(const IntegerLstm& lstm, const int32_t* sums, int64_t n, int8_t* y,
                 int16_t* wide) {
  const UniformScale scale = ScaleOf(lstm.projection);
  const auto zero_point = hn::Set(IntTag(), lstm.h_zero_point);
  const int32_t clip = lstm.state_clip;
  ForVectors(static_cast<size_t>(n), [&](size_t i, size_t count) HWY_ATTR {
    const auto value = hn::Add(scale(LoadInt(sums + i, count)), zero_point);
    const auto clipped = ClampInt(value, -clip, std::min(clip, 127));
    StoreInt(clipped, y + i, count);
    StoreInt(hn::Sub(clipped, zero_point), wide + i, count);
  });
}

constexpr IntegerLstmFunctions kIntegerLstm = {.from_input = FromLstmInput,
                                               .whole = WholeLstmStep,
                                               .gates = FillLstmGates,
                                               .update = UpdateLstmState,
                                               .output = LstmOutput,
                                               .project = ProjectLstm};

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

constexpr auto kIntegerFunctions = FUSELITE_SIMD_TABLE(kIntegerLstm);

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
  // Scratch in phase 0: the biases of all gates, rows of inputs as int16, sums. In phase 1, of a
  // step: sums, the gates' values, the cell state, the output state and hidden values to be
  // projected as int16, hidden values.
  static int64_t Even(int64_t depth) { return (depth + 1) & ~int64_t{1}; }
  template <class T>
  static size_t Room(int64_t values) {
    return AlignUp(values * sizeof(T) + kVectorRoom);
  }
  size_t rows_at() const { return AlignUp(row_ * sizeof(int32_t)); }
  size_t block_sums_at() const {
    return rows_at() + AlignUp(kBlockRows * Even(s_.inputs) * sizeof(int16_t));
  }
  size_t gates_at() const { return Room<int32_t>(std::max(row_, s_.outputs)); }
  size_t cells_at() const { return gates_at() + Room<int16_t>(row_); }
  size_t state_at() const { return cells_at() + Room<int16_t>(s_.cells); }
  size_t wide_at() const { return state_at() + Room<int16_t>(s_.outputs); }
  size_t hidden_at() const { return wide_at() + Room<int16_t>(s_.cells); }
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
  void MultiplyRow(const PackedWeights& weights, const int16_t* a, int64_t depth, int64_t columns,
                   const void* bias, int32_t* sums) const;

  IntegerLstm lstm_{};
  const GemmS16* gemm_ = nullptr;
  const ShortRowFunctions* widen_ = nullptr;
  const IntegerLstmFunctions* functions_ = nullptr;
  PackedWeights input_, recurrent_, projection_;  // the first two of all gates
};

Status IntegerLstmKernel::Plan(const OpDescription& op, const PlanContext& context) {
  if (IsByteLstm(op)) return Unsupported("does not take sums of 8 bits");
  gemm_ = FindGemmS16(context.isa);
  widen_ = FindShortRowFunctions(context.isa);
  functions_ = kIntegerFunctions.For(context.isa);
  if (gemm_ == nullptr) return NoVectorTarget(context.isa);
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
  FUSELITE_ASSIGN_OR_RETURN(input_, PackLstmS16(gates(kLstmInputWeights), 0, *gemm_, context));
  FUSELITE_ASSIGN_OR_RETURN(recurrent_,
                            PackLstmS16(gates(kLstmRecurrentWeights), 0, *gemm_, context));
  if (!s_.projection) return Status();
  FUSELITE_ASSIGN_OR_RETURN(projection_,
                            PackLstmS16({&op.inputs[kLstmProjection], 1}, 0, *gemm_, context));
  return Status();
}

void IntegerLstmKernel::MultiplyInputs(const KernelArgs& args, int64_t first, int64_t rows) const {
  const auto* x = static_cast<const int8_t*>(args.inputs[kLstmX]) + first * s_.inputs;
  const int64_t depth = Even(s_.inputs);
  auto* const a = Scratch<int16_t>(args, rows_at());
  if (depth == s_.inputs) {
    widen_->widen_s8(x, rows * depth, -lstm_.x_zero_point, a);
  } else {
    for (int64_t r = 0; r < rows; ++r) {
      widen_->widen_s8(x + r * s_.inputs, s_.inputs, -lstm_.x_zero_point, a + r * depth);
      a[r * depth + s_.inputs] = 0;
    }
  }
  // What is normalized gets its bias afterwards.
  int32_t* const bias = s_.layer_norm ? nullptr : Scratch<int32_t>(args, 0);
  for (int gate = s_.first_gate(); bias != nullptr && gate < kLstmGates; ++gate) {
    std::memcpy(bias + (gate - s_.first_gate()) * s_.cells, args.inputs[kLstmBias + gate],
                s_.cells * sizeof(int32_t));
  }
  auto* const sums = Scratch<int32_t>(args, block_sums_at());
  gemm_->run({.a = a,
              .rows = rows,
              .depth = depth,
              .b = input_->as<int16_t>(),
              .columns = row_,
              .bias = bias,
              .c = sums,
              .c_pitch = row_});
  for (int gate = s_.first_gate(); gate < kLstmGates; ++gate) {
    const int64_t at = (gate - s_.first_gate()) * s_.cells;
    functions_->from_input(sums + at, rows, row_, s_.cells, lstm_.input[gate],
                           FromInput(args, first) + at);
  }
}

// The packed weights have zeros for the value behind an odd number of them, which may be any.
void IntegerLstmKernel::MultiplyRow(const PackedWeights& weights, const int16_t* a, int64_t depth,
                                    int64_t columns, const void* bias, int32_t* sums) const {
  gemm_->run({.a = a,
              .rows = 1,
              .depth = Even(depth),
              .b = weights->as<int16_t>(),
              .columns = columns,
              .bias = static_cast<const int32_t*>(bias),
              .c = sums,
              .c_pitch = columns});
}

IntegerLstmStep IntegerLstmKernel::StepOf(const KernelArgs& args) const {
  IntegerLstmStep step{};
  step.lstm = &lstm_;
  step.cells = s_.cells;
  step.first_gate = s_.first_gate();
  step.from_state = Scratch<int32_t>(args, 0);
  step.gates = Scratch<int16_t>(args, gates_at());
  step.c = Scratch<int16_t>(args, cells_at());
  step.hidden = Scratch<int8_t>(args, hidden_at());
  step.wide = Scratch<int16_t>(args, s_.projection ? wide_at() : state_at());
  step.zero_point = s_.projection ? lstm_.hidden_zero_point : lstm_.h_zero_point;
  return step;
}

void IntegerLstmKernel::RunSteps(const KernelArgs& args, int64_t b) const {
  // Variables are bound as inputs and written in place.
  const auto variable = [&](int i) { return const_cast<void*>(args.inputs[i]); };
  auto* const h_state = static_cast<int8_t*>(variable(kLstmOutputState)) + b * s_.outputs;
  auto* const c_state = static_cast<int16_t*>(variable(kLstmCellState)) + b * s_.cells;
  auto* const sums = Scratch<int32_t>(args, 0);
  auto* const h = Scratch<int16_t>(args, state_at());
  IntegerLstmStep step = StepOf(args);
  std::copy_n(c_state, s_.cells, step.c);
  widen_->widen_s8(h_state, s_.outputs, -lstm_.h_zero_point, h);
  const int8_t* last = h_state;
  for (int64_t t = 0; t < s_.steps; ++t) {
    const int64_t row = s_.Row(t, b);
    int8_t* const y = static_cast<int8_t*>(args.outputs[0]) + row * s_.outputs;
    MultiplyRow(recurrent_, h, s_.outputs, row_, nullptr, sums);
    step.from_input = FromInput(args, row);
    Cells(args, step, b);
    if (s_.projection) {
      MultiplyRow(projection_, step.wide, s_.cells, s_.outputs, args.inputs[kLstmProjectionBias],
                  sums);
      functions_->project(lstm_, sums, s_.outputs, y, h);
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
#endif
