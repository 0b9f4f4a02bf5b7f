// The fused tail in registers: emitted behind the accumulation of whatever kernel makes a tile.
#pragma once

#include <optional>
#include <span>

#include "jit/code/assembler.h"
#include "kernels/operator.h"
#include "kernels/tail/operands.h"
#include "kernels/tail/rest.h"

namespace fuselite::jit {

// A vector of output values in a register: channels [vector * lanes, ...) of one row of the tile.
// The tile's last vector may be partial (Assembler::SetPartial).
struct TileValue {
  int reg = 0;
  int row = 0;
  int vector = 0;
  bool partial = false;
};

// Stages read their operands through pointers in memory, kernels::TailSlots.
struct TailRegisters {
  Xbyak::Reg64 slots_base;  // slot i is at [slots_base + slots_offset + 8 i]
  int slots_offset = 0;
  Xbyak::Reg64 pointer;     // clobbered
  int temporaries[4] = {};  // vector registers, clobbered
  // Where the tile's first channel moves on without the slots: by how many channels.
  std::optional<Xbyak::Reg64> channel{};
};

// A clamp to the finite floats only turns infinities into the largest float. TFLite has it in its
// arithmetic operators; fused behind a product it is left out.
enum class FiniteClamp { kLeaveOut, kEmit };

// Clobbers k2 on AVX-512.
class TailEmitter {
 public:
  // Refuses, with the reason, what has no emitter.
  static Status Check(const kernels::TailStage& stage);

  // Every stage of `tail` passes Check, and at most as many as there are slots have an operand.
  TailEmitter(Assembler& assembler, const kernels::Tail& tail, const TailRegisters& registers,
              FiniteClamp finite = FiniteClamp::kLeaveOut)
      : a_(assembler), tail_(tail), r_(registers), finite_(finite) {}

  // Float values, all stages in order.
  void Emit(std::span<const TileValue> values);
  // Moves the operand pointers down by `rows` rows of the output.
  void AdvanceRows(int rows);
  // Moves them on by `bytes` of float32 channels, or back by as many as `reg` holds.
  void AdvanceChannels(int bytes);
  void RewindChannels(const Xbyak::Reg64& reg);  // clobbers rax

 private:
  void EmitUnary(const kernels::TailStage& stage, std::span<const TileValue> values);
  void EmitClamp(float low, float high, std::span<const TileValue> values);
  void EmitAffine(float a, float b, std::span<const TileValue> values);
  void EmitHardSwish(std::span<const TileValue> values);
  void EmitFunction(const kernels::TailStage& stage, int v);
  void EmitBinary(const kernels::TailStage& stage, std::span<const TileValue> values);
  // One value, or vector, of an operand; `address` is without TailRegisters::channel.
  void LoadOperand(const kernels::TailOperand& y, int to, Place address, bool partial);
  void EmitBinaryOne(kernels::BinaryKind kind, int reg, int y_reg);

  // z P(z^2) / Q(z^2).
  struct OddQuotient {
    std::span<const float> p, q;
  };

  // These work in place on register v; which temporaries they clobber is said at each.
  void ClampNaN(int v, float low, float high, int t);            // NaN stays NaN
  void ClampMagnitude(int v, float most, int t);                 // NaN may become `most`
  void ReduceByLn2(int v, float low, float high);                // 0: v = n ln 2 + rest
  void Exp(int v, float low, float high);                        // 0, 1
  void Expm1NonPositive(int v);                                  // 0, 1
  void Sign(int v);                                              // 0, 1, 2, 3
  void Round(int to, int from, int mode);                        // none
  void TimesPowerOfTwo(int v, bool normal);                      // reads 0, 1
  void OnePlusExpOfNegative(int v);                              // 0, 1
  void Logistic(int v);                                          // 0, 1
  void Silu(int v);                                              // 0, 1, 2
  void Quotient(int v, const OddQuotient& f);                    // 0, 1, 2
  void Tanh(int v);                                              // 0, 1, 2
  void Erf(int v);                                               // 0, 1, 2
  void TimesHalfPlus(int v, const OddQuotient& h, float limit);  // 0, 1, 2, 3
  void Divide(int v, int by, int t);                             // `by` too
  void InverseRoot(int v);                                       // 0, 1, 2, 3
  void InverseRootOf12Bits(int v);                               // 0, 1, 2, 3
  void SelectNegative(int v, int when_negative);                 // none; -0 is negative
  void SelectBelowZero(int v, int when_below);                   // 1; -0 is not below
  void Horner(int result, int x, std::span<const float> coefficients);
  // Whether quotients are products with an approximate inverse.
  bool ApproximatesQuotients() const { return a_.isa().avx512 && !a_.isa().divides_fast; }
  float LogisticLow() const;
  int t(int i) const { return r_.temporaries[i]; }
  // Calls function(stage, slot's address) for each stage that has an operand.
  template <class Function>
  void ForEachSlot(const Function& function);

  Assembler& a_;
  const kernels::Tail& tail_;
  TailRegisters r_;
  FiniteClamp finite_;
};

// A tail as far as it is emitted, and the rest, which runs over the stored tile (ApplyTail).
struct DividedTail {
  kernels::Tail emitted{}, rest{};
  std::string why_rest{};  // the reason why there is a rest
  DataType output = DataType::kFloat32;

  // What is left to do on floats where they are stored.
  kernels::TailRest RestOnFloats(Isa isa) const {
    return {.apply = rest.empty() ? nullptr : kernels::ApplyTail(isa),
            .output = output,
            .tail = rest,
            .why = why_rest};
  }
};

// The fused activation and the stages of `op`, whose output is float32. Tiles do not cross from one
// group of `line_rows` rows of the output to the next; stages whose operands are not at constant
// steps within a line are not emitted. kUnsupported for an activation that nobody computes,
// and for stages that are not emitted where an operand is bfloat16. Such operands of the tail are
// marked; who does not take them is not asked (Candidate::OfBFloat16).
Result<DividedTail> DivideFloatTail(const kernels::OpDescription& op,
                                    kernels::Activation activation, int64_t line_rows);

// Everything about a tail that changes emitted code.
std::string TailKey(const kernels::Tail& tail);

}  // namespace fuselite::jit
