// Requantization in registers, and the store of its bytes: the integer counterpart of the tail.
//
// TFLite rounds twice: x = floor((acc m + 2^30) / 2^31), then x / 2^e half away from zero. With
//   y = floor(acc m / 2^30) = high 32 bits of (4 acc) m,
//   result + zero point = (y + 1 + 2^e + zero_point 2^(e+1) - (acc < 0 ? 2 : 0)) >> (e + 1)
// for e >= 1, and (y + 1 + 2 zero_point) >> 1 for e = 0, to the bit: everything that is added is a
// multiple of 2^30 in units of the product, so the floor of y loses nothing. All of it stays within
// 32 bits under the conditions that PlanRequantization checks.
//
// Vectors of sums come in groups of 4, 2 or 1, whose lanes hold the channels such that packing,
// which works in each 16 bytes apart, gives them in order (ChannelOfLane).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "jit/lookup_emitter.h"
#include "kernels/tail/tail.h"
#include "runtime/tensor.h"

namespace fuselite::jit {

// A rescaling in double precision (TailStage::kRescale) rounds x half away from zero as the integer
// part of x + 0.49999999999999994, x's sign given to the summand.
//
// What decides the code. Multipliers, shifts and zero point of a requantization, scales of a
// rescaling are constants in memory.
struct Requantization {
  bool is_unsigned = false;  // the result is uint8, not int8
  int32_t min = 0, max = 0;  // within that type
  bool real = false;         // kRescale, with this zero point
  int32_t zero_point = 0;
  bool left = false;       // some channel is shifted left first
  bool unshifted = false;  // some channel has e = 0
  // The bytes go through a table before they are stored.
  std::optional<LookupMethod> lookup{};

  // Vectors of constants behind each other for each vector of channels.
  int constants() const { return real ? 2 : 4 + left + unshifted; }
  std::string key() const;
};

// Of a kRequantize or kRescale stage. Refuses what does not stay within 32 bits: sums beyond
// `largest_sum` do not occur.
Result<Requantization> PlanRequantization(const kernels::TailStage& stage, DataType output,
                                          int64_t largest_sum);

// The channel, relative to its group's first, in lane `lane` of vector `v` of a group of `group`.
inline int ChannelOfLane(int group, int v, int lane) {
  return lane / 4 * 4 * group + v * 4 + lane % 4;
}
// The size of the next group where `vectors` are left.
inline int GroupSize(int vectors) { return vectors >= 4 ? 4 : vectors >= 2 ? 2 : 1; }

// Writes the constants of one vector; lane i is channel channels[i], or nothing where negative.
void PackRequantization(const kernels::TailStage& stage, const Requantization& plan,
                        std::span<const int64_t> channels, int32_t* to);
// What decides those constants, for PackRequest::layout.
std::string ConstantsKey(const kernels::TailStage& stage);

// Clobbers k3 to k5 on AVX-512.
class IntegerTailEmitter {
 public:
  // `t0` and `t1`: vector registers, clobbered. `table` holds the address of the encoded table
  // where there is one.
  IntegerTailEmitter(Assembler& assembler, const Requantization& plan, int t0, int t1,
                     const Xbyak::Reg64& table)
      : a_(assembler), plan_(plan), t0_(t0), t1_(t1), table_(table) {}

  // Once in each function. Partial stores (fewer bytes than a group gives) have `partial_bytes` of
  // them; clobbers rax.
  void Prepare(int partial_bytes);
  // Sums in `reg`, a vector of `width` bytes, become values that are not clamped yet. A rescaling
  // takes whole vectors only.
  void Requantize(int reg, int width, const Xbyak::RegExp& constants);
  // Clamps the values of a group, looks them up, and stores the first `bytes` of its channels;
  // `regs` are clobbered.
  void Store(std::span<const int> regs, int width, const Xbyak::RegExp& address, int bytes);

 private:
  void RequantizeAvx512(int reg, int width, const Xbyak::RegExp& constants);
  void RequantizeAvx2(int reg, int width, const Xbyak::RegExp& constants);
  void Rescale(int reg, const Xbyak::RegExp& constants);
  // To bytes in regs[0]; returns how many.
  int Narrow(std::span<const int> regs, int width);
  void Clamp(int reg, int bytes);
  void StoreBytes(int reg, const Xbyak::RegExp& address, int available, int bytes);
  void StorePieces(int reg, Xbyak::RegExp address, int bytes);

  Assembler& a_;
  Requantization plan_;
  int t0_, t1_;
  Xbyak::Reg64 table_;
};

// The register `i` with `width` bytes: 16, 32 or 64.
Xbyak::Xmm VectorOf(int i, int width);

}  // namespace fuselite::jit
