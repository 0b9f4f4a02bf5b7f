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

void LookupEmitter::Emit(std::span<const LookupBytes> all, std::span<const int> spare) {
  if (method_ == LookupMethod::kPermutes) {
    for (const LookupBytes& bytes : all) Permute(bytes.reg);
    return;
  }
  while (!all.empty()) {
    const size_t together = std::min(all.size(), std::max<size_t>(1, spare.size()));
    Shuffle(all.first(together), spare.first(std::min(together, spare.size())));
    all = all.subspan(together);
  }
}

void LookupEmitter::Permute(int reg) {
  const Zmm x(reg), half(t_[0]), low(t_[1]);
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

void LookupEmitter::LoadBlock(int to, int block, int width) {
  const Memory from = a_.ptr[table_ + block * kBlock];
  if (width == 16) return a_.vmovups(Xmm(to), from);
  if (width == 64) return a_.vbroadcasti32x4(Zmm(to), from);
  a_.isa().avx512 ? a_.vbroadcasti32x4(Ymm(to), from) : a_.vbroadcasti128(Ymm(to), from);
}

void LookupEmitter::Shuffle(std::span<const LookupBytes> all, std::span<const int> results) {
  const auto width_of = [](const LookupBytes& bytes) { return std::max(bytes.count, 16); };
  const int width = width_of(*std::ranges::max_element(all, {}, &LookupBytes::count));
  const int entries = t_[0], step = t_[2];
  const auto result = [&](size_t i) { return results.empty() ? t_[1] : results[i]; };
  // The last one's entries are nobody's behind it.
  const auto shuffled = [&](size_t i) { return i + 1 == all.size() ? entries : t_[1]; };
  a_.vmovups(VectorOf(step, width), a_.ptr[table_ + kStepAt]);
  for (int block = 0; block < kBlocks; ++block) {
    LoadBlock(entries, block, width);
    for (size_t i = 0; i < all.size(); ++i) {
      const auto vector = [&](int reg) { return VectorOf(reg, width_of(all[i])); };
      const Xmm x = vector(all[i].reg), y = vector(result(i)), t = vector(shuffled(i));
      if (block == 0) {
        a_.vpshufb(y, vector(entries), x);
        continue;
      }
      // Past the middle, what is negative has to stay so.
      block <= kBlocks / 2 ? a_.vpsubb(x, x, vector(step)) : a_.vpsubsb(x, x, vector(step));
      a_.vpshufb(t, vector(entries), x);
      a_.isa().avx512 ? a_.vpxord(y, y, t) : a_.vpxor(y, y, t);
    }
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const int bytes = width_of(all[i]);
    a_.vmovaps(VectorOf(all[i].reg, bytes), VectorOf(result(i), bytes));
  }
}

}  // namespace fuselite::jit
