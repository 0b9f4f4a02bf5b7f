#include "jit/integer_tail_emitter.h"

#include <algorithm>
#include <cstring>

#include "kernels/quantization.h"
#include "runtime/hash.h"
#include "runtime/status.h"

namespace fuselite::jit {

using kernels::TailStage;
using Xbyak::RegExp;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

namespace {

constexpr int kMaxRightShift = 20;
constexpr int64_t kMaxSum = int64_t{1} << 28;  // after the left shift
constexpr uint64_t kSignBit = uint64_t{1} << 63;
constexpr uint64_t kBelowHalf = 0x3FDFFFFFFFFFFFFF;  // 0.49999999999999994
constexpr uint8_t kFirstOrBothOthers = 0xF8;         // vpternlog: a | (b & c)
const Xbyak::Opmask kSign(3), kPartial(4), kEven(5);

uint32_t Replicated(int32_t byte) { return 0x01010101u * static_cast<uint8_t>(byte); }

}  // namespace

Xmm VectorOf(int i, int width) {
  if (width == 64) return Zmm(i);
  if (width == 32) return Ymm(i);
  return Xmm(i);
}

std::string Requantization::key() const {
  return internal::Join(" requantize", is_unsigned, '.', real, '.', zero_point, '.', min, '.', max,
                        '.', left, '.', unshifted, " l",
                        lookup ? static_cast<int>(*lookup) + 1 : 0);
}

Result<Requantization> PlanRequantization(const TailStage& stage, DataType output,
                                          int64_t largest_sum) {
  if (output != DataType::kInt8 && output != DataType::kUInt8) {
    return Unsupported("requantization to ", DataTypeName(output), " has no emitter");
  }
  const kernels::Requantize& r = stage.requantize;
  Requantization plan;
  plan.is_unsigned = output == DataType::kUInt8;
  plan.real = stage.kind == TailStage::Kind::kRescale;
  plan.min = plan.real ? stage.min : r.min;
  plan.max = plan.real ? stage.max : r.max;
  const int32_t zero_point = plan.real ? stage.zero_point : r.zero_point;
  int32_t type_min, type_max;
  kernels::QuantizedTypeRange(output, &type_min, &type_max);
  if (plan.min < type_min || plan.max > type_max || plan.min > plan.max) {
    return Unsupported("an output range from ", plan.min, " to ", plan.max, " has no emitter");
  }
  if (zero_point < type_min || zero_point > type_max) {
    return Unsupported("output zero point ", zero_point, " has no emitter");
  }
  if (plan.real) {
    plan.zero_point = zero_point;
    for (const double scale : stage.real_scales) {
      if (scale * static_cast<double>(largest_sum) < 0x1p30) continue;
      return Unsupported("sums up to ", largest_sum, " scaled by ", scale,
                         " have no emitted rescaling");
    }
    return plan;
  }
  for (const int32_t shift : r.shifts) {
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

namespace {

// The scales of the lower and the upper half of the lanes.
void PackRescaling(const TailStage& stage, std::span<const int64_t> channels, int32_t* to) {
  auto* constants = reinterpret_cast<std::byte*>(to);
  for (size_t i = 0; i < channels.size(); ++i) {
    const size_t c = stage.real_scales.size() > 1 && channels[i] >= 0 ? channels[i] : 0;
    std::memcpy(constants + i * 8, &stage.real_scales[c], 8);
  }
}

}  // namespace

void PackRequantization(const TailStage& stage, const Requantization& plan,
                        std::span<const int64_t> channels, int32_t* to) {
  if (plan.real) return PackRescaling(stage, channels, to);
  const kernels::Requantize& r = stage.requantize;
  const size_t lanes = channels.size();
  std::fill_n(to, lanes * plan.constants(), 0);
  for (size_t i = 0; i < lanes; ++i) {
    if (channels[i] < 0) continue;
    const size_t c = r.multipliers.size() > 1 ? channels[i] : 0;
    const int32_t shift = r.shifts[c];
    const int right = std::max(-shift, 0);
    int32_t* constant = to + i;
    constant[0] = r.multipliers[c];
    if (i % 2 == 1) to[lanes + i - 1] = r.multipliers[c];
    constant[2 * lanes] = 1 + (right > 0 ? 1 << right : 0) + r.zero_point * (1 << (right + 1));
    constant[3 * lanes] = right + 1;
    constant += 4 * lanes;
    if (plan.left) {
      *constant = 2 + std::max(shift, 0);
      constant += lanes;
    }
    if (plan.unshifted) *constant = right > 0 ? 2 : 0;
  }
}

std::string ConstantsKey(const TailStage& stage) {
  const kernels::Requantize& r = stage.requantize;
  const auto hash = [](const auto& values) {
    return HashBytes(values.data(), values.size() * sizeof(values[0])).low;
  };
  return internal::Join(" z", r.zero_point, " m", hash(r.multipliers), " s", hash(r.shifts), " r",
                        hash(stage.real_scales));
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
  if (plan_.real) return Rescale(reg, constants);
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

// Half of the lanes at a time, as 64-bit floats.
void IntegerTailEmitter::Rescale(int reg, const RegExp& constants) {
  const int width = a_.isa().bytes;
  const auto constant = [&](int i) { return a_.ptr[constants + i * width]; };
  const auto round = [&](int half, int i) {
    const Xmm x = a_.Vec(half), summand = a_.Vec(t1_);
    a_.vcvtdq2pd(x, VectorOf(half, width / 2));
    a_.vmulpd(x, x, constant(i));
    if (a_.isa().avx512) {
      a_.LoadConst64(t1_, kBelowHalf);
      a_.vpternlogq(summand, x, a_.Const64(kSignBit), kFirstOrBothOthers);
    } else {
      a_.vandpd(summand, x, a_.Const64(kSignBit));
      a_.vorpd(summand, summand, a_.Const64(kBelowHalf));
    }
    a_.vaddpd(x, x, summand);
    a_.vcvttpd2dq(VectorOf(half, width / 2), x);
  };
  const Ymm y(reg), t(t0_);
  width == 64 ? a_.vextracti64x4(t, Zmm(reg), 1) : a_.vextracti128(Xmm(t0_), y, 1);
  round(reg, 0);
  round(t0_, 1);
  if (width == 64) {
    a_.vinserti64x4(Zmm(reg), Zmm(reg), t, 1);
  } else {
    a_.vinserti128(y, y, Xmm(t0_), 1);
  }
  if (plan_.zero_point == 0) return;
  a_.vpaddd(a_.Vec(reg), a_.Vec(reg), a_.Const(static_cast<uint32_t>(plan_.zero_point)));
}

void IntegerTailEmitter::Store(std::span<const int> regs, int width, const RegExp& address,
                               int bytes) {
  const int available = Narrow(regs, width);
  Clamp(regs[0], available);
  if (plan_.lookup) LookupEmitter(a_, *plan_.lookup, table_, t0_, t1_).Emit(regs[0], available);
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
