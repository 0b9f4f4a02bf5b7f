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
constexpr int32_t kLargestSum = int32_t{1} << 28;
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

// Compares scales with the integer sum, a monotone step function of the rescaled values' sum.
class Proof {
 public:
  Proof(const QuantizedAdd& add, ByteRange x, ByteRange y)
      : add_(add),
        x_(x),
        y_(y),
        x_scaled_(Rescaled(x, add.x_offset, add.left_shift, {add.x_multiplier, add.x_shift},
                           add.negate_x)),
        y_scaled_(Rescaled(y, add.y_offset, add.left_shift, {add.y_multiplier, add.y_shift},
                           add.negate_y)) {
    last_[0] = -kLargestSum - 1;
    last_[results()] = kLargestSum;
    for (int32_t i = 1; i < results(); ++i) last_[i] = LastBelow(add.min + i, last_[i - 1]);
  }

  bool Holds(const FloatSum& scales) const {
    for (int32_t x = x_.least; x <= x_.largest; ++x) {
      if (!HoldsFor(x, scales)) return false;
    }
    return true;
  }

 private:
  int32_t results() const { return add_.max - add_.min + 1; }

  // The largest sum, from `low` on, whose result is below `result`.
  int32_t LastBelow(int32_t result, int32_t low) const {
    int32_t high = kLargestSum;
    while (low < high) {
      const int32_t middle = low + (high - low + 1) / 2;
      const int32_t scaled =
          MultiplyByQuantizedMultiplier(middle, add_.output_multiplier, add_.output_shift);
      if (scaled + add_.output_offset < result) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }

  bool HoldsFor(int32_t x, const FloatSum& scales) const {
    const double of_x = static_cast<float>(x + add_.x_offset) * scales.x_scale;
    const double y_scale = scales.y_scale;
    std::array<int32_t, kBytes> results;
    const int32_t count = y_.largest - y_.least + 1;
    for (int32_t i = 0; i < count; ++i) {
      const auto sum = static_cast<float>((y_.least + add_.y_offset + i) * y_scale + of_x);
      const int32_t rounded = std::bit_cast<int32_t>(sum + kRound) - std::bit_cast<int32_t>(kRound);
      results[i] = std::clamp(rounded + add_.output_offset, add_.min, add_.max) - add_.min;
    }
    bool holds = true;
    for (int32_t i = 0; i < count; ++i) {
      const int32_t sum = x_scaled_[x - x_.least] + y_scaled_[i];
      holds &= sum > last_[results[i]] && sum <= last_[results[i] + 1];
    }
    return holds;
  }

  const QuantizedAdd& add_;
  ByteRange x_, y_;
  std::array<int32_t, kBytes> x_scaled_, y_scaled_;
  // Sums in (last_[i], last_[i + 1]] give min + i.
  std::array<int32_t, kBytes + 1> last_{};
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
  const Proof proof(add, x, y);
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
