// The stages: which there are, where their operands lie.
#include "jit/tail/tail_emitter.h"

#include <cfloat>
#include <cmath>
#include <cstring>

#include "kernels/check_tail.h"
#include "kernels/widened.h"
#include "runtime/support/status.h"

// A function that a switch forgets, or takes for another by a default, would compute wrong numbers.
#pragma GCC diagnostic error "-Wswitch-enum"

namespace fuselite::jit {

using kernels::BinaryKind;
using kernels::Tail;
using kernels::TailOperand;
using kernels::TailStage;
using kernels::UnaryKind;
using Xbyak::Xmm;

namespace {

// Names every function, so that the compiler asks of each new one whether it is emitted.
bool HasEmitter(UnaryKind kind) {
  switch (kind) {
    case UnaryKind::kLog:
    case UnaryKind::kSin:
    case UnaryKind::kCos: return false;
    case UnaryKind::kIdentity:
    case UnaryKind::kClamp:
    case UnaryKind::kLeakyRelu:
    case UnaryKind::kElu:
    case UnaryKind::kGelu:
    case UnaryKind::kGeluTanh:
    case UnaryKind::kHardSwish:
    case UnaryKind::kHardSigmoid:
    case UnaryKind::kLogistic:
    case UnaryKind::kSilu:
    case UnaryKind::kTanh:
    case UnaryKind::kExp:
    case UnaryKind::kSqrt:
    case UnaryKind::kRsqrt:
    case UnaryKind::kAbs:
    case UnaryKind::kNeg:
    case UnaryKind::kFloor:
    case UnaryKind::kCeil:
    case UnaryKind::kRound:
    case UnaryKind::kSquare:
    case UnaryKind::kSign:
    case UnaryKind::kErf:
    case UnaryKind::kSoftsign:
    case UnaryKind::kAffine: return true;
  }
  return false;
}

}  // namespace

Status TailEmitter::Check(const TailStage& stage) {
  const bool emitted = stage.kind == TailStage::Kind::kBinary ||
                       (stage.kind == TailStage::Kind::kUnary && HasEmitter(stage.unary));
  if (!emitted) return Unsupported("tail stage ", stage.ToString(), " has no emitter");
  const int64_t reach = stage.operand.row_stride * ElementBytes(stage.operand) * 32;
  if (reach > INT32_MAX || reach < INT32_MIN) {
    return Unsupported("tail stage ", stage.ToString(), " has rows too far apart");
  }
  return Status();
}

Result<DividedTail> DivideFloatTail(const kernels::OpDescription& op,
                                    kernels::Activation activation, int64_t line_rows) {
  FUSELITE_RETURN_IF_ERROR(kernels::CheckTail(kernels::WithFloat32(op), DataType::kFloat32));
  DividedTail tail{.output = op.outputs[0].type};
  tail.emitted.rows_per_batch = tail.rest.rows_per_batch = op.tail.rows_per_batch;
  if (!AppendActivation(activation, &tail.emitted)) {
    return Unsupported("fused activation ", static_cast<int>(activation), " is not computed");
  }
  int operands = 0;
  for (TailStage stage : op.tail.stages) {
    const int input = stage.operand.input;
    stage.operand.bfloat16 = input >= 0 && op.inputs[input].type == DataType::kBFloat16;
    const Tail one{.stages = {stage}, .rows_per_batch = op.tail.rows_per_batch};
    operands += stage.operand.input >= 0;
    Status fits = TailEmitter::Check(stage);
    if (!kernels::TailIsLinear(one) && op.tail.rows_per_batch % line_rows != 0) {
      fits = Unsupported("tail stage ", stage.ToString(), " has rows that are not evenly apart");
    } else if (operands > kernels::kMaxTailOperands) {
      fits =
          Unsupported("does not take more than ", kernels::kMaxTailOperands, " operands in a tail");
    }
    if (!fits.ok() && tail.rest.empty()) tail.why_rest = fits.message();
    (fits.ok() && tail.rest.empty() ? tail.emitted : tail.rest).stages.push_back(stage);
  }
  if (!tail.rest.empty() && kernels::AnyBFloat16(op)) {
    return Unsupported("values of bfloat16 take no tail that is not emitted: ", tail.why_rest);
  }
  return tail;
}

void TailEmitter::Emit(std::span<const TileValue> values) {
  int slot = 0;
  for (const TailStage& stage : tail_.stages) {
    if (stage.kind == TailStage::Kind::kUnary) {
      EmitUnary(stage, values);
      continue;
    }
    a_.mov(r_.pointer, a_.ptr[r_.slots_base + r_.slots_offset + 8 * slot++]);
    EmitBinary(stage, values);
  }
}

template <class Function>
void TailEmitter::ForEachSlot(const Function& function) {
  int slot = 0;
  for (const TailStage& stage : tail_.stages) {
    if (stage.operand.input < 0) continue;
    function(stage, a_.qword[r_.slots_base + r_.slots_offset + 8 * slot++]);
  }
}

void TailEmitter::AdvanceRows(int rows) {
  ForEachSlot([&](const TailStage& stage, const Xbyak::Address& slot) {
    const auto step =
        static_cast<int32_t>(stage.operand.row_stride * ElementBytes(stage.operand) * rows);
    if (step != 0) a_.add(slot, step);
  });
}

void TailEmitter::AdvanceChannels(int bytes) {
  ForEachSlot([&](const TailStage& stage, const Xbyak::Address& slot) {
    if (stage.operand.channel_stride == 0) return;
    a_.add(slot, static_cast<int>(bytes / 4 * ElementBytes(stage.operand)));
  });
}

void TailEmitter::RewindChannels(const Xbyak::Reg64& reg) {
  ForEachSlot([&](const TailStage& stage, const Xbyak::Address& slot) {
    if (stage.operand.channel_stride == 0) return;
    if (!stage.operand.bfloat16) return a_.sub(slot, reg);
    a_.mov(a_.rax, reg);
    a_.shr(a_.rax, 1);
    a_.sub(slot, a_.rax);
  });
}

void TailEmitter::EmitUnary(const TailStage& stage, std::span<const TileValue> values) {
  // Those that are short beside the loads of their constants load them once for all values.
  if (stage.unary == UnaryKind::kClamp) return EmitClamp(stage.a, stage.b, values);
  if (stage.unary == UnaryKind::kAffine) return EmitAffine(stage.a, stage.b, values);
  if (stage.unary == UnaryKind::kHardSwish) return EmitHardSwish(values);
  for (const TileValue& value : values) EmitFunction(stage, value.reg);
}

// The bound comes first in each instruction: x86 returns the second operand where one is NaN, so
// NaN goes through as it does in the reference.
void TailEmitter::EmitClamp(float low, float high, std::span<const TileValue> values) {
  const float most = finite_ == FiniteClamp::kEmit ? INFINITY : FLT_MAX;
  const bool has_low = low > -most, has_high = high < most;
  const Xmm& least = has_low ? a_.InRegister(low, t(0)) : a_.Vec(t(0));
  const Xmm& largest = has_high ? a_.InRegister(high, t(1)) : a_.Vec(t(1));
  for (const TileValue& value : values) {
    const Xmm v = a_.Vec(value.reg);
    if (has_low) a_.vmaxps(v, least, v);
    if (has_high) a_.vminps(v, largest, v);
  }
}

void TailEmitter::EmitBinary(const TailStage& stage, std::span<const TileValue> values) {
  const TailOperand& y = stage.operand;
  const int y_reg = t(0);
  for (const TileValue& value : values) {
    const int64_t element =
        value.row * y.row_stride + int64_t{value.vector} * a_.isa().lanes() * y.channel_stride;
    const Place address = Place(r_.pointer) + static_cast<int32_t>(element * ElementBytes(y));
    LoadOperand(y, y_reg, address, value.partial);
    EmitBinaryOne(stage.binary, value.reg, y_reg);
  }
}

void TailEmitter::LoadOperand(const TailOperand& y, int to, Place address, bool partial) {
  if (y.channel_stride == 0) {
    if (!y.bfloat16) return a_.vbroadcastss(a_.Vec(to), a_.ptr[address]);
    a_.vpbroadcastw(a_.Vec(to), a_.ptr[address]);
    return a_.vpslld(a_.Vec(to), a_.Vec(to), 16);
  }
  if (r_.channel) address = address.Plus(*r_.channel, static_cast<int>(ElementBytes(y)));
  a_.LoadFloats(to, address, partial, y.bfloat16);
}

void TailEmitter::EmitBinaryOne(BinaryKind kind, int reg, int y_reg) {
  const Xmm v = a_.Vec(reg);
  const Xmm y = a_.Vec(y_reg);
  switch (kind) {
    case BinaryKind::kAdd: return a_.vaddps(v, v, y);
    case BinaryKind::kSub: return a_.vsubps(v, v, y);
    case BinaryKind::kReverseSub: return a_.vsubps(v, y, v);
    case BinaryKind::kMul: return a_.vmulps(v, v, y);
    case BinaryKind::kDiv: return a_.vdivps(v, v, y);
    case BinaryKind::kReverseDiv: return a_.vdivps(v, y, v);
    // Both instructions give their second operand where one is NaN, and of two zeros.
    case BinaryKind::kMaximum: return a_.vmaxps(v, v, y);
    case BinaryKind::kReverseMaximum: return a_.vmaxps(v, y, v);
    case BinaryKind::kMinimum: return a_.vminps(v, v, y);
    case BinaryKind::kReverseMinimum: return a_.vminps(v, y, v);
    case BinaryKind::kSquaredDifference: a_.vsubps(v, v, y); return a_.vmulps(v, v, v);
    case BinaryKind::kPrelu: a_.vmulps(y, y, v); return SelectBelowZero(reg, y_reg);
  }
}

std::string TailKey(const Tail& tail) {
  std::string key = " tail";
  for (const TailStage& stage : tail.stages) {
    uint32_t a, b;
    std::memcpy(&a, &stage.a, sizeof(a));
    std::memcpy(&b, &stage.b, sizeof(b));
    key += " " + internal::Join(static_cast<int>(stage.kind), '.', static_cast<int>(stage.unary),
                                '.', static_cast<int>(stage.binary), '.', a, '.', b, '.',
                                int{stage.operand.input >= 0}, '.', stage.operand.row_stride, '.',
                                stage.operand.channel_stride, '.', int{stage.operand.bfloat16});
  }
  return key;
}

}  // namespace fuselite::jit
