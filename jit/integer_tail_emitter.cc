#include "jit/integer_tail_emitter.h"

#include <algorithm>

#include "kernels/quantization.h"
#include "runtime/status.h"

namespace fuselite::jit {

using Xbyak::RegExp;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

namespace {

constexpr int kMaxRightShift = 20;
constexpr int64_t kMaxSum = int64_t{1} << 28;  // after the left shift
const Xbyak::Opmask kSign(3), kPartial(4), kEven(5);

uint32_t Replicated(int32_t byte) { return 0x01010101u * static_cast<uint8_t>(byte); }

}  // namespace

Xmm VectorOf(int i, int width) {
  if (width == 64) return Zmm(i);
  if (width == 32) return Ymm(i);
  return Xmm(i);
}

std::string Requantization::key() const {
  return internal::Join(" requantize", is_unsigned, '.', min, '.', max, '.', left, '.', unshifted);
}

Result<Requantization> PlanRequantization(const kernels::Requantize& requantize, DataType output,
                                          int64_t largest_sum) {
  if (output != DataType::kInt8 && output != DataType::kUInt8) {
    return Unsupported("requantization to ", DataTypeName(output), " has no emitter");
  }
  Requantization plan{.is_unsigned = output == DataType::kUInt8,
                      .min = requantize.min,
                      .max = requantize.max,
                      .left = false,
                      .unshifted = false};
  int32_t type_min, type_max;
  kernels::QuantizedTypeRange(output, &type_min, &type_max);
  if (plan.min < type_min || plan.max > type_max || plan.min > plan.max) {
    return Unsupported("an output range from ", plan.min, " to ", plan.max, " has no emitter");
  }
  if (requantize.zero_point < type_min || requantize.zero_point > type_max) {
    return Unsupported("output zero point ", requantize.zero_point, " has no emitter");
  }
  for (const int32_t shift : requantize.shifts) {
    const int left = std::max(shift, 0);
    if (shift < -kMaxRightShift || left > 24 || largest_sum << left >= kMaxSum) {
      return Unsupported("sums up to ", largest_sum, " scaled by 2^", shift,
                         " have no emitted requantization");
    }
    plan.left |= shift > 0;
    plan.unshifted |= shift >= 0;
  }
  return plan;
}

std::optional<Requantization> TakeRequantization(kernels::Tail* tail, DataType output,
                                                 int64_t largest_sum,
                                                 kernels::Requantize* requantize) {
  using Kind = kernels::TailStage::Kind;
  auto& stages = tail->stages;
  if (stages.empty() || stages[0].kind != Kind::kRequantize) return std::nullopt;
  const bool on_bytes = std::all_of(stages.begin() + 1, stages.end(), [](const auto& stage) {
    return stage.kind == Kind::kQuantizedAdd || stage.kind == Kind::kLookup;
  });
  if (!on_bytes) return std::nullopt;
  const auto plan = PlanRequantization(stages[0].requantize, output, largest_sum);
  if (!plan.ok()) return std::nullopt;
  *requantize = std::move(stages[0].requantize);
  stages.erase(stages.begin());
  return *plan;
}

void PackRequantization(const kernels::Requantize& requantize, const Requantization& plan,
                        std::span<const int64_t> channels, int32_t* to) {
  const size_t lanes = channels.size();
  std::fill_n(to, lanes * plan.constants(), 0);
  for (size_t i = 0; i < lanes; ++i) {
    if (channels[i] < 0) continue;
    const size_t c = requantize.multipliers.size() > 1 ? channels[i] : 0;
    const int32_t shift = requantize.shifts[c];
    const int right = std::max(-shift, 0);
    int32_t* constant = to + i;
    constant[0] = requantize.multipliers[c];
    if (i % 2 == 1) to[lanes + i - 1] = requantize.multipliers[c];
    constant[2 * lanes] =
        1 + (right > 0 ? 1 << right : 0) + requantize.zero_point * (1 << (right + 1));
    constant[3 * lanes] = right + 1;
    constant += 4 * lanes;
    if (plan.left) {
      *constant = 2 + std::max(shift, 0);
      constant += lanes;
    }
    if (plan.unshifted) *constant = right > 0 ? 2 : 0;
  }
}

void IntegerTailEmitter::Prepare(int partial_bytes) {
  if (!a_.isa().avx512) return;
  a_.mov(a_.eax, 0x5555);
  a_.kmovw(kEven, a_.eax);
  if (partial_bytes <= 0 || partial_bytes >= 64) return;
  a_.mov(a_.rax, (uint64_t{1} << partial_bytes) - 1);
  a_.kmovq(kPartial, a_.rax);
}

void IntegerTailEmitter::Requantize(int reg, int width, const RegExp& constants) {
  if (a_.isa().avx512) return RequantizeAvx512(reg, width, constants);
  RequantizeAvx2(reg, width, constants);
}

void IntegerTailEmitter::RequantizeAvx512(int reg, int width, const RegExp& constants) {
  const Xmm v = VectorOf(reg, width), t = VectorOf(t0_, width);
  const auto constant = [&](int i) { return a_.ptr[constants + i * width]; };
  a_.vpmovd2m(kSign, v);
  if (plan_.left) {
    a_.vpsllvd(v, v, constant(4));
  } else {
    a_.vpslld(v, v, 2);
  }
  a_.vmovshdup(t, v);
  a_.vpmuldq(v, v, constant(0));
  a_.vpmuldq(t, t, constant(1));
  a_.vmovshdup(t | kEven, v);
  a_.vpaddd(t, t, constant(2));
  if (plan_.unshifted) {
    a_.vpsubd(t | kSign, t, constant(4 + plan_.left));
  } else {
    a_.vpsubd(t | kSign, t, a_.Const(2u));
  }
  a_.vpsravd(v, t, constant(3));
}

void IntegerTailEmitter::RequantizeAvx2(int reg, int width, const RegExp& constants) {
  const Xmm v = VectorOf(reg, width), t = VectorOf(t0_, width), sign = VectorOf(t1_, width);
  const auto constant = [&](int i) { return a_.ptr[constants + i * width]; };
  a_.vpsrad(sign, v, 31);
  a_.vpand(sign, sign, plan_.unshifted ? constant(4 + plan_.left) : a_.Const(2u));
  if (plan_.left) {
    a_.vpsllvd(v, v, constant(4));
  } else {
    a_.vpslld(v, v, 2);
  }
  a_.vpsrlq(t, v, 32);
  a_.vpmuldq(v, v, constant(0));
  a_.vpmuldq(t, t, constant(1));
  a_.vpsrlq(v, v, 32);
  a_.vpblendd(t, v, t, 0xAA);
  a_.vpaddd(t, t, constant(2));
  a_.vpsubd(t, t, sign);
  a_.vpsravd(v, t, constant(3));
}

void IntegerTailEmitter::Store(std::span<const int> regs, int width, const RegExp& address,
                               int bytes) {
  const int available = Narrow(regs, width);
  Clamp(regs[0], available);
  StoreBytes(regs[0], address, available, bytes);
}

int IntegerTailEmitter::Narrow(std::span<const int> regs, int width) {
  const auto reg = [&](int i) { return VectorOf(regs[i], width); };
  const auto to_bytes = [&](const Xmm& to, const Xmm& low, const Xmm& high) {
    plan_.is_unsigned ? a_.vpackuswb(to, low, high) : a_.vpacksswb(to, low, high);
  };
  const Xmm first = Xmm(regs[0]), t = Xmm(t0_);
  if (regs.size() == 4) {
    a_.vpackssdw(reg(0), reg(0), reg(1));
    a_.vpackssdw(reg(2), reg(2), reg(3));
    to_bytes(reg(0), reg(0), reg(2));
    return width;
  }
  const int available = width / 4 * static_cast<int>(regs.size());
  if (regs.size() == 2) {
    a_.vpackssdw(reg(0), reg(0), reg(1));
    if (width == 64) {
      if (plan_.is_unsigned) {
        a_.Zero(t0_);
        a_.vpmaxsw(reg(0), reg(0), Zmm(t0_));
        a_.vpmovuswb(Ymm(regs[0]), reg(0));
      } else {
        a_.vpmovswb(Ymm(regs[0]), reg(0));
      }
      return available;
    }
  } else if (width == 64) {
    if (plan_.is_unsigned) {
      a_.Zero(t0_);
      a_.vpmaxsd(reg(0), reg(0), Zmm(t0_));
      a_.vpmovusdb(first, reg(0));
    } else {
      a_.vpmovsdb(first, reg(0));
    }
    return available;
  }
  // Words (of a pair) or double words in one register of at most 32 bytes.
  if (width == 32)
    a_.isa().avx512 ? a_.vextracti32x4(t, Ymm(regs[0]), 1) : a_.vextracti128(t, Ymm(regs[0]), 1);
  const Xmm& upper = width == 32 ? t : first;
  if (regs.size() == 2) {
    to_bytes(first, first, upper);
  } else {
    a_.vpackssdw(first, first, upper);
    to_bytes(first, first, first);
  }
  return available;
}

void IntegerTailEmitter::Clamp(int reg, int bytes) {
  const int width = bytes >= 16 ? bytes : 16;
  const Xmm v = VectorOf(reg, width), t = VectorOf(t0_, width);
  const int32_t type_min = plan_.is_unsigned ? 0 : -128, type_max = plan_.is_unsigned ? 255 : 127;
  if (plan_.min > type_min) {
    a_.LoadConst(t0_, Replicated(plan_.min));
    plan_.is_unsigned ? a_.vpmaxub(v, v, t) : a_.vpmaxsb(v, v, t);
  }
  if (plan_.max < type_max) {
    a_.LoadConst(t0_, Replicated(plan_.max));
    plan_.is_unsigned ? a_.vpminub(v, v, t) : a_.vpminsb(v, v, t);
  }
}

void IntegerTailEmitter::StoreBytes(int reg, const RegExp& address, int available, int bytes) {
  const bool evex = a_.isa().avx512;
  if (bytes == 4) return a_.vmovd(a_.ptr[address], Xmm(reg));
  if (bytes == 8) return a_.vmovq(a_.ptr[address], Xmm(reg));
  if (bytes < available && evex) {
    return a_.vmovdqu8(a_.ptr[address] | kPartial, VectorOf(reg, std::max(available, 16)));
  }
  if (bytes == 16 || bytes == 32 || bytes == 64)
    return a_.vmovups(a_.ptr[address], VectorOf(reg, bytes));
  StorePieces(reg, address, bytes);
}

// AVX2. Piece by piece: there are no stores masked by bytes that are fast.
void IntegerTailEmitter::StorePieces(int reg, RegExp address, int bytes) {
  const Xmm v(reg);
  if (bytes >= 16) {
    a_.vmovups(a_.ptr[address], v);
    a_.vextracti128(v, Ymm(reg), 1);
    address = address + 16;
    bytes -= 16;
  }
  for (const int piece : {8, 4, 2, 1}) {
    if (!(bytes & piece)) continue;
    switch (piece) {
      case 8: a_.vmovq(a_.ptr[address], v); break;
      case 4: a_.vmovd(a_.ptr[address], v); break;
      case 2: a_.vpextrw(a_.ptr[address], v, 0); break;
      default: a_.vpextrb(a_.ptr[address], v, 0); break;
    }
    a_.vpsrldq(v, v, piece);
    address = address + piece;
  }
}

}  // namespace fuselite::jit
