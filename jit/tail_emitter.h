// The fused tail in registers: emitted behind the accumulation of whatever kernel makes a tile.
#pragma once

#include <span>
#include <vector>

#include "jit/assembler.h"
#include "kernels/operator.h"
#include "kernels/tail/apply.h"

namespace fuselite::jit {

// A vector of output values in a register: channels [vector * lanes, ...) of one row of the tile.
// The tile's last vector may be partial (Assembler::SetPartial).
struct TileValue {
  int reg = 0;
  int row = 0;
  int vector = 0;
  bool partial = false;
};

inline constexpr int kMaxTailOperands = 8;

// Stages read their operands through pointers in memory, one 8-byte slot for each stage that has an
// operand, in the order of the stages: at the element for the tile's first row and channel.
struct TailRegisters {
  Xbyak::Reg64 slots_base;  // slot i is at [slots_base + slots_offset + 8 i]
  int slots_offset = 0;
  Xbyak::Reg64 pointer;     // clobbered
  int temporaries[4] = {};  // vector registers, clobbered
  // ChannelDataVectors() for each vector of the tile, from channel_data_offset on.
  Xbyak::Reg64 channel_data = Xbyak::Reg64(0);
  int channel_data_offset = 0;
  bool is_signed = true;  // 8-bit outputs and operands: int8, else uint8
};

// Clobbers k2 on AVX-512, and needs k3 kept from Prepare() on.
class TailEmitter {
 public:
  // Refuses, with the reason, what has no emitter.
  static Status Check(const kernels::TailStage& stage);

  // Every stage of `tail` passes Check, at most kMaxTailOperands have an operand.
  TailEmitter(Assembler& assembler, const kernels::Tail& tail, const TailRegisters& registers)
      : a_(assembler), tail_(tail), r_(registers) {}

  // Float values, all stages in order.
  void Emit(std::span<const TileValue> values);
  // Sets the masks that stages need; at a function's start, clobbers eax.
  static void Prepare(Assembler& a, const kernels::Tail& tail);
  // Moves the operand pointers down by `rows` rows of the output.
  void AdvanceRows(int rows);
  // Moves them on by `bytes` of float32 channels, or back by as many as `reg` holds.
  void AdvanceChannels(int bytes);
  void RewindChannels(const Xbyak::Reg64& reg);

 private:
  void EmitRequantize(const kernels::TailStage& stage, std::span<const TileValue> values,
                      bool last);
  void EmitRescale(const kernels::TailStage& stage, std::span<const TileValue> values, bool last);
  void RescaleHalf(const Xbyak::Xmm& wide, const Xbyak::Address& scales);
  void EmitQuantizedAdd(const kernels::TailStage& stage, std::span<const TileValue> values,
                        bool last);
  void Multiply(int v, int32_t multiplier, int32_t shift);  // 1, 2
  void MergeProducts(int v, int even);
  void ClampIntegers(int v, int32_t min, int32_t max, bool last);
  Xbyak::Address ChannelData(const TileValue& value, int per_vector, int i) const;
  void EmitUnary(const kernels::TailStage& stage, std::span<const TileValue> values);
  void EmitClamp(float low, float high, std::span<const TileValue> values);
  void EmitFunction(const kernels::TailStage& stage, int v);
  void EmitBinary(const kernels::TailStage& stage, std::span<const TileValue> values);
  void EmitBinaryOne(kernels::BinaryKind kind, int v, int y);

  // In place on register v; which temporaries they clobber is said at each.
  void ClampNaN(int v, float low, float high, int t);                        // NaN stays NaN
  void Exp(int v, float low, float high);                                    // 0, 1
  void Logistic(int v);                                                      // 0, 1
  void Rational(int v, std::span<const float> p, std::span<const float> q);  // 0, 1, 2
  void Tanh(int v);                                                          // 0, 1, 2
  void Erf(int v);                                                           // 0, 1, 2
  void Divide(int v, int by, int t);                                         // `by` too
  void SelectNegative(int v, int when_negative);
  void Horner(int result, int x, std::span<const float> coefficients);
  int t(int i) const { return r_.temporaries[i]; }
  // Calls function(stage, slot's address) for each stage that has an operand.
  template <class Function>
  void ForEachSlot(const Function& function);

  Assembler& a_;
  const kernels::Tail& tail_;
  TailRegisters r_;
};

// Per-channel parameters of a first stage that takes int32 sums: so many vectors for each vector of
// channels (0: the stage has none), and their bytes for the channels `channels`, one for each lane
// (-1: the lane is unused).
int ChannelDataVectors(const kernels::Tail& tail);
// What decides those bytes.
std::string ChannelDataKey(const kernels::Tail& tail);
void PackChannelData(const kernels::TailStage& stage, const VectorIsa& isa,
                     std::span<const int64_t> channels, std::byte* to);

// A tail as far as it is emitted, and the rest, which runs over the stored tile (ApplyTail).
struct FusedTail {
  kernels::Tail emitted, rest;
};

// The fused activation and the stages of `op`, whose output is float32. Tiles do not cross from one
// group of `line_rows` rows of the output to the next; stages whose operands are not at constant
// steps within a line are not emitted. kUnsupported for an activation that nobody computes.
Result<FusedTail> FuseTail(const kernels::OpDescription& op, kernels::Activation activation,
                           int64_t line_rows);

// The stages of a quantized product with 8-bit output: `stages` begins with one that takes int32.
// Sums are within +-`sum_bound`. kUnsupported where that stage is not emitted.
Result<FusedTail> FuseQuantizedTail(const kernels::Tail& stages, DataType output, int64_t sum_bound,
                                    int64_t line_rows);

// Whether rows of different batches may follow each other in one tile: every operand's element is
// a linear function of the row.
bool TailIsLinear(const kernels::Tail& tail);

// Fills the slots for the tile at (row, channel). `inputs` are those of KernelArgs.
void BindTailOperands(const kernels::Tail& tail, const void* const* inputs, int64_t row,
                      int64_t channel, const std::byte** slots);

// Everything about a tail that changes emitted code.
std::string TailKey(const kernels::Tail& tail);

}  // namespace fuselite::jit
