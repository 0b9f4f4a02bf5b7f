#include "kernels/tail/float_sum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/numbers/quantization.h"
#include "kernels/tail/float_scale.h"
#include "kernels/tail/hard_sums.h"

namespace fuselite::kernels {
namespace {

constexpr int kBytes = 256;
// A float below 2^22 plus this has its nearest integer in the lowest bits.
constexpr float kRound = 12582912.0f;
// Doubles hold the fused sum of products whose scales are this far apart.
constexpr double kFarApart = 1 << 20;
// What is tried: floats so many steps from the one next to the exact quotient, and addends.
constexpr std::array kSteps = {0, 1, -1, 2, -2};
constexpr int kMostSteps = 2;
constexpr double kStep = 0x1p-23;  // of a float, relative to it
constexpr double kMostAddend = 0x1p-17;
constexpr std::array<float, 9> kAddends = {0,        0x1p-20f,  -0x1p-20f, 0x1p-19f, -0x1p-19f,
                                           0x1p-18f, -0x1p-18f, 0x1p-17f,  -0x1p-17f};

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

// The pairs of bytes whose sums are hard to round. The integer sum and floats round nearly the same
// real number, x_scale x + y_scale y, so that they can differ only where it is near the middle
// between two integers. Such pairs are found in whole numbers of 2^-32, and only they are computed.
class HardPairs {
 public:
  // For all scales and addends that move no real sum by more than `moved`.
  HardPairs(const QuantizedAdd& add, ByteRange x_range, ByteRange y_range, RealScales real,
            double moved, Isa isa)
      : add_(add) {
    const auto x_scaled = Rescaled(x_range, add.x_offset, add.left_shift,
                                   {add.x_multiplier, add.x_shift}, add.negate_x);
    const auto y_scaled = Rescaled(y_range, add.y_offset, add.left_shift,
                                   {add.y_multiplier, add.y_shift}, add.negate_y);
    const double margin = (moved + Inexactness(x_range, y_range, real)) * 0x1p32;
    const bool all = margin >= 0x1p30;
    const auto width = all ? 0u : static_cast<uint32_t>(margin);
    const auto beyond = all ? INT32_MAX : static_cast<int32_t>(0x80000000u + 2 * width);
    SumPlaces places;
    for (int32_t x = x_range.least; x <= x_range.largest; ++x) {
      // The middle minus `width` becomes the least integer.
      const double part = (x + add.x_offset) * Signed(real.x, add.negate_x);
      places.x[places.x_count++] = Place(part) + width;
    }
    for (int32_t y = y_range.least; y <= y_range.largest; ++y) {
      places.y[places.y_count++] = Place((y + add.y_offset) * Signed(real.y, add.negate_y));
    }
    ForEachHardSum(places, beyond, isa, [&](int i, int k) {
      const int32_t exact = MultiplyByQuantizedMultiplier(x_scaled[i] + y_scaled[k],
                                                          add.output_multiplier, add.output_shift);
      pairs_.push_back({x_range.least + i, y_range.least + k, Clamp(exact)});
    });
  }

  // The pairs that the floats round otherwise than the integer sum does; nullopt where they are
  // more than `most`. Products of a float and a byte, and their sums with a float and a power of
  // two as addend, are exact in doubles.
  std::optional<SumExceptions> Exceptions(const FloatSum& floats, int32_t rounded_with,
                                          int most) const {
    const float round = kRound + static_cast<float>(rounded_with);
    const double x_scale = floats.x_scale, y_scale = floats.y_scale;
    SumExceptions found;
    for (const SumExceptions::Pair& pair : pairs_) {
      const auto of_x = static_cast<float>((pair.x + add_.x_offset) * x_scale + floats.addend);
      const auto real = static_cast<float>((pair.y + add_.y_offset) * y_scale + of_x);
      if (Clamp(std::bit_cast<int32_t>(real + round) - std::bit_cast<int32_t>(round)) ==
          pair.result) {
        continue;
      }
      if (found.count == most) return std::nullopt;
      found.pairs[found.count++] = pair;
    }
    return found;
  }

  // The largest |x + x_offset|, or the same of y.
  static double Largest(ByteRange range, int32_t offset) {
    return std::max(std::abs(range.least + offset), std::abs(range.largest + offset));
  }

