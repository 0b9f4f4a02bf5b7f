// A table of 256 entries looked up for every byte of a register.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "jit/code/assembler.h"
#include "runtime/memory/aligned_buffer.h"

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

// Bytes that are looked up, 4 to 64 from the first of a register on; those behind become undefined.
struct LookupBytes {
  int reg, count;
};

// Clobbers k3 where it permutes.
class LookupEmitter {
 public:
  // `table` points to what EncodeLookup gave. `temporaries`: vector registers, clobbered.
  LookupEmitter(Assembler& assembler, LookupMethod method, const Place& table,
                const std::array<int, 3>& temporaries)
      : a_(assembler), method_(method), table_(table), t_(temporaries) {}

  // Byte x becomes table[x], in each of `all`. `spare`: vector registers, clobbered, none of which
  // is another argument's. Shuffles of so many registers are emitted side by side: each waits for
  // the one before of its own, and a core whose scheduler is full of those that wait finds no
  // others (Zen 3: a depthwise layer of 112x112x32 takes 195 us instead of 211).
  void Emit(std::span<const LookupBytes> all, std::span<const int> spare);

 private:
  void Permute(int reg);
  // `results`: as many as `all`, or none for a single one.
  void Shuffle(std::span<const LookupBytes> all, std::span<const int> results);
  void LoadBlock(int to, int block, int width);

  Assembler& a_;
  LookupMethod method_;
  Place table_;
  std::array<int, 3> t_;
};

}  // namespace fuselite::jit
