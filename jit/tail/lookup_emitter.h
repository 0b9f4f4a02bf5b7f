// A table of 256 entries looked up for every byte of a register.
#pragma once

#include <cstdint>
#include <span>

#include "jit/code/assembler.h"
#include "runtime/aligned_buffer.h"

namespace fuselite::jit {

enum class LookupMethod : uint8_t {
  // AVX512-VBMI: two permutations of 128 entries, of which the byte's top bit takes one. 8
  // instructions.
  kPermutes,
  // Sixteen shuffles of 16 entries, exclusive-ored: the byte, less 16 from one to the next, is a
  // valid index (of which only the lower four bits count) until it is negative, when the shuffle
  // gives zero. The entries are differences, such that those that take part leave the right one.
  // 64 instructions.
  kShuffles,
};
LookupMethod BestLookup(const VectorIsa& isa);

// What the code reads, for a `table` of 256 entries.
AlignedBuffer EncodeLookup(std::span<const uint8_t> table, LookupMethod method);

// Clobbers k3 where it permutes.
class LookupEmitter {
 public:
  // `table` points to what EncodeLookup gave. `t0`, `t1`: vector registers, clobbered.
  LookupEmitter(Assembler& assembler, LookupMethod method, const Place& table, int t0, int t1)
      : a_(assembler), method_(method), table_(table), t0_(t0), t1_(t1) {}

  // Byte x of the first `bytes` of `reg`, 4 to 64, becomes table[x]; those behind are undefined.
  void Emit(int reg, int bytes);

 private:
  void Permute(int reg);
  void Shuffle(int reg, int bytes);

  Assembler& a_;
  LookupMethod method_;
  Place table_;
  int t0_, t1_;
};

}  // namespace fuselite::jit
