#include "jit/tail/residual_emitter.h"

#include <bit>
#include <cstdlib>

#include "runtime/support/status.h"

namespace fuselite::jit {

using kernels::TailStage;
using Xbyak::Xmm;

namespace {

// The largest shift, and zero point as it is added to a sum before the shift: the sum, of 28 bits,
// counts twice there (ResidualScale::nudge).
constexpr int kMostShift = 28;
constexpr int64_t kMostOffset = int64_t{1} << 30;
const Xbyak::Opmask kSign(3), kPartial(4), kEven(5);

// No value that MultiplyByQuantizedMultiplier gives for |x| <= bound is larger.
int64_t ScaledBound(int64_t bound, int32_t multiplier, int32_t shift) {
  return (((bound * multiplier >> 31) + 1) >> -shift) + 1;
}

// Operands whose every byte is scaled to 0 have a multiplier of 0: masks of zeros have scales for
// which there are no shifts.
void DropNothings(kernels::QuantizedAdd* add) {
  const int64_t largest = int64_t{255} << add->left_shift;
  const auto drop = [largest](int32_t* multiplier, int32_t* shift) {
    if (*multiplier < 0 || *shift > -2 || *shift < -31) return;
    if ((largest * *multiplier >> 31) + 1 < int64_t{1} << (-*shift - 1)) *multiplier = *shift = 0;
  };
  drop(&add->x_multiplier, &add->x_shift);
  drop(&add->y_multiplier, &add->y_shift);
}

bool IsEmitted(int32_t multiplier, int32_t shift) {
  return multiplier >= 0 && shift <= 0 && shift >= -kMostShift;
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
  const int64_t offset = std::abs(add.output_offset) * (int64_t{2} << -add.output_shift);
  if (offset > kMostOffset) return false;
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

void Residual::Encode(size_t index, LayerConstants* layer) const {
  const auto set = [&](LayerConstant constant, int32_t value) {
    layer->Set(constant, value, index);
  };
  set(LayerConstant::kXLeast, min);
  set(LayerConstant::kXMost, max);
  set(LayerConstant::kXOffset, add.x_offset);
  set(LayerConstant::kXMultiplier, x().multiplier);
  set(LayerConstant::kXNudge, x().nudge());
  set(LayerConstant::kXShift, x().last_shift());
  set(LayerConstant::kYOffset, add.y_offset);
  set(LayerConstant::kYMultiplier, y().multiplier);
  set(LayerConstant::kYNudge, y().nudge());
  set(LayerConstant::kYShift, y().last_shift());
  set(LayerConstant::kSumMultiplier, sum().multiplier);
  set(LayerConstant::kSumNudge, sum().nudge());
  set(LayerConstant::kSumShift, sum().last_shift());
  if (!floats) return;
  set(LayerConstant::kXMultiplier, std::bit_cast<int32_t>(floats->x_scale));
  set(LayerConstant::kXNudge, std::bit_cast<int32_t>(floats->addend));
  set(LayerConstant::kYMultiplier, std::bit_cast<int32_t>(floats->y_scale));
}

std::string Residual::key() const {
  if (floats) {
    return internal::Join(" residual floats", int{is_unsigned}, '.', operand.row_stride);
  }
  return internal::Join(" residual", int{is_unsigned}, '.', add.left_shift, '.', x().form(), '.',
                        y().form(), '.', sum().form(), '.', int{add.negate_x}, int{add.negate_y},
                        '.', operand.row_stride);
}

namespace {

// That which was left out before the residual, to be added when bytes are stored.
void TakeZeroPoint(Residual* residual, Requantization* requantization) {
  residual->min -= requantization->store_offset;
  residual->max -= requantization->store_offset;
  residual->add.x_offset += requantization->store_offset;
  requantization->store_offset = 0;
}

}  // namespace

std::optional<Residual> TakeResidual(kernels::Tail* tail, int64_t rows_of_call,
                                     Requantization* requantization) {
  auto& stages = tail->stages;
  if (stages.empty() || stages[0].kind != TailStage::Kind::kQuantizedAdd) return std::nullopt;
  kernels::QuantizedAdd add = stages[0].add;
  const kernels::TailOperand y = stages[0].operand;
  DropNothings(&add);
  const bool linear =
      tail->rows_per_batch == INT64_MAX || y.batch_stride == y.row_stride * tail->rows_per_batch;
  const bool follows = linear || (rows_of_call > 0 && tail->rows_per_batch % rows_of_call == 0);
  const int32_t type_min = requantization->is_unsigned ? 0 : -128;
  const bool range = add.min >= type_min && add.max <= type_min + 255 && add.min <= add.max;
  constexpr int64_t kReach = int64_t{1} << 24;
  if (!follows || !range || y.channel_stride != 1 || y.row_stride < 0 || y.row_stride > kReach ||
      !StaysNarrow(add)) {
    return std::nullopt;
  }
  Residual residual{.add = add,
                    .min = requantization->min,
                    .max = requantization->max,
                    .is_unsigned = requantization->is_unsigned,
                    .operand = y,
                    .rows_per_batch = linear ? INT64_MAX : tail->rows_per_batch};
  TakeZeroPoint(&residual, requantization);
  requantization->min = add.min;
  requantization->max = add.max;
  stages.erase(stages.begin());
  return residual;
}

void FindFloats(Residual* residual, Requantization* requantization, Isa isa) {
  TakeZeroPoint(residual, requantization);
  const int32_t least = residual->is_unsigned ? 0 : -128;
  residual->floats = kernels::FindFloatSum(residual->add, {residual->min, residual->max},
                                           {least, least + 255}, isa);
  if (residual->floats) requantization->store_offset = residual->add.output_offset;
}

void ResidualEmitter::Emit(std::span<const int> regs, int width, const Place& address, int bytes) {
  using enum LayerConstant;
  const kernels::QuantizedAdd& add = residual_.add;
  const auto group = static_cast<int>(regs.size());
  if (residual_.floats) layer_.Load(t0_, kXMultiplier);
  for (int i = 0; i < group; ++i) {
    const Xmm v = VectorOf(regs[i], width), y = VectorOf(y_, width);
    a_.vpmaxsd(v, v, layer_.Operand(kXLeast));
    a_.vpminsd(v, v, layer_.Operand(kXMost));
    a_.vpaddd(v, v, layer_.Operand(kXOffset));
    if (!residual_.floats) {
      Scale(regs[i], width, residual_.x(), {kXMultiplier, kXNudge, kXShift});
    }
    Load(group, i, width, address, bytes);
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
void ResidualEmitter::Load(int group, int v, int width, const Place& address, int bytes) {
  const Xmm y = VectorOf(y_, width);
  const bool partial = bytes < group * width / 4, pieces = partial && !a_.isa().avx512;
  if (pieces) LoadPieces(y_, address, bytes);
  const Xmm masked = partial && !pieces ? y | kPartial | a_.T_z : y;
  const Xmm in_register = Xmm(y_);
  const Xbyak::Address in_memory = a_.ptr[address];
  const Xbyak::Operand& from = pieces ? static_cast<const Xbyak::Operand&>(in_register) : in_memory;
  const bool is_unsigned = residual_.is_unsigned;
  if (group == 1) {
    return is_unsigned ? a_.vpmovzxbd(masked, from) : a_.vpmovsxbd(masked, from);
  }
  int shift = 16;
  if (group == 2) {
    is_unsigned ? a_.vpmovzxbw(masked, from) : a_.vpmovsxbw(masked, from);
  } else {
    shift = 24;
    if (!partial) a_.vmovups(y, in_memory);
    if (partial && !pieces) a_.vmovdqu8(masked, in_memory);
    v < 2 ? a_.vpunpcklbw(y, y, y) : a_.vpunpckhbw(y, y, y);
  }
  v % 2 == 0 ? a_.vpunpcklwd(y, y, y) : a_.vpunpckhwd(y, y, y);
  is_unsigned ? a_.vpsrld(y, y, shift) : a_.vpsrad(y, y, shift);
}

// AVX2: up to 32 bytes.
void ResidualEmitter::LoadPieces(int reg, const Place& address, int bytes) {
  if (bytes < 16) return a_.LoadPieces(reg, address, bytes);
  a_.vmovups(Xmm(reg), a_.ptr[address]);
  if (bytes == 16) return;
  a_.LoadPieces(t1_, address + 16, bytes - 16);
  a_.vinserti128(Xbyak::Ymm(reg), Xbyak::Ymm(reg), Xmm(t1_), 1);
}

void ResidualEmitter::Scale(int reg, int width, const ResidualScale& scale,
                            const ScaleConstants& constants) {
  const Xmm v = VectorOf(reg, width), t = VectorOf(t0_, width), m = VectorOf(t1_, width);
  const Memory last_shift = layer_.Operand(constants.shift);
  if (scale.shifts_left()) return a_.vpsllvd(v, v, last_shift);
  const Memory nudge = layer_.Operand(constants.nudge);
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
  const Memory multiplier = layer_.Operand(constants.multiplier);
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
