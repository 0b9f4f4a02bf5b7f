#include "kernels/tail/float_sum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/quantization.h"

namespace fuselite::kernels {
namespace {

constexpr int kBytes = 256;
// A float below 2^22 plus this has its nearest integer in the lowest bits.
constexpr float kRound = 12582912.0f;
// Doubles hold the fused sum of products whose scales are this far apart.
constexpr double kFarApart = 1 << 20;

float Neighbour(float x, int steps) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (; steps > 0; --steps) x = std::nextafter(x, kInfinity);
  for (; steps < 0; ++steps) x = std::nextafter(x, 0.0f);
  return x;
}

// What the summands are before they are added: of each value from the range's least on.
std::array<int32_t, kBytes> Rescaled(ByteRange range, int32_t offset, int left, FixedPoint scale,
                                     bool negate) {
  std::array<int32_t, kBytes> values{};
  for (int32_t v = range.least; v <= range.largest; ++v) {
    const int32_t scaled =
        MultiplyByQuantizedMultiplier((v + offset) * (1 << left), scale.multiplier, scale.shift);
    values[v - range.least] = negate ? -scaled : scaled;
  }
  return values;
}

// What a step from one byte to the next adds to the sum, in steps of the output.
struct RealScales {
  double x, y;
};

// Compares scales with the integer sum. Both round nearly the same real number, x_scale x + y_scale
// y, so that they can differ only where it is near the middle between two integers. Those pairs are
// found in whole numbers of 2^-32, and only they are computed.
class Proof {
 public:
  Proof(const QuantizedAdd& add, ByteRange x, ByteRange y, RealScales real)
      : add_(add),
        x_(x),
        y_(y),
        real_(real),
        x_scaled_(Rescaled(x, add.x_offset, add.left_shift, {add.x_multiplier, add.x_shift},
                           add.negate_x)),
        y_scaled_(Rescaled(y, add.y_offset, add.left_shift, {add.y_multiplier, add.y_shift},
                           add.negate_y)) {
    for (int32_t i = 0; i < y_count(); ++i) {
      y_places_[i] = Place((y.least + add.y_offset + i) * Signed(real.y, add.negate_y));
    }
  }

  bool Holds(const FloatSum& scales) const {
    const double margin = Margin(scales) * 0x1p32;
    const bool all = margin >= 0x1p30;
    const auto width = all ? 0u : static_cast<uint32_t>(margin);
    for (int32_t x = x_.least; x <= x_.largest; ++x) {
      // The middle minus `width` becomes the least integer.
      const uint32_t place = Place((x + add_.x_offset) * Signed(real_.x, add_.negate_x)) + width;
      int32_t least = INT32_MAX;
      for (int32_t i = 0; i < y_count(); ++i) {
        least = std::min(least, static_cast<int32_t>(place + y_places_[i]));
      }
      const auto beyond = static_cast<int32_t>(0x80000000u + 2 * width);
      if ((all || least <= beyond) && !HoldsFor(x, scales, place, all ? INT32_MAX : beyond)) {
        return false;
      }
    }
    return true;
  }

 private:
  static double Signed(double scale, bool negative) { return negative ? -scale : scale; }
  // The fraction in units of 2^-32, a half as 2^31.
  static uint32_t Place(double x) {
    return static_cast<uint32_t>(static_cast<int64_t>(std::floor(x * 0x1p32)));
  }

  int32_t y_count() const { return y_.largest - y_.least + 1; }

