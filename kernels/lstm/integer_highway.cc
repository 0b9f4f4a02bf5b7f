#include <algorithm>

#include "kernels/gemm/gemm_s16.h"
#include "kernels/gemm/short_rows.h"
#include "kernels/lstm/fixed_point16.h"
#include "kernels/lstm/integer.h"
#include "kernels/lstm/products.h"
#include "kernels/lstm/two_phases.h"
#include "runtime/aligned_buffer.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/lstm/integer_highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/uniform_scale-inl.h"
#include "kernels/tail/integer_stages-inl.h"

#ifndef FUSELITE_KERNELS_LSTM_INTEGER_HIGHWAY_ONCE
#define FUSELITE_KERNELS_LSTM_INTEGER_HIGHWAY_ONCE
namespace fuselite::kernels {

// The parts of a step between the products and the functions of fixed_point16.h.
struct IntegerLstmRows {
  // to[i] = saturated(scaled sums[i] + add[i]); `add` may be null.
  void (*scale)(const int32_t* sums, int64_t n, const FixedPoint& by, const int16_t* add,
                int16_t* to);
  // The cell state from the gates; `input` is null where coupled.
  void (*update_cell)(const IntegerLstm& lstm, const int16_t* input, const int16_t* forget,
                      const int16_t* candidate, int64_t n, int16_t* c);
  // y[i] = quantized gate[i] * activated[i]: the hidden value
  void (*output)(const IntegerLstm& lstm, const int16_t* gate, const int16_t* activated, int64_t n,
                 int8_t* y);
  // y[i] = quantized sums[i] of the projection
  void (*project)(const IntegerLstm& lstm, const int32_t* sums, int64_t n, int8_t* y);
};

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE UniformScale ScaleOf(const FixedPoint& by) { return {by.multiplier, by.shift}; }

HWY_INLINE IntVec RoundingDivideVec(IntVec x, int exponent) {
  const IntTag d;
  const int32_t mask = (1 << exponent) - 1;
  const auto threshold = hn::Sub(hn::Set(d, mask >> 1), hn::ShiftRight<31>(x));
  const auto up = hn::VecFromMask(d, hn::Gt(hn::And(x, hn::Set(d, mask)), threshold));
  return hn::Sub(hn::ShiftRightSame(x, exponent), up);
}

void ScaleLstmSums(const int32_t* sums, int64_t n, const FixedPoint& by, const int16_t* add,
                   int16_t* to) {
  const UniformScale scale = ScaleOf(by);
  ForVectors(static_cast<size_t>(n), [&](size_t i, size_t count) HWY_ATTR {
    auto value = scale(LoadInt(sums + i, count));
    if (add != nullptr) value = hn::Add(value, LoadInt(add + i, count));
    StoreInt(value, to + i, count);
  });
}

void UpdateLstmCell(const IntegerLstm& lstm, const int16_t* input, const int16_t* forget,
                    const int16_t* candidate, int64_t n, int16_t* c) {
  const IntTag d;
  const int32_t clip = lstm.cell_clip;
  const auto one = hn::Set(d, 32767);
  ForVectors(static_cast<size_t>(n), [&](size_t i, size_t count) HWY_ATTR {
    const auto keep = LoadInt(forget + i, count);
    const auto take = input == nullptr ? hn::Sub(one, keep) : LoadInt(input + i, count);
    const auto kept = RoundingDivideVec(hn::Mul(keep, LoadInt(c + i, count)), 15);
    const auto taken =
        RoundingDivideVec(hn::Mul(take, LoadInt(candidate + i, count)), 30 + lstm.cell_log2);
    const auto sum = ClampInt(hn::Add(kept, taken), -32768, 32767);
    StoreInt(ClampInt(sum, -clip, clip), c + i, count);
  });
}

void LstmIntegerOutput(const IntegerLstm& lstm, const int16_t* gate, const int16_t* activated,
                       int64_t n, int8_t* y) {
  const UniformScale scale = ScaleOf(lstm.hidden);
  const auto zero_point = hn::Set(IntTag(), lstm.hidden_zero_point);
  ForVectors(static_cast<size_t>(n), [&](size_t i, size_t count) HWY_ATTR {
    const auto product = hn::Mul(LoadInt(gate + i, count), LoadInt(activated + i, count));
    StoreInt(hn::Add(scale(product), zero_point), y + i, count);
  });
}

void LstmIntegerProject(const IntegerLstm& lstm, const int32_t* sums, int64_t n, int8_t* y) {
  const UniformScale scale = ScaleOf(lstm.projection);
  const auto zero_point = hn::Set(IntTag(), lstm.h_zero_point);
  const int32_t clip = lstm.state_clip;
  ForVectors(static_cast<size_t>(n), [&](size_t i, size_t count) HWY_ATTR {
    const auto value = hn::Add(scale(LoadInt(sums + i, count)), zero_point);
    StoreInt(ClampInt(value, -clip, std::min(clip, 127)), y + i, count);
  });
}

constexpr IntegerLstmRows kIntegerLstm = {.scale = ScaleLstmSums,
                                          .update_cell = UpdateLstmCell,
                                          .output = LstmIntegerOutput,
                                          .project = LstmIntegerProject};

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

constexpr auto kIntegerRows = FUSELITE_SIMD_TABLE(kIntegerLstm);

class IntegerLstmKernel final : public TwoPhaseLstm {
 public:
  explicit IntegerLstmKernel(const OpDescription& op) : TwoPhaseLstm(op, sizeof(int16_t)) {}
  Status Plan(const OpDescription& op, const PlanContext& context);
  Status Pack(const OpDescription& op, const BuildContext& context);

