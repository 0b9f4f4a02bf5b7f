#include "kernels/lstm/integer_cells.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/lstm/integer_cells.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/lstm/fixed_point16-inl.h"
#include "kernels/simd.h"
#include "kernels/simd_math/uniform_scale-inl.h"
#include "kernels/tail/integer_stages-inl.h"

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

void FromLstmInput(const LstmInputSums& sums, const FixedPoint& by) {
  const UniformScale scale = ScaleOf(by);
  for (int64_t r = 0; r < sums.rows; ++r) {
    const int32_t* const from = sums.sums + r * sums.pitch;
    int16_t* const to = sums.to + r * sums.to_pitch;
    ForVectors(static_cast<size_t>(sums.cells), [&](size_t i, size_t count) HWY_ATTR {
      StoreInt(scale(LoadInt(from + i, count)), to + i, count);
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
  if (step.left.bytes != nullptr) {
    hn::StoreU(hn::Xor(hidden, hn::Set(bytes, -128)), bytes, step.left.bytes + i);
  } else {
    const ShortVec wide = hn::Sub(hn::PromoteTo(d, hidden), Shorts(step.left.zero_point));
    hn::StoreU(wide, d, step.left.wide + i);
  }
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
                 const IntegerRow& left) {
  const UniformScale scale = ScaleOf(lstm.projection);
  const auto zero_point = hn::Set(IntTag(), lstm.h_zero_point);
  const int32_t clip = lstm.state_clip;
  ForVectors(static_cast<size_t>(n), [&](size_t i, size_t count) HWY_ATTR {
    const auto value = hn::Add(scale(LoadInt(sums + i, count)), zero_point);
    const auto clipped = ClampInt(value, -clip, std::min(clip, 127));
    StoreInt(clipped, y + i, count);
    if (left.bytes != nullptr) {
      const auto raised = hn::Add(clipped, hn::Set(IntTag(), 128));
      StoreInt(raised, reinterpret_cast<uint8_t*>(left.bytes) + i, count);
    } else {
      StoreInt(hn::Sub(clipped, hn::Set(IntTag(), left.zero_point)), left.wide + i, count);
    }
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

const IntegerLstmFunctions* FindIntegerLstm(Isa isa) {
  static constexpr auto kTable = FUSELITE_SIMD_TABLE(kIntegerLstm);
  return kTable.For(isa);
}

}  // namespace fuselite::kernels
#endif
