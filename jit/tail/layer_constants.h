// The numbers that the code of an integer tail reads for a whole layer: zero points, ranges, the
// scales of residuals. They are in memory and not in the code, so that layers of one shape share
// their code: ViT-tiny int8 has 80 such layers (1.4 MB of code), and 8 functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jit/code/assembler.h"
#include "runtime/memory/aligned_buffer.h"

namespace fuselite::jit {

// What the number is of. Each is read as 32 bits in every lane.
enum class LayerConstant {
  kStoreOffset,       // Requantization::store_offset
  kStoreOffsetWords,  // the same, twice in 16 bits
  kLeast,             // Requantization::min, four times in a byte
  kMost,              // and max
  kOffset,            // Requantization::offset()
  kSignBit,           // of a float; the same in every layer
  // The constants of each residual. x is what was requantized, y the operand; each with its
  // ResidualScale, or floats in place of the multiplier and of x's nudge (FloatSum).
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

// Where the constants are in a layer of `residuals` residuals.
class LayerLayout {
 public:
  explicit LayerLayout(size_t residuals) : residuals_(residuals) {}
  size_t numbers() const { return kOfLayer + residuals_ * kOfResidual; }
  // `residual` counts for a constant of residuals alone.
  static size_t IndexOf(LayerConstant constant, size_t residual) {
    const auto index = static_cast<size_t>(constant);
    return index < kOfLayer ? index : index + residual * kOfResidual;
  }

 private:
  static constexpr auto kOfLayer = static_cast<size_t>(LayerConstant::kXLeast);
  static constexpr auto kOfResidual = static_cast<size_t>(LayerConstant::kSumShift) + 1 - kOfLayer;
  size_t residuals_;
};

// Makes the memory that the code reads.
class LayerConstants {
 public:
  explicit LayerConstants(size_t residuals) : values_(LayerLayout(residuals).numbers()) {
    Set(LayerConstant::kSignBit, INT32_MIN);
  }
  void Set(LayerConstant constant, int32_t value, size_t residual = 0) {
    values_[LayerLayout::IndexOf(constant, residual)] = value;
  }
  // The numbers, and `table` behind them. data() is null where there is no memory.
  AlignedBuffer Encode(const VectorIsa& isa, std::span<const std::byte> table) const;

 private:
  std::vector<int32_t> values_;
};

// Reads it.
class LayerReader {
 public:
  // `layer` holds the memory's address wherever the reader is used.
  LayerReader(Assembler& assembler, const Xbyak::Reg64& layer, size_t residuals)
      : a_(assembler), layer_(layer), layout_(residuals) {}
  // Reads the numbers of that residual; without, of the first.
  LayerReader OfResidual(size_t residual) const {
    LayerReader reader = *this;
    reader.residual_ = residual;
    return reader;
  }

  // Is a memory operand of an arithmetic instruction on 32-bit lanes.
  Memory Operand(LayerConstant constant) const;
  void Load(int vector, LayerConstant constant) const;
  // Where the table is.
  Place table() const;

 private:
  Place At(LayerConstant constant) const;

  Assembler& a_;
  Xbyak::Reg64 layer_;
  LayerLayout layout_;
  size_t residual_ = 0;
};

}  // namespace fuselite::jit
