#include "jit/tail/residual_emitter.h"

#include <algorithm>
#include <bit>

#include "runtime/status.h"

namespace fuselite::jit {

using kernels::TailStage;
using Xbyak::RegExp;
using Xbyak::Xmm;

namespace {

constexpr int kMaxRightShift = 20;
const Xbyak::Opmask kSign(3), kPartial(4), kEven(5);

// No value that MultiplyByQuantizedMultiplier gives for |x| <= bound is larger.
int64_t ScaledBound(int64_t bound, int32_t multiplier, int32_t shift) {
  return (((bound * multiplier >> 31) + 1) >> -shift) + 1;
}

bool IsEmitted(int32_t multiplier, int32_t shift) {
  return multiplier >= 0 && shift <= 0 && shift >= -kMaxRightShift;
}

// Whether everything stays within the 32 bits that integer_tail_emitter.h asks for.
bool StaysNarrow(const kernels::QuantizedAdd& add) {
  if (add.left_shift != 20 || !IsEmitted(add.x_multiplier, add.x_shift) ||
      !IsEmitted(add.y_multiplier, add.y_shift) ||
      !IsEmitted(add.output_multiplier, add.output_shift)) {
    return false;
  }
  const auto is_offset = [](int32_t offset) { return offset >= -255 && offset <= 128; };
  if (!is_offset(add.x_offset) || !is_offset(add.y_offset)) return false;
  if (add.output_offset < -128 || add.output_offset > 255) return false;
  const int64_t largest = int64_t{255} << add.left_shift;
  const int64_t sum = ScaledBound(largest, add.x_multiplier, add.x_shift) +
                      ScaledBound(largest, add.y_multiplier, add.y_shift);
  return sum < int64_t{1} << 28;
}

}  // namespace

bool ResidualScale::shifts_left() const {
  return multiplier == 1 << 30 && zero_point == 0 && left > -shift;
}

int32_t ResidualScale::nudge() const {
  const int e = -shift;
  return 1 + (e > 0 ? 1 << e : 0) + zero_point * (1 << (e + 1));
}

int32_t ResidualScale::last_shift() const { return shifts_left() ? left - 1 + shift : 1 - shift; }

void Residual::Encode(LayerConstants* constants) const {
  constants->Set(LayerConstant::kXLeast, min);
  constants->Set(LayerConstant::kXMost, max);
  constants->Set(LayerConstant::kXOffset, add.x_offset);
  constants->Set(LayerConstant::kXMultiplier, x().multiplier);
  constants->Set(LayerConstant::kXNudge, x().nudge());
  constants->Set(LayerConstant::kXShift, x().last_shift());
  constants->Set(LayerConstant::kYOffset, add.y_offset);
  constants->Set(LayerConstant::kYMultiplier, y().multiplier);
  constants->Set(LayerConstant::kYNudge, y().nudge());
  constants->Set(LayerConstant::kYShift, y().last_shift());
  constants->Set(LayerConstant::kSumMultiplier, sum().multiplier);
  constants->Set(LayerConstant::kSumNudge, sum().nudge());
  constants->Set(LayerConstant::kSumShift, sum().last_shift());
  if (!floats) return;
  constants->Set(LayerConstant::kXMultiplier, std::bit_cast<int32_t>(floats->x_scale));
  constants->Set(LayerConstant::kXNudge, std::bit_cast<int32_t>(floats->addend));
  constants->Set(LayerConstant::kYMultiplier, std::bit_cast<int32_t>(floats->y_scale));
}

std::string Residual::key() const {
  if (floats) {
    return internal::Join(" residual floats", is_unsigned, '.', operand.row_stride);
  }
  return internal::Join(" residual", is_unsigned, '.', add.left_shift, '.', x().form(), '.',
                        y().form(), '.', sum().form(), '.', add.negate_x, add.negate_y, '.',
                        operand.row_stride);
}

std::optional<Residual> TakeResidual(kernels::Tail* tail, const VectorIsa& isa, bool whole_vectors,
                                     Requantization* requantization) {
  auto& stages = tail->stages;
  if (stages.empty() || stages[0].kind != TailStage::Kind::kQuantizedAdd) return std::nullopt;
  const TailStage& stage = stages[0];
  const kernels::TailOperand& y = stage.operand;
  const bool linear =
      tail->rows_per_batch == INT64_MAX || y.batch_stride == y.row_stride * tail->rows_per_batch;
  // Without masks for bytes, whole vectors of sums are read.
  const bool whole = isa.avx512 || whole_vectors;
  const int32_t type_min = requantization->is_unsigned ? 0 : -128;
  const bool range = stage.add.min >= type_min && stage.add.max <= type_min + 255 &&
                     stage.add.min <= stage.add.max;
  constexpr int64_t kReach = int64_t{1} << 24;
  if (!linear || !whole || !range || y.channel_stride != 1 || y.row_stride < 0 ||
      y.row_stride > kReach || !StaysNarrow(stage.add)) {
    return std::nullopt;
  }
  Residual residual{.add = stage.add,
                    .min = requantization->min,
                    .max = requantization->max,
                    .is_unsigned = requantization->is_unsigned,
                    .operand = y};
  // The zero point that the requantization has left out.
  residual.min -= requantization->store_offset;
  residual.max -= requantization->store_offset;
  residual.add.x_offset += requantization->store_offset;
  requantization->store_offset = 0;
  requantization->min = stage.add.min;
  requantization->max = stage.add.max;
  stages.erase(stages.begin());
  return residual;
}

void FindFloats(Residual* residual, Requantization* requantization, Isa isa) {
  const int32_t least = residual->is_unsigned ? 0 : -128;
  residual->floats = kernels::FindFloatSum(residual->add, {residual->min, residual->max},
                                           {least, least + 255}, isa);
  if (residual->floats) requantization->store_offset = residual->add.output_offset;
}

void ResidualEmitter::Emit(std::span<const int> regs, int width, const RegExp& address, int bytes) {
  using enum LayerConstant;
  const kernels::QuantizedAdd& add = residual_.add;
  const auto group = static_cast<int>(regs.size());
  const bool partial = bytes < group * width / 4;
  if (residual_.floats) layer_.Load(t0_, kXMultiplier);
  for (int i = 0; i < group; ++i) {
    const Xmm v = VectorOf(regs[i], width), y = VectorOf(y_, width);
    a_.vpmaxsd(v, v, layer_.Operand(kXLeast));
    a_.vpminsd(v, v, layer_.Operand(kXMost));
    a_.vpaddd(v, v, layer_.Operand(kXOffset));
    if (!residual_.floats) {
      Scale(regs[i], width, residual_.x(), {kXMultiplier, kXNudge, kXShift});
    }
    Load(group, i, width, address, partial);
    a_.vpaddd(y, y, layer_.Operand(kYOffset));
    if (residual_.floats) {
      EmitFloats(regs[i], width);
      continue;
    }
    Scale(y_, width, residual_.y(), {kYMultiplier, kYNudge, kYShift});
    if (add.negate_x) {
      a_.vpsubd(v, y, v);
    } else if (add.negate_y) {
      a_.vpsubd(v, v, y);
    } else {
      a_.vpaddd(v, v, y);
    }
    Scale(regs[i], width, residual_.sum(), {kSumMultiplier, kSumNudge, kSumShift});
  }
}

void ResidualEmitter::EmitFloats(int reg, int width) {
  const Xmm v = VectorOf(reg, width), y = VectorOf(y_, width);
  a_.vcvtdq2ps(v, v);
  a_.vfmadd213ps(v, VectorOf(t0_, width), layer_.Operand(LayerConstant::kXNudge));
  a_.vcvtdq2ps(y, y);
  a_.vfmadd231ps(v, y, layer_.Operand(LayerConstant::kYMultiplier));
  a_.vcvtps2dq(v, v);
}

// Vector `v` of a group, widened to 32 bits: unpacked as Narrow packs.
void ResidualEmitter::Load(int group, int v, int width, const RegExp& address, bool partial) {
  const Xmm y = VectorOf(y_, width);
  const Xmm masked = partial ? y | kPartial | a_.T_z : y;
  const bool is_unsigned = residual_.is_unsigned;
  if (group == 1) {
    return is_unsigned ? a_.vpmovzxbd(masked, a_.ptr[address])
                       : a_.vpmovsxbd(masked, a_.ptr[address]);
  }
  int shift = 16;
  if (group == 2) {
    is_unsigned ? a_.vpmovzxbw(masked, a_.ptr[address]) : a_.vpmovsxbw(masked, a_.ptr[address]);
  } else {
    shift = 24;
    partial ? a_.vmovdqu8(masked, a_.ptr[address]) : a_.vmovups(y, a_.ptr[address]);
    v < 2 ? a_.vpunpcklbw(y, y, y) : a_.vpunpckhbw(y, y, y);
  }
  v % 2 == 0 ? a_.vpunpcklwd(y, y, y) : a_.vpunpckhwd(y, y, y);
  is_unsigned ? a_.vpsrld(y, y, shift) : a_.vpsrad(y, y, shift);
}

void ResidualEmitter::Scale(int reg, int width, const ResidualScale& scale,
                            const ScaleConstants& constants) {
  const Xmm v = VectorOf(reg, width), t = VectorOf(t0_, width), m = VectorOf(t1_, width);
  const Xbyak::Address last_shift = layer_.Operand(constants.shift);
  if (scale.shifts_left()) return a_.vpsllvd(v, v, last_shift);
  const Xbyak::Address nudge = layer_.Operand(constants.nudge);
  if (a_.isa().avx512) {
    if (scale.has_sign()) a_.vpmovd2m(kSign, v);
    a_.vpslld(v, v, scale.left + 2);
    layer_.Load(t1_, constants.multiplier);
    a_.vmovshdup(t, v);
    a_.vpmuldq(v, v, m);
    a_.vpmuldq(t, t, m);
    a_.vmovshdup(t | kEven, v);
    a_.vpaddd(t, t, nudge);
    if (scale.has_sign()) a_.vpsubd(t | kSign, t, a_.Const(2u));
    a_.vpsravd(v, t, last_shift);
    return;
  }
  const Xbyak::Address multiplier = layer_.Operand(constants.multiplier);
  // The sign: twice -1 where negative; kept in place of the multiplier when that is used.
  a_.vpslld(v, v, scale.left + 2);
  a_.vpsrlq(t, v, 32);
  a_.vpmuldq(t, t, multiplier);
  a_.vpsrad(m, v, 31);
  a_.vpmuldq(v, v, multiplier);
  a_.vpsrlq(v, v, 32);
  a_.vpblendd(t, v, t, 0xAA);
  a_.vpaddd(t, t, nudge);
  if (scale.has_sign()) {
    a_.vpaddd(m, m, m);
    a_.vpaddd(t, t, m);
  }
  a_.vpsravd(v, t, last_shift);
}

}  // namespace fuselite::jit
