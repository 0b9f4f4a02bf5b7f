// The numbers that the code of an integer tail reads for a whole layer: zero points, ranges, the
// scales of a residual. They are in memory and not in the code, so that layers of one shape share
// their code: ViT-tiny int8 has 80 such layers (1.4 MB of code), and 8 functions.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "jit/code/assembler.h"
#include "runtime/aligned_buffer.h"

namespace fuselite::jit {

// What the number is of. Each is read as 32 bits in every lane.
enum class LayerConstant {
  kStoreOffset,       // Requantization::store_offset
  kStoreOffsetWords,  // the same, twice in 16 bits
  kLeast,             // Requantization::min, four times in a byte
  kMost,              // and max
  kOffset,            // Requantization::offset()
  // In a residual, x is what was requantized, y the operand; each with its ResidualScale, or
  // floats in place of the multiplier and of x's nudge (FloatSum).
  kXLeast,
  kXMost,
  kXOffset,
  kXMultiplier,
  kXNudge,
  kXShift,
  kYOffset,
  kYMultiplier,
  kYNudge,
  kYShift,
  kSumMultiplier,
  kSumNudge,
  kSumShift,
};
inline constexpr int kLayerConstants = static_cast<int>(LayerConstant::kSumShift) + 1;

// Makes the memory that the code reads.
class LayerConstants {
 public:
  void Set(LayerConstant constant, int32_t value) { values_[static_cast<int>(constant)] = value; }
  // The numbers, and `table` behind them. data() is null where there is no memory.
  AlignedBuffer Encode(const VectorIsa& isa, std::span<const std::byte> table) const;

 private:
  std::array<int32_t, kLayerConstants> values_{};
};

// Reads it.
class LayerReader {
 public:
  // `layer` holds the memory's address wherever the reader is used.
  LayerReader(Assembler& assembler, const Xbyak::Reg64& layer) : a_(assembler), layer_(layer) {}

  // Is a memory operand of an arithmetic instruction on 32-bit lanes.
  Xbyak::Address Operand(LayerConstant constant) const;
  void Load(int vector, LayerConstant constant) const;
  // Where the table is.
  Xbyak::RegExp table() const;

 private:
  Xbyak::RegExp At(LayerConstant constant) const;

  Assembler& a_;
  Xbyak::Reg64 layer_;
};

}  // namespace fuselite::jit
