#include "jit/tail/integer_tail_emitter.h"

#include <algorithm>

namespace fuselite::jit {

using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

namespace {

constexpr uint32_t kSignBit = uint32_t{1} << 31;
constexpr uint32_t kUpwards = 1, kDownwards = ~0u;  // what is added to sums that are moved
constexpr uint64_t kSignBit64 = uint64_t{1} << 63;
constexpr uint64_t kBelowHalf = 0x3FDFFFFFFFFFFFFF;  // 0.49999999999999994
constexpr uint64_t kFarthest = 0x41D0000000000000;   // 2^30
constexpr uint64_t kMinusFarthest = 0xC1D0000000000000;
constexpr uint64_t kLowHalf = 0xFFFFFFFF;
constexpr int kSpillBytes = 64;               // below the stack's pointer, twice
constexpr uint8_t kFirstOrBothOthers = 0xF8;  // vpternlog: a | (b & c)
constexpr uint8_t kOddLanes = 0xAA;           // vpblendd
const Xbyak::Opmask kMoved(3), kEven(5);

}  // namespace

IntegerTailEmitter::IntegerTailEmitter(Assembler& assembler, const Requantization& plan,
                                       const std::array<int, 3>& temporaries,
                                       const LayerReader& layer)
    : a_(assembler), plan_(plan), t_(temporaries), layer_(layer) {
  if (!a_.isa().avx512) return;
  for (const uint32_t move : {kUpwards, kDownwards}) a_.ExpectConst(move);
}

void IntegerTailEmitter::Prepare(int partial_bytes) {
  if (!a_.isa().avx512) return;
  a_.mov(a_.eax, 0x5555);
  a_.kmovw(kEven, a_.eax);
  if (partial_bytes <= 0 || partial_bytes >= 64) return;
  a_.mov(a_.rax, (uint64_t{1} << partial_bytes) - 1);
  a_.kmovq(Xbyak::Opmask(kPartialMask), a_.rax);
}

void IntegerTailEmitter::Requantize(std::span<const int> regs, int width, const Place& constants) {
  a_.vmovups(VectorOf(t_[0], width), a_.ptr[constants + kAddendSlot * width]);
  a_.vmovups(VectorOf(t_[1], width), a_.ptr[constants + kScaleSlot * width]);
  a_.cmp(a_.dword[constants + kScaleSlot * width], 0);
  const ForwardJump enter = a_.JumpForwardIfLess();
  const uint8_t* const floats = a_.getCurr();
  RequantizeFloats(regs, width);
  DetourOf(regs, width, constants).exits.push_back({enter, floats, a_.getCurr()});
}

IntegerTailEmitter::Detour& IntegerTailEmitter::DetourOf(std::span<const int> regs, int width,
                                                         const Place& constants) {
  for (Detour& detour : detours_) {
    const size_t common = std::min(regs.size(), detour.regs.size());
    if (detour.width != width || !(detour.constants == constants) ||
        !std::ranges::equal(regs.first(common), std::span(detour.regs).first(common))) {
      continue;
    }
    if (regs.size() > common) detour.regs.assign(regs.begin(), regs.end());
    return detour;
  }
  detours_.push_back({{regs.begin(), regs.end()}, width, constants, {}});
  return detours_.back();
}

void IntegerTailEmitter::RequantizeFloats(std::span<const int> regs, int width) {
  const Xmm addend = VectorOf(t_[0], width), scale = VectorOf(t_[1], width),
            t = VectorOf(t_[2], width);
  for (const int reg : regs) {
    const Xmm v = VectorOf(reg, width);
    a_.vcvtdq2ps(v, v);
    if (!plan_.addend_has_sign) {
      a_.vfmadd213ps(v, scale, addend);
    } else if (a_.isa().avx512) {
      a_.vmovaps(t, addend);
      a_.vpternlogd(t, v, layer_.Operand(LayerConstant::kSignBit), kFirstOrBothOthers);
      a_.vfmadd213ps(v, scale, t);
    } else {
      a_.vandps(t, v, layer_.Operand(LayerConstant::kSignBit));
      a_.vorps(t, t, addend);
      a_.vfmadd213ps(v, scale, t);
    }
    a_.vcvtps2dq(v, v);
  }
}

// The functions come before their calls, whose addresses are known then.
void IntegerTailEmitter::EmitOtherForms() {
  for (const Detour& detour : detours_) {
    if (other_forms_.contains(detour.width)) continue;
    a_.align(16);
    other_forms_[detour.width] = a_.getCurr();
    EmitOtherForm(detour.width);
    a_.ret();
  }
  for (const Detour& detour : detours_) {
    const uint8_t* const entry = a_.getCurr();
    EmitDetour(detour);
    for (const Exit& exit : detour.exits) EmitExit(exit, entry);
  }
  detours_.clear();
  other_forms_.clear();
}

// The flags say less where it has done everything.
void IntegerTailEmitter::EmitDetour(const Detour& detour) {
  const auto form = a_.dword[detour.constants];
  // Vector instructions leave the flags alone.
  a_.cmp(form, kUpForm);
  const ForwardJump integers = a_.JumpForwardIfLess();
  a_.vmovups(VectorOf(t_[1], detour.width),
             a_.ptr[detour.constants + kMovedScaleSlot * detour.width]);
  MoveSums(detour, kDownSlot);
  const ForwardJump done = a_.JumpForwardIfNotEqual();
  MoveSums(detour, kUpSlot);
  a_.Land(done);
  a_.ret();

  const Xmm x = VectorOf(t_[2], detour.width);
  a_.Land(integers);
  a_.push(a_.rax);
  a_.lea(a_.rax, a_.ptr[detour.constants]);
  for (const int reg : detour.regs) {
    a_.vmovaps(x, VectorOf(reg, detour.width));
    a_.call(other_forms_[detour.width]);
    a_.vmovaps(VectorOf(reg, detour.width), x);
  }
  a_.pop(a_.rax);
  a_.cmp(form, kUpForm);
  a_.ret();
}

void IntegerTailEmitter::EmitExit(const Exit& exit, const uint8_t* detour) {
  a_.Land(exit.enter);
  a_.call(detour);
  a_.jl(exit.back);
  a_.jmp(exit.floats, a_.T_NEAR);
}

void IntegerTailEmitter::MoveSums(const Detour& detour, RequantizationSlot slot) {
  const Xmm t = VectorOf(t_[2], detour.width);
  const auto sums = a_.ptr[detour.constants + slot * detour.width];
  if (a_.isa().avx512) a_.LoadConst(t_[2], slot == kUpSlot ? kUpwards : kDownwards);
  for (const int reg : detour.regs) {
    const Xmm v = VectorOf(reg, detour.width);
    if (a_.isa().avx512) {
      a_.vpcmpeqd(kMoved, v, sums);
      a_.vpaddd(v | kMoved, v, t);
    } else {
      a_.vpcmpeqd(t, v, sums);
      slot == kUpSlot ? a_.vpsubd(v, v, t) : a_.vpaddd(v, v, t);
    }
  }
}

void IntegerTailEmitter::EmitOtherForm(int width) {
  if (plan_.real) return EmitDoubles();
  Xbyak::Label wide;
  a_.cmp(a_.dword[a_.rax], kNarrowForm);
  a_.jne(wide, a_.T_NEAR);
  EmitNarrow(width);
  a_.ret();
  a_.L(wide);
  EmitWide(width);
}

void IntegerTailEmitter::And(const Xmm& to, const Xmm& x, const Xbyak::Operand& y) {
  a_.isa().avx512 ? a_.vpandd(to, x, y) : a_.vpand(to, x, y);
}

void IntegerTailEmitter::TakeOddLanes(int even_and_result, int odd, int width) {
  const Xmm to = VectorOf(even_and_result, width), from = VectorOf(odd, width);
  if (a_.isa().avx512) {
    a_.vmovdqa32(from | kEven, to);
    a_.vmovaps(to, from);
  } else {
    a_.vpblendd(to, to, from, kOddLanes);
  }
}

void IntegerTailEmitter::EmitNarrow(int width) {
  const Xmm v = VectorOf(t_[2], width), t = VectorOf(t_[0], width), u = VectorOf(t_[1], width);
  a_.vpsllvd(v, v, Constant(kLeftSlot, width));
  a_.vpsrlq(t, v, 32);
  a_.vpmuldq(v, v, Constant(kMultiplierSlot, width));
  a_.vmovups(u, Constant(kMultiplierSlot, width));
  a_.vpsrlq(u, u, 32);
  a_.vpmuldq(t, t, u);
  a_.vpsrlq(v, v, 32);
  TakeOddLanes(t_[2], t_[0], width);
  // y is negative where the sum is.
  a_.vpsrad(u, v, 31);
  And(u, u, Constant(kSignSlot, width));
  a_.vpaddd(v, v, Constant(kNudgeSlot, width));
  a_.vpsubd(v, v, u);
  a_.vpsravd(v, v, Constant(kRightSlot, width));
}

void IntegerTailEmitter::EmitWide(int width) {
  const Xmm v = VectorOf(t_[2], width), t = VectorOf(t_[0], width), u = VectorOf(t_[1], width);
  const auto sums = a_.ptr[a_.rsp - kSpillBytes], signs = a_.ptr[a_.rsp - 2 * kSpillBytes];
  a_.vpsllvd(v, v, Constant(kLeftSlot, width));
  // 2^31 where it is negative and shifted to the right.
  a_.vmovups(u, Constant(kSignSlot, width));
  a_.vpaddd(u, u, a_.Const(0xFFFFFFFFu));
  And(u, u, v);
  And(u, u, a_.Const(kSignBit));
  a_.vmovups(signs, u);
  a_.vmovups(sums, v);
  // Half of the lanes at a time, each in 64 bits: the product, the nudge, the sign.
  const auto round = [&](const Xmm& x, auto load) {
    load(u, Constant(kMultiplierSlot, width));
    a_.vpmuldq(x, x, u);
    load(u, Constant(kSignSlot, width));
    a_.vpsllvq(x, x, u);
    load(u, Constant(kNudgeSlot, width));
    a_.vpaddq(x, x, u);
    load(u, signs);
    a_.vpsubq(x, x, u);
  };
  a_.vpsrlq(t, v, 32);
  round(t, [&](const Xmm& to, const Memory& from) {
    a_.vmovups(to, from);
    a_.vpsrlq(to, to, 32);
  });
  round(v, [&](const Xmm& to, const Memory& from) {
    a_.vmovups(to, from);
    a_.isa().avx512 ? a_.vpandq(to, to, a_.Const64(kLowHalf))
                    : a_.vpand(to, to, a_.Const64(kLowHalf));
  });
  a_.vpsrlq(v, v, 32);
  TakeOddLanes(t_[2], t_[0], width);
  // What the nudge has beyond the low half: 2^(right - 1), or nothing.
  a_.vmovups(u, Constant(kRightSlot, width));
  a_.vpaddd(u, u, a_.Const(0xFFFFFFFFu));
  a_.LoadConst(t_[0], 1u);
  a_.vpsllvd(t, t, u);
  a_.vpaddd(v, v, t);
  a_.vpsravd(v, v, Constant(kRightSlot, width));
  a_.vpaddd(v, v, layer_.Operand(LayerConstant::kOffset));
}

// Half of the lanes at a time, as 64-bit floats.
void IntegerTailEmitter::EmitDoubles() {
  const int width = a_.isa().bytes, reg = t_[2];
  const auto round = [&](int half, int i) {
    const Xmm x = a_.Vec(half), summand = a_.Vec(t_[1]);
    a_.vcvtdq2pd(x, VectorOf(half, width / 2));
    a_.vmulpd(x, x, Constant(kRealSlot + i, width));
    a_.vminpd(x, x, a_.Const64(kFarthest));
    a_.vmaxpd(x, x, a_.Const64(kMinusFarthest));
    if (a_.isa().avx512) {
      a_.LoadConst64(t_[1], kBelowHalf);
      a_.vpternlogq(summand, x, a_.Const64(kSignBit64), kFirstOrBothOthers);
    } else {
      a_.vandpd(summand, x, a_.Const64(kSignBit64));
      a_.vorpd(summand, summand, a_.Const64(kBelowHalf));
    }
    a_.vaddpd(x, x, summand);
    a_.vcvttpd2dq(VectorOf(half, width / 2), x);
  };
  const Ymm y(reg), t(t_[0]);
  width == 64 ? a_.vextracti64x4(t, Zmm(reg), 1) : a_.vextracti128(Xmm(t_[0]), y, 1);
  round(reg, 0);
  round(t_[0], 1);
  if (width == 64) {
    a_.vinserti64x4(Zmm(reg), Zmm(reg), t, 1);
  } else {
    a_.vinserti128(y, y, Xmm(t_[0]), 1);
  }
  a_.vpaddd(a_.Vec(reg), a_.Vec(reg), layer_.Operand(LayerConstant::kOffset));
}

}  // namespace fuselite::jit