  size_t scratch_bytes() const override {
    return sums_at() + AlignUp(std::max(kBlockRows * s_.cells, s_.outputs) * sizeof(int32_t));
  }

 private:
  // Scratch: the gates of a step and the activated cell state, hidden values to be projected, rows
  // as int16, sums.
  static int64_t Even(int64_t depth) { return (depth + 1) & ~int64_t{1}; }
  size_t hidden_at() const { return AlignUp((row_ + s_.cells) * sizeof(int16_t)); }
  size_t rows_at() const { return hidden_at() + (s_.projection ? AlignUp(s_.cells) : 0); }
  size_t sums_at() const {
    const int64_t longest = std::max(Even(s_.outputs), s_.projection ? Even(s_.cells) : 0);
    return rows_at() + AlignUp(std::max(kBlockRows * Even(s_.inputs), longest) * sizeof(int16_t));
  }
  int16_t* Gate(const KernelArgs& args, int gate) const {
    return reinterpret_cast<int16_t*>(args.scratch) + gate * s_.cells;
  }

  void MultiplyInputs(const KernelArgs& args, int64_t first, int64_t rows) const override;
  void RunSteps(const KernelArgs& args, int64_t b) const override;
  void Step(const KernelArgs& args, const int16_t* from_input, const int8_t* h, int16_t* c,
            int8_t* y, int64_t b) const;
  // What peepholes and normalization do to the sums of a gate.
  void FinishSums(const KernelArgs& args, int gate, const int16_t* c, int64_t b) const;
  void Project(const KernelArgs& args, int8_t* y) const;
  const int16_t* Widen(const KernelArgs& args, const int8_t* from, int64_t rows, int64_t depth,
                       int32_t zero_point) const;
  int32_t* Multiply(const KernelArgs& args, const PackedWeights& weights, const int16_t* a,
                    int64_t rows, int64_t depth, int64_t columns, const int32_t* bias) const;
  int32_t* Sums(const KernelArgs& args) const {
    return reinterpret_cast<int32_t*>(args.scratch + sums_at());
  }