  // How far what either function rounds may be from the real sum, the places' own errors included.
  double Margin(const FloatSum& scales) const {
    constexpr double kUlp = 0x1p-22;  // twice what two roundings of floats may come to
    const double x_most = Largest(x_, add_.x_offset), y_most = Largest(y_, add_.y_offset);
    const double of_floats = x_most * std::abs(std::abs(scales.x_scale) - real_.x) +
                             y_most * std::abs(std::abs(scales.y_scale) - real_.y) +
                             kUlp * (x_most * real_.x + y_most * real_.y);
    // Each summand is off by one unit of the sum at most, and the sum's first rounding by half of
    // 2^shift.
    const double unit = std::ldexp(add_.output_multiplier, add_.output_shift - 31);
    const double of_integers = 4 * unit + std::ldexp(1.0, add_.output_shift);
    return of_floats + of_integers + 0x1p-30;
  }
  static double Largest(ByteRange range, int32_t offset) {
    return std::max(std::abs(range.least + offset), std::abs(range.largest + offset));
  }

  // Looks at the pairs whose place is at most `beyond`.
  bool HoldsFor(int32_t x, const FloatSum& scales, uint32_t place, int32_t beyond) const {
    const double of_x = static_cast<float>(x + add_.x_offset) * scales.x_scale;
    const double y_scale = scales.y_scale;
    for (int32_t i = 0; i < y_count(); ++i) {
      if (static_cast<int32_t>(place + y_places_[i]) > beyond) continue;
      const auto real = static_cast<float>((y_.least + add_.y_offset + i) * y_scale + of_x);
      const int32_t rounded =
          std::bit_cast<int32_t>(real + kRound) - std::bit_cast<int32_t>(kRound);
      const int32_t exact = MultiplyByQuantizedMultiplier(
          x_scaled_[x - x_.least] + y_scaled_[i], add_.output_multiplier, add_.output_shift);
      if (Clamp(rounded) != Clamp(exact)) return false;
    }
    return true;
  }
  int32_t Clamp(int32_t result) const {
    return std::clamp(result + add_.output_offset, add_.min, add_.max);
  }

  const QuantizedAdd& add_;
  ByteRange x_, y_;
  RealScales real_;
  std::array<int32_t, kBytes> x_scaled_, y_scaled_;
  std::array<uint32_t, kBytes> y_places_{};
};

}  // namespace

std::optional<FloatSum> FindFloatSum(const QuantizedAdd& add, ByteRange x, ByteRange y) {
  const auto real = [](int32_t multiplier, int32_t shift) {
    return std::ldexp(multiplier, shift - 31);
  };
  const double out = std::ldexp(real(add.output_multiplier, add.output_shift), add.left_shift);
  const double x_real = out * real(add.x_multiplier, add.x_shift);
  const double y_real = out * real(add.y_multiplier, add.y_shift);
  constexpr double kLargestOffset = 255;
  if (2 * kLargestOffset * (x_real + y_real) > INT16_MAX || add.max - add.min >= kBytes ||
      std::max(x_real, y_real) > kFarApart * std::min(x_real, y_real) || add.max < add.min) {
    return std::nullopt;
  }
  const Proof proof(add, x, y, {x_real, y_real});
  // Factors that take halves away from zero as TFLite does, where scales are simple fractions and
  // halves are many, come last. A float of up to 255 has 16 bits less of fraction than its scale.
  struct Try {
    int x_steps, y_steps;  // from the float next to the exact quotient
    double stretch;
  };
  constexpr std::array<Try, 12> kTries = {{{0, 0, 1},
                                           {1, 1, 1},
                                           {1, 0, 1},
                                           {0, 1, 1},
                                           {-1, 0, 1},
                                           {0, -1, 1},
                                           {2, 2, 1},
                                           {-1, -1, 1},
                                           {1, -1, 1},
                                           {-1, 1, 1},
                                           {0, 0, 1 + 0x1p-18},
                                           {0, 0, 1 + 0x1p-16}}};
  for (const Try& t : kTries) {
    const float x_scale = Neighbour(static_cast<float>(x_real * t.stretch), t.x_steps);
    const float y_scale = Neighbour(static_cast<float>(y_real * t.stretch), t.y_steps);
    const FloatSum scales{add.negate_x ? -x_scale : x_scale, add.negate_y ? -y_scale : y_scale};
    if (proof.Holds(scales)) return scales;
  }
  return std::nullopt;
}

}  // namespace fuselite::kernels
