#include "jit/tail/lookup_emitter.h"

#include <algorithm>
#include <cstring>

namespace fuselite::jit {

using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

namespace {

constexpr int kEntries = 256, kBlock = 16, kBlocks = kEntries / kBlock;
// Behind the entries, a vector of this value.
constexpr int kStepAt = kEntries, kStepBytes = 64;

}  // namespace

LookupMethod BestLookup(const VectorIsa& isa) {
  return isa.vbmi ? LookupMethod::kPermutes : LookupMethod::kShuffles;
}

// For shuffles, block b of the differences D of the entries E is E[b] ^ E[b - 1], and from b = 8 on
// ^ D[b - 8]: index x - 16 b is valid for b = x / 16 - 7 ... x / 16 where x >= 128, and for b = 0
// ... x / 16 below.
AlignedBuffer EncodeLookup(std::span<const uint8_t> table, LookupMethod method) {
  AlignedBuffer encoded(kEntries + kStepBytes);
  auto* to = encoded.as<uint8_t>();
  if (to == nullptr) return encoded;
  std::memcpy(to, table.data(), kEntries);
  if (method == LookupMethod::kPermutes) return encoded;
  for (int i = kBlock; i < kEntries; ++i) {
    to[i] = table[i] ^ table[i - kBlock];
    if (i >= 8 * kBlock) to[i] ^= to[i - 8 * kBlock];
  }
  std::memset(to + kStepAt, kBlock, kStepBytes);
  return encoded;
}

void LookupEmitter::Emit(int reg, int bytes) {
  method_ == LookupMethod::kPermutes ? Permute(reg) : Shuffle(reg, bytes);
}

void LookupEmitter::Permute(int reg) {
  const Zmm x(reg), half(t0_), low(t1_);
  const Xbyak::Opmask upper(3);
  const auto entries = [&](int first) { return a_.ptr[table_ + first]; };
  a_.vpmovb2m(upper, x);
  a_.vmovaps(low, x);
  a_.vmovaps(half, entries(0));
  a_.vpermi2b(low, half, entries(64));
  a_.vmovaps(half, entries(128));
  a_.vpermi2b(x, half, entries(192));
  a_.vpblendmb(x | upper, low, x);
}

void LookupEmitter::Shuffle(int reg, int bytes) {
  const int width = std::max(bytes, 16);
  const auto vector = [&](int i) -> Xmm {
    if (width == 64) return Zmm(i);
    if (width == 32) return Ymm(i);
    return Xmm(i);
  };
  const Xmm x = vector(reg), t = vector(t0_), y = vector(t1_);
  const auto load = [&](int to, int block) {
    const Memory from = a_.ptr[table_ + block * kBlock];
    if (width == 16) return a_.vmovups(Xmm(to), from);
    if (width == 64) return a_.vbroadcasti32x4(Zmm(to), from);
    a_.isa().avx512 ? a_.vbroadcasti32x4(Ymm(to), from) : a_.vbroadcasti128(Ymm(to), from);
  };
  load(t1_, 0);
  a_.vpshufb(y, y, x);
  for (int block = 1; block < kBlocks; ++block) {
    const Memory step = a_.ptr[table_ + kStepAt];
    // Past the middle, what is negative has to stay so.
    block <= kBlocks / 2 ? a_.vpsubb(x, x, step) : a_.vpsubsb(x, x, step);
    load(t0_, block);
    a_.vpshufb(t, t, x);
    a_.isa().avx512 ? a_.vpxord(y, y, t) : a_.vpxor(y, y, t);
  }
  a_.vmovaps(x, y);
}

}  // namespace fuselite::jit