  IntegerLstm lstm_{};
  const GemmS16* gemm_ = nullptr;
  const ShortRowFunctions* widen_ = nullptr;
  const FixedPoint16Rows* functions_ = nullptr;
  const IntegerLstmRows* parts_ = nullptr;
  PackedWeights input_[kLstmGates], recurrent_[kLstmGates], projection_;
};

Status IntegerLstmKernel::Plan(const OpDescription& op, const PlanContext& context) {
  if (IsByteLstm(op)) return Unsupported("does not take sums of 8 bits");
  gemm_ = FindGemmS16(context.isa);
  widen_ = FindShortRowFunctions(context.isa);
  functions_ = FindFixedPoint16Rows(context.isa);
  parts_ = kIntegerRows.For(context.isa);
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
  for (int gate = s_.first_gate(); gate < kLstmGates; ++gate) {
    FUSELITE_ASSIGN_OR_RETURN(input_[gate],
                              PackLstmS16(op.inputs[kLstmInputWeights + gate], *gemm_, context));
    FUSELITE_ASSIGN_OR_RETURN(
        recurrent_[gate], PackLstmS16(op.inputs[kLstmRecurrentWeights + gate], *gemm_, context));
  }
  if (!s_.projection) return Status();
  FUSELITE_ASSIGN_OR_RETURN(projection_, PackLstmS16(op.inputs[kLstmProjection], *gemm_, context));
  return Status();
}

const int16_t* IntegerLstmKernel::Widen(const KernelArgs& args, const int8_t* from, int64_t rows,
                                        int64_t depth, int32_t zero_point) const {
  auto* to = reinterpret_cast<int16_t*>(args.scratch + rows_at());
  for (int64_t r = 0; r < rows; ++r) {
    widen_->widen_s8(from + r * depth, depth, -zero_point, to + r * Even(depth));
    if (depth % 2 == 1) to[r * Even(depth) + depth] = 0;
  }
  return to;
}

int32_t* IntegerLstmKernel::Multiply(const KernelArgs& args, const PackedWeights& weights,
                                     const int16_t* a, int64_t rows, int64_t depth, int64_t columns,
                                     const int32_t* bias) const {
  int32_t* const sums = Sums(args);
  gemm_->run({.a = a,
              .rows = rows,
              .depth = Even(depth),
              .b = weights->as<int16_t>(),
              .columns = columns,
              .bias = bias,
              .c = sums,
              .c_pitch = columns});
  return sums;
}

void IntegerLstmKernel::MultiplyInputs(const KernelArgs& args, int64_t first, int64_t rows) const {
  const auto* x = static_cast<const int8_t*>(args.inputs[kLstmX]) + first * s_.inputs;
  const int16_t* a = Widen(args, x, rows, s_.inputs, lstm_.x_zero_point);
  auto* to = reinterpret_cast<int16_t*>(args.shared) + first * row_;
  for (int gate = s_.first_gate(); gate < kLstmGates; ++gate) {
    // What is normalized gets its bias afterwards.
    const auto* bias =
        s_.layer_norm ? nullptr : static_cast<const int32_t*>(args.inputs[kLstmBias + gate]);
    const int32_t* sums = Multiply(args, input_[gate], a, rows, s_.inputs, s_.cells, bias);
    for (int64_t r = 0; r < rows; ++r) {
      parts_->scale(sums + r * s_.cells, s_.cells, lstm_.input[gate], nullptr,
                    to + r * row_ + gate * s_.cells);
    }
  }
}

void IntegerLstmKernel::RunSteps(const KernelArgs& args, int64_t b) const {
  // Variables are bound as inputs and written in place.
  const auto state = [&](int i) { return const_cast<void*>(args.inputs[i]); };
  auto* h_state = static_cast<int8_t*>(state(kLstmOutputState)) + b * s_.outputs;
  auto* c = static_cast<int16_t*>(state(kLstmCellState)) + b * s_.cells;
  const int8_t* h = h_state;
  for (int64_t step = 0; step < s_.steps; ++step) {
    const int64_t row = s_.Row(step, b);
    int8_t* y = static_cast<int8_t*>(args.outputs[0]) + row * s_.outputs;
    Step(args, reinterpret_cast<const int16_t*>(args.shared) + row * row_, h, c, y, b);
    h = y;
  }
  std::copy_n(h, s_.outputs, h_state);
}

void IntegerLstmKernel::FinishSums(const KernelArgs& args, int gate, const int16_t* c,
                                   int64_t b) const {
  const auto coefficients = [&](int first, int i) {
    return static_cast<const int16_t*>(args.inputs[first + i]);
  };
  if (s_.peephole && gate != kCellGate) {
    AddPeephole(s_, coefficients(kLstmPeephole, PeepholeOf(gate)), c, b, lstm_.peephole[gate],
                Gate(args, gate));
  }
  if (!s_.layer_norm) return;
  NormalizeGate(lstm_.norm[gate], coefficients(kLstmLayerNorm, gate),
                static_cast<const int32_t*>(args.inputs[kLstmBias + gate]), s_.cells,
                Gate(args, gate));
}

void IntegerLstmKernel::Project(const KernelArgs& args, int8_t* y) const {
  const auto* hidden = reinterpret_cast<const int8_t*>(args.scratch + hidden_at());
  const int16_t* a = Widen(args, hidden, 1, s_.cells, lstm_.hidden_zero_point);
  const auto* bias = static_cast<const int32_t*>(args.inputs[kLstmProjectionBias]);
  const int32_t* sums = Multiply(args, projection_, a, 1, s_.cells, s_.outputs, bias);
  parts_->project(lstm_, sums, s_.outputs, y);
}

void IntegerLstmKernel::Step(const KernelArgs& args, const int16_t* from_input, const int8_t* h,
                             int16_t* c, int8_t* y, int64_t b) const {
  const int16_t* a = Widen(args, h, 1, s_.outputs, lstm_.h_zero_point);
  for (int gate = s_.first_gate(); gate < kLstmGates; ++gate) {
    parts_->scale(Multiply(args, recurrent_[gate], a, 1, s_.outputs, s_.cells, nullptr), s_.cells,
                  lstm_.recurrent[gate], from_input + gate * s_.cells, Gate(args, gate));
  }
  for (int gate = s_.first_gate(); gate < kOutputGate; ++gate) FinishSums(args, gate, c, b);
  // Gates next to each other in memory are one row.
  functions_->logistic_q12(Gate(args, s_.first_gate()), (kCellGate - s_.first_gate()) * s_.cells);
  functions_->tanh_fixed(Gate(args, kCellGate), s_.cells, 3);
  parts_->update_cell(lstm_, s_.coupled ? nullptr : Gate(args, kInputGate), Gate(args, kForgetGate),
                      Gate(args, kCellGate), s_.cells, c);
  FinishSums(args, kOutputGate, c, b);
  functions_->logistic_q12(Gate(args, kOutputGate), s_.cells);
  int16_t* activated = Gate(args, kLstmGates);
  std::copy_n(c, s_.cells, activated);
  functions_->tanh_fixed(activated, s_.cells, 15 + lstm_.cell_log2);
  int8_t* const hidden = s_.projection ? reinterpret_cast<int8_t*>(args.scratch + hidden_at()) : y;
  parts_->output(lstm_, Gate(args, kOutputGate), activated, s_.cells, hidden);
  if (s_.projection) Project(args, y);
}

}  // namespace

Result<KernelPlan> PlanLstmIntegerHighway(const OpDescription& op, const PlanContext& context) {
  return PlanThenPack(IntegerLstmKernel(op), op, context);
}

}  // namespace fuselite::kernels
#endif
