// Functions of one int16 value by interpolation, to the bit of TFLite's tables of 513 entries.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace fuselite::kernels {

// A real function in 512 pieces of 128 inputs each, linear within a piece. Real is float or double:
// TFLite has both, and they differ in the entries' last bits.
template <class Real>
class InterpolatedTable {
 public:
  struct Scale {
    Real scale;
    int32_t zero_point;
  };
  // `function` takes and gives real values.
  template <class Function>
  InterpolatedTable(Scale in, Scale out, Function function) {
    constexpr Real kMin = -32768, kMax = 32767;
    const Real low = in.scale * static_cast<Real>(-32768 - in.zero_point);
    const Real high = in.scale * static_cast<Real>(32767 - in.zero_point);
    const Real out_low = out.scale * static_cast<Real>(-32768 - out.zero_point);
    const Real out_high = out.scale * static_cast<Real>(32767 - out.zero_point);
    const Real step = (high - low) / kPieces, half_step = step / 2;
    const Real inverse = Real{65536} / (out_high - out_low);
    const auto at = [&](Real x) { return static_cast<Real>(function(x)); };
    const auto entry = [&](Real x) {
      // A function that is not finite somewhere has no table there: TFLite's cast is undefined.
      return std::isnan(x) ? int16_t{0} : static_cast<int16_t>(std::min(std::max(x, kMin), kMax));
    };
    std::array<int16_t, kPieces + 1> entries;
    for (int i = 0; i < kPieces; ++i) {
      const Real x = low + static_cast<Real>(i) * step;
      const Real value = std::round(at(x) * inverse);
      const Real next = at(low + static_cast<Real>(i + 1) * step) * inverse;
      const Real middle = std::round(at(x + half_step) * inverse);
      // Half of what the line is off in the piece's middle.
      const Real error = std::round((std::round((next + value) / 2) - middle) / 2);
      entries[i] = entry(value - error);
    }
    entries[kPieces] = entry(std::round(at(high) * inverse));
    for (int i = 0; i < kPieces; ++i) {
      const auto slope = static_cast<uint32_t>(entries[i + 1] - entries[i]);
      pieces_[i] = static_cast<int32_t>(slope << 16 | static_cast<uint16_t>(entries[i]));
    }
  }

  int16_t operator()(int32_t x) const {
    const int32_t piece = pieces_[kPieces / 2 + (x >> 7)], slope = piece >> 16;
    return static_cast<int16_t>(static_cast<int16_t>(piece) + ((slope * (x & 0x7f) + 64) >> 7));
  }

  // The pieces of the inputs from 128 i on, for i in [-256, 256): in the low half the value at
  // their start, in the high half what the next piece's start is above it, modulo 2^16 as TFLite's.
  const int32_t* middle_piece() const { return &pieces_[kPieces / 2]; }

 private:
  static constexpr int kPieces = 512;
  std::array<int32_t, kPieces> pieces_;
};

}  // namespace fuselite::kernels