 private:
  static double Signed(double scale, bool negative) { return negative ? -scale : scale; }
  // The fraction in units of 2^-32, a half as 2^31.
  static uint32_t Place(double x) {
    return static_cast<uint32_t>(static_cast<int64_t>(std::floor(x * 0x1p32)));
  }

  // How far what either function rounds may be from the real sum, the places' own errors included,
  // with floats next to the real scales.
  double Inexactness(ByteRange x, ByteRange y, RealScales real) const {
    constexpr double kUlp = 0x1p-22;  // twice what two roundings of floats may come to
    const double of_floats =
        kUlp * (Largest(x, add_.x_offset) * real.x + Largest(y, add_.y_offset) * real.y);
    // Each summand is off by one unit of the sum at most, and the sum's first rounding by half of
    // 2^shift.
    const double unit = std::ldexp(add_.output_multiplier, add_.output_shift - 31);
    const double of_integers = 4 * unit + std::ldexp(1.0, add_.output_shift);
    return of_floats + of_integers + 0x1p-30;
  }

  int32_t Clamp(int32_t result) const {
    return std::clamp(result + add_.output_offset, add_.min, add_.max);
  }

  const QuantizedAdd& add_;
  std::vector<SumExceptions::Pair> pairs_;
};

// The floats next to `scales` with the fewest exceptions, at most `most`; the first where several
// have as few. Without an addend and then with one.
std::optional<NearFloatSum> BestThatRounds(const HardPairs& pairs, const QuantizedAdd& add,
                                           RealScales scales, int32_t rounded_with, int most) {
  std::optional<NearFloatSum> best;
  for (const float addend : kAddends) {
    for (const int x_steps : kSteps) {
      for (const int y_steps : kSteps) {
        const float x = Neighbour(static_cast<float>(scales.x), x_steps);
        const float y = Neighbour(static_cast<float>(scales.y), y_steps);
        const FloatSum sum{add.negate_x ? -x : x, add.negate_y ? -y : y, addend};
        const auto exceptions = pairs.Exceptions(sum, rounded_with, most);
        if (!exceptions) continue;
        best = NearFloatSum{sum, *exceptions};
        if (exceptions->count == 0) return best;
        most = exceptions->count - 1;
      }
    }
  }
  return best;
}

// With at most `most` exceptions.
std::optional<NearFloatSum> Find(const QuantizedAdd& add, ByteRange x, ByteRange y, Isa isa,
                                 int32_t rounded_with, int most) {
  if (!FusesMultiplyAdd(isa)) return std::nullopt;
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
  const RealScales scales{x_real, y_real};
  const double largest =
      HardPairs::Largest(x, add.x_offset) * x_real + HardPairs::Largest(y, add.y_offset) * y_real;
  std::optional<NearFloatSum> best;
  // Factors that take halves away from zero as TFLite does, where scales are simple fractions and
  // halves are many, come last. A float of up to 255 has 16 bits less of fraction than its scale.
  for (const double stretch : {0.0, 0x1p-18, 0x1p-16}) {
    const RealScales tried{x_real * (1 + stretch), y_real * (1 + stretch)};
    const HardPairs pairs(add, x, y, scales, largest * (stretch + kMostSteps * kStep) + kMostAddend,
                          isa);
    const auto found = BestThatRounds(pairs, add, tried, rounded_with, most);
    if (!found) continue;
    best = found;
    if (found->exceptions.count == 0) break;
    most = found->exceptions.count - 1;
  }
  return best;
}

}  // namespace

std::optional<FloatSum> FindFloatSum(const QuantizedAdd& add, ByteRange x, ByteRange y, Isa isa,
                                     int32_t rounded_with) {
  const auto found = Find(add, x, y, isa, rounded_with, 0);
  return found ? std::optional(found->floats) : std::nullopt;
}

std::optional<NearFloatSum> FindNearFloatSum(const QuantizedAdd& add, ByteRange x, ByteRange y,
                                             Isa isa, int32_t rounded_with) {
  return Find(add, x, y, isa, rounded_with, SumExceptions::kMost);
}

}  // namespace fuselite::kernels
