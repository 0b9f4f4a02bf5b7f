// The tail's stages on integers: TFLite's fixed-point arithmetic, to the bit.
//
// SaturatingRoundingDoublingHighMul followed by RoundingDivideByPowerOfTwo, both rounding halves
// away from zero (kernels/quantization.h), becomes one shift. With w = floor(x m / 2^30) the first
// result is v = floor((w + 1) / 2), and the second floor((v + 2^(e-1) - [v < 0]) / 2^e), e >= 1.
// Nested floors join: floor((w + 1 + 2^e - 2 [w < -1]) / 2^(e+1)). For e = 0 it is
// floor((w + 1) / 2). An output offset z is added before the shift, as z 2^(e+1).
#include <algorithm>
#include <cstring>

#include "jit/tail_emitter.h"
#include "kernels/tail/apply.h"
#include "runtime/hash.h"

namespace fuselite::jit {

using kernels::QuantizedAdd;
using kernels::Requantize;
using kernels::Tail;
using kernels::TailOperand;
using kernels::TailStage;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

namespace {

// The vectors of a requantization's channel data.
// The products of even lanes take kEven, those of odd lanes kOdd, whose values stand in even lanes.
enum { kEven, kOdd, kOffset, kShift, kNegative, kLeft, kRequantizeVectors };

// Within them nothing leaves 32 bits: |x| < 2^29, so |w| < 2^30; 2^e and the offset stay below
// 2^29.
constexpr int64_t kMaxSum = int64_t{1} << 29;
constexpr int kScale = 2;  // 4 x m has w as its upper 32 bits
constexpr int kMaxRight = 20;
constexpr int kMaxAddRight = 28;  // without an offset

Status CheckRequantize(const Requantize& r, int64_t sum_bound) {
  for (size_t i = 0; i < r.shifts.size(); ++i) {
    if (r.multipliers[i] == 0) continue;
    if (r.shifts[i] < -kMaxRight) return Unsupported("a scale of 2^", r.shifts[i], " is too small");
    const int left = std::max(r.shifts[i], 0);
    if (left > 8 || (sum_bound << left) >= kMaxSum) {
      return Unsupported("sums up to ", sum_bound, " are too large to be requantized in 32 bits");
    }
  }
  return Status();
}

bool Fits(int32_t shift) { return shift <= 0 && shift >= -kMaxAddRight; }

Status CheckAdd(const TailStage& stage) {
  const QuantizedAdd& q = stage.add;
  const bool fits = Fits(q.x_shift) && Fits(q.y_shift) && Fits(q.output_shift) &&
                    q.left_shift >= 0 && q.left_shift <= 20 && stage.operand.channel_stride == 1;
  return fits ? Status() : Unsupported("tail stage ", stage.ToString(), " has no emitter");
}

}  // namespace

int ChannelDataVectors(const Tail& tail) {
  if (tail.empty()) return 0;
  if (tail.stages[0].kind == TailStage::Kind::kRequantize) return kRequantizeVectors;
  return tail.stages[0].kind == TailStage::Kind::kRescale ? 2 : 0;
}

std::string ChannelDataKey(const Tail& tail) {
  if (ChannelDataVectors(tail) == 0) return "";
  const TailStage& stage = tail.stages[0];
  const Requantize& r = stage.requantize;
  const auto hash = [](const auto& values, uint64_t seed) {
    return HashBytes(values.data(), values.size() * sizeof(values[0]), seed).low;
  };
  return internal::Join(" data", static_cast<int>(stage.kind), '.', r.zero_point, '.',
                        hash(r.multipliers, 1), '.', hash(r.shifts, 2), '.',
                        hash(stage.real_scales, 3));
}

void PackChannelData(const TailStage& stage, const VectorIsa& isa,
                     std::span<const int64_t> channels, std::byte* to) {
  for (size_t lane = 0; lane < channels.size(); ++lane) {
    const int64_t c = std::max<int64_t>(channels[lane], 0);
    if (stage.kind == TailStage::Kind::kRescale) {
      const double scale = stage.real_scales[stage.real_scales.size() > 1 ? c : 0];
      std::memcpy(to + lane * sizeof(double), &scale, sizeof(double));
      continue;
    }
    const Requantize& r = stage.requantize;
    const int64_t i = r.multipliers.size() > 1 ? c : 0;
    const int right = r.multipliers[i] == 0 ? 1 : std::max(-r.shifts[i], 0);
    const auto set = [&](int vector, int32_t value) {
      std::memcpy(to + vector * isa.bytes + lane * sizeof(value), &value, sizeof(value));
    };
    set(kEven, r.multipliers[i]);
    if (lane % 2 == 1) {
      std::memcpy(to + kOdd * isa.bytes + (lane - 1) * 4, &r.multipliers[i], 4);
    }
    set(kOffset, 1 + (right > 0 ? 1 << right : 0) + r.zero_point * (1 << (right + 1)));
    set(kShift, right + 1);
    set(kNegative, right > 0 ? 2 : 0);
    set(kLeft, kScale + std::max(r.shifts[i], 0));
  }
}

Result<FusedTail> FuseQuantizedTail(const Tail& stages, DataType output, int64_t sum_bound,
                                    int64_t line_rows) {
  FusedTail tail;
  tail.emitted.rows_per_batch = tail.rest.rows_per_batch = stages.rows_per_batch;
  if (stages.empty() || (output != DataType::kInt8 && output != DataType::kUInt8)) {
    return Unsupported("8-bit products with ", DataTypeName(output), " output have no emitter");
  }
  const TailStage& first = stages.stages[0];
  if (sum_bound >= kMaxSum) {
    return Unsupported("sums up to ", sum_bound, " are too large to be requantized in 32 bits");
  }
  if (first.kind == TailStage::Kind::kRequantize) {
    FUSELITE_RETURN_IF_ERROR(CheckRequantize(first.requantize, sum_bound));
  } else if (first.kind != TailStage::Kind::kRescale) {
    return Unsupported("tail stage ", first.ToString(), " has no emitter on sums");
  }
  tail.emitted.stages.push_back(first);
  int operands = 0;
  for (size_t i = 1; i < stages.stages.size(); ++i) {
    const TailStage& stage = stages.stages[i];
    const Tail one{.stages = {stage}, .rows_per_batch = stages.rows_per_batch};
    const bool steady = TailIsLinear(one) || stages.rows_per_batch % line_rows == 0;
    const bool fits = steady && stage.kind == TailStage::Kind::kQuantizedAdd &&
                      CheckAdd(stage).ok() && ++operands <= kMaxTailOperands;
    (fits && tail.rest.empty() ? tail.emitted : tail.rest).stages.push_back(stage);
  }
  return tail;
}

// The even lanes, which MergeProducts fills.
void TailEmitter::Prepare(Assembler& a, const Tail& tail) {
  if (!a.isa().avx512 || tail.empty()) return;
  a.mov(a.eax, 0x5555);
  a.kmovw(a.k3, a.eax);
}

Xbyak::Address TailEmitter::ChannelData(const TileValue& value, int per_vector, int i) const {
  const int vector = value.vector * per_vector + i;
  return a_.ptr[r_.channel_data + r_.channel_data_offset + vector * a_.isa().bytes];
}

// The store saturates to the type, so that the last stage needs no bounds that are the type's own;
// to uint8 it takes negative values for large ones.
void TailEmitter::ClampIntegers(int v, int32_t min, int32_t max, bool last) {
  const Xmm x = a_.Vec(v);
  const bool low = !last || !r_.is_signed || min > -128;
  const bool high = !last || max < (r_.is_signed ? 127 : 255);
  if (low) a_.vpmaxsd(x, x, a_.Const(static_cast<uint32_t>(min)));
  if (high) a_.vpminsd(x, x, a_.Const(static_cast<uint32_t>(max)));
}

// The upper halves of all products: v holds those of odd lanes, `even` those of even ones.
void TailEmitter::MergeProducts(int v, int even) {
  if (a_.isa().avx512) return a_.vmovshdup(Zmm(v) | a_.k3, Zmm(even));
  a_.vpsrlq(Ymm(even), Ymm(even), 32);
  a_.vpblendd(Ymm(v), Ymm(v), Ymm(even), 0x55);
}

void TailEmitter::EmitRequantize(const TailStage& stage, std::span<const TileValue> values,
                                 bool last) {
  const Requantize& r = stage.requantize;
  const bool left = std::any_of(r.shifts.begin(), r.shifts.end(), [](int s) { return s > 0; });
  const Xmm t0 = a_.Vec(t(0));
  for (const TileValue& value : values) {
    const Xmm x = a_.Vec(value.reg);
    const auto data = [&](int i) { return ChannelData(value, kRequantizeVectors, i); };
    left ? a_.vpsllvd(x, x, data(kLeft)) : a_.vpslld(x, x, kScale);
    a_.vpmuldq(t0, x, data(kEven));
    a_.vmovshdup(x, x);
    a_.vpmuldq(x, x, data(kOdd));
    MergeProducts(value.reg, t(0));
    if (a_.isa().avx512) {
      a_.vpcmpd(a_.k2, x, a_.Const(~0u), 1);
      a_.vpsubd(x | a_.k2, x, data(kNegative));
    } else {
      a_.vpcmpeqd(t0, t0, t0);
      a_.vpcmpgtd(t0, t0, x);
      a_.vpand(t0, t0, data(kNegative));
      a_.vpsubd(x, x, t0);
    }
    a_.vpaddd(x, x, data(kOffset));
    a_.vpsravd(x, x, data(kShift));
    ClampIntegers(value.reg, r.min, r.max, last);
  }
}

// x m 2^(shift - 31) with constants that all channels share, shift <= 0.
void TailEmitter::Multiply(int v, int32_t multiplier, int32_t shift) {
  const Xmm x = a_.Vec(v), t1 = a_.Vec(t(1)), t2 = a_.Vec(t(2));
  a_.LoadConst(t(2), static_cast<uint32_t>(multiplier));
  a_.vpslld(x, x, kScale);
  a_.vpmuldq(t1, x, t2);
  a_.vmovshdup(x, x);
  a_.vpmuldq(x, x, t2);
  MergeProducts(v, t(1));
  const int right = -shift;
  if (right > 0 && a_.isa().avx512) {
    a_.vpcmpd(a_.k2, x, a_.Const(~0u), 1);
    a_.vpsubd(x | a_.k2, x, a_.Const(2u));
  } else if (right > 0) {
    a_.vpcmpeqd(t1, t1, t1);
    a_.vpcmpgtd(t1, t1, x);
    a_.vpaddd(x, x, t1);
    a_.vpaddd(x, x, t1);
  }
  a_.vpaddd(x, x, a_.Const(1u + (right > 0 ? 1u << right : 0u)));
  a_.vpsrad(x, x, right + 1);
}

void TailEmitter::EmitQuantizedAdd(const TailStage& stage, std::span<const TileValue> values,
                                   bool last) {
  const QuantizedAdd& q = stage.add;
  const TailOperand& operand = stage.operand;
  const Xmm y = a_.Vec(t(0));
  for (const TileValue& value : values) {
    const Xmm x = a_.Vec(value.reg);
    const auto offset =
        static_cast<int32_t>(value.row * operand.row_stride + value.vector * a_.isa().lanes());
    a_.LoadBytes(t(0), r_.pointer + offset, value.partial, r_.is_signed);
    a_.vpaddd(x, x, a_.Const(static_cast<uint32_t>(q.x_offset)));
    a_.vpaddd(y, y, a_.Const(static_cast<uint32_t>(q.y_offset)));
    a_.vpslld(x, x, q.left_shift);
    a_.vpslld(y, y, q.left_shift);
    Multiply(value.reg, q.x_multiplier, q.x_shift);
    Multiply(t(0), q.y_multiplier, q.y_shift);
    a_.vpaddd(x, x, y);
    Multiply(value.reg, q.output_multiplier, q.output_shift);
    a_.vpaddd(x, x, a_.Const(static_cast<uint32_t>(q.output_offset)));
    ClampIntegers(value.reg, q.min, q.max, last);
  }
}

// round(wide * scales), halves away from zero, within int32: x + copysign(the double before 0.5, x)
// truncates to that for all |x| < 2^52.
void TailEmitter::RescaleHalf(const Xmm& wide, const Xbyak::Address& scales) {
  const Xmm t2 = a_.Vec(t(2));
  a_.vmulpd(wide, wide, scales);
  a_.vminpd(wide, wide, a_.Const64(0x41D0000000000000));  // 2^30
  a_.vmaxpd(wide, wide, a_.Const64(0xC1D0000000000000));
  a_.vandpd(t2, wide, a_.Const64(0x8000000000000000));
  a_.vorpd(t2, t2, a_.Const64(0x3FDFFFFFFFFFFFFF));
  a_.vaddpd(wide, wide, t2);
}

void TailEmitter::EmitRescale(const TailStage& stage, std::span<const TileValue> values,
                              bool last) {
  const Xmm low = a_.Vec(t(0)), high = a_.Vec(t(1));
  for (const TileValue& value : values) {
    const int v = value.reg;
    if (a_.isa().avx512) {
      a_.vcvtdq2pd(Zmm(t(0)), Ymm(v));
      a_.vextracti64x4(Ymm(v), Zmm(v), 1);
      a_.vcvtdq2pd(Zmm(t(1)), Ymm(v));
    } else {
      a_.vcvtdq2pd(Ymm(t(0)), Xmm(v));
      a_.vextracti128(Xmm(v), Ymm(v), 1);
      a_.vcvtdq2pd(Ymm(t(1)), Xmm(v));
    }
    RescaleHalf(low, ChannelData(value, 2, 0));
    RescaleHalf(high, ChannelData(value, 2, 1));
    if (a_.isa().avx512) {
      a_.vcvttpd2dq(Ymm(v), Zmm(t(0)));
      a_.vcvttpd2dq(Ymm(t(1)), Zmm(t(1)));
      a_.vinserti64x4(Zmm(v), Zmm(v), Ymm(t(1)), 1);
    } else {
      a_.vcvttpd2dq(Xmm(v), Ymm(t(0)));
      a_.vcvttpd2dq(Xmm(t(1)), Ymm(t(1)));
      a_.vinserti128(Ymm(v), Ymm(v), Xmm(t(1)), 1);
    }
    a_.vpaddd(a_.Vec(v), a_.Vec(v), a_.Const(static_cast<uint32_t>(stage.zero_point)));
    ClampIntegers(v, stage.min, stage.max, last);
  }
}

}  // namespace fuselite::jit
