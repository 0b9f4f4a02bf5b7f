#include "kernels/tail/float_sum.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "kernels/numbers/quantization.h"
#include "kernels/tail/float_scale.h"
#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {
namespace {

int32_t IntegerResult(const QuantizedAdd& q, int32_t x, int32_t y) {
  const int32_t a = MultiplyByQuantizedMultiplier((x + q.x_offset) * (1 << q.left_shift),
                                                  q.x_multiplier, q.x_shift);
  const int32_t b = MultiplyByQuantizedMultiplier((y + q.y_offset) * (1 << q.left_shift),
                                                  q.y_multiplier, q.y_shift);
  const int32_t sum = (q.negate_x ? -a : a) + (q.negate_y ? -b : b);
  return std::clamp(
      MultiplyByQuantizedMultiplier(sum, q.output_multiplier, q.output_shift) + q.output_offset,
      q.min, q.max);
}

// What the code computes that adds `rounded_with` before it rounds.
int32_t FloatResult(const QuantizedAdd& q, const FloatSum& scales, int32_t rounded_with, int32_t x,
                    int32_t y) {
  const float of_x = std::fmaf(static_cast<float>(x + q.x_offset), scales.x_scale, scales.addend);
  const float sum = std::fmaf(static_cast<float>(y + q.y_offset), scales.y_scale, of_x);
  const double rounded = std::nearbyint(double{sum} + rounded_with) - rounded_with;
  return std::clamp(static_cast<int32_t>(rounded) + q.output_offset, q.min, q.max);
}

struct Scales {
  double x, y, out;
};

// Ties among them.
Scales RandomScales(Random& random) {
  if (random.Chance(0.2)) return {0.5, 0.25, std::ldexp(1.0, static_cast<int>(random.Int(-1, 2)))};
  const double x = random.Float(0.01f, 1.0f), y = random.Float(0.01f, 1.0f);
  return {x, y, std::max(x, y) * random.Float(0.4f, 3.0f)};
}

// As ADD and SUB make them (kernels/elementwise/quantized/quantized_functions.cc).
QuantizedAdd RandomAdd(Random& random, int32_t low, const Scales& scales) {
  const auto [x, y, out] = scales;
  const double twice = 2 * std::max(x, y);
  const FixedPoint fixed_x = ToFixedPoint(x / twice), fixed_y = ToFixedPoint(y / twice);
  const FixedPoint fixed_out = ToFixedPoint(twice / (out * (1 << 20)));
  QuantizedAdd q{.left_shift = 20,
                 .x_offset = -static_cast<int32_t>(random.Int(low, low + 255)),
                 .x_multiplier = fixed_x.multiplier,
                 .x_shift = fixed_x.shift,
                 .y_offset = -static_cast<int32_t>(random.Int(low, low + 255)),
                 .y_multiplier = fixed_y.multiplier,
                 .y_shift = fixed_y.shift,
                 .output_multiplier = fixed_out.multiplier,
                 .output_shift = fixed_out.shift,
                 .output_offset = static_cast<int32_t>(random.Int(low, low + 255)),
                 .min = low,
                 .max = low + 255};
  if (random.Chance(0.3)) q.min = q.output_offset;
  q.negate_x = random.Chance(0.2);
  q.negate_y = !q.negate_x && random.Chance(0.2);
  return q;
}

TEST(FloatSumTest, ScalesHoldForAllPairs) {
  const Isa isas[] = {Isa(Isa::kAvx2), DetectIsa()};
  int found = 0;
  constexpr int kCases = 40;
  for (uint64_t seed = 1; seed <= kCases; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const int32_t low = random.Chance(0.5) ? -128 : 0;
    const QuantizedAdd q = RandomAdd(random, low, RandomScales(random));
    const ByteRange x{random.Chance(0.3) ? -q.x_offset : low, low + 255}, y{low, low + 255};
    const Isa isa = DetectIsa().has(Feature::kAvx2) ? isas[seed % 2] : DetectIsa();
    const int32_t rounded_with = random.Chance(0.5) ? q.output_offset : 0;
    const auto scales = FindFloatSum(q, x, y, isa, rounded_with);
    if (!scales) continue;
    ++found;
    int wrong = 0;
    for (int32_t i = x.least; i <= x.largest; ++i) {
      for (int32_t k = y.least; k <= y.largest; ++k) {
        wrong += FloatResult(q, *scales, rounded_with, i, k) != IntegerResult(q, i, k);
      }
    }
    ASSERT_EQ(wrong, 0);
  }
  const bool fuses = FusesMultiplyAdd(DetectIsa());
  EXPECT_GE(found, fuses ? kCases * 9 / 10 : 0);  // 97 in 100 without ties, and simple fractions
}

// A simple fraction as one of the scales over the output's makes many sums that are hard to round:
// some of these have no exact pair.
TEST(FloatSumTest, ExceptionsAreAllThatIsWrong) {
  if (!FusesMultiplyAdd(DetectIsa())) GTEST_SKIP() << "needs a fused multiplication and addition";
  int with_exceptions = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const int32_t low = random.Chance(0.5) ? -128 : 0;
    const float scale = random.Float(0.04f, 0.07f);
    const QuantizedAdd q =
        RandomAdd(random, low, {scale, random.Float(0.04f, 0.07f), scale * 2.1f});
    const ByteRange bytes{low, low + 255};
    const int32_t rounded_with = random.Chance(0.5) ? q.output_offset : 0;
    const auto near = FindNearFloatSum(q, bytes, bytes, DetectIsa(), rounded_with);
    const auto exact = FindFloatSum(q, bytes, bytes, DetectIsa(), rounded_with);
    if (exact) {
      ASSERT_TRUE(near && near->exceptions.count == 0);
    }
    if (exact || !near) continue;
    ++with_exceptions;
    ASSERT_GT(near->exceptions.count, 0);
    int wrong = 0;
    for (int32_t i = low; i < low + 256; ++i) {
      for (int32_t k = low; k < low + 256; ++k) {
        wrong += FloatResult(q, near->floats, rounded_with, i, k) != IntegerResult(q, i, k);
      }
    }
    EXPECT_EQ(wrong, near->exceptions.count);
    for (const auto& pair : std::span(near->exceptions.pairs).first(near->exceptions.count)) {
      EXPECT_EQ(pair.result, IntegerResult(q, pair.x, pair.y));
      EXPECT_NE(pair.result, FloatResult(q, near->floats, rounded_with, pair.x, pair.y));
    }
  }
  EXPECT_GE(with_exceptions, 3);
}

TEST(FloatSumTest, RefusesSumsBeyondWords) {
  const QuantizedAdd q{.left_shift = 20,
                       .x_multiplier = 1 << 30,
                       .y_multiplier = 1 << 30,
                       .output_multiplier = INT32_MAX,
                       .output_shift = 0,
                       .min = -128,
                       .max = 127};
  EXPECT_FALSE(FindFloatSum(q, {-128, 127}, {-128, 127}, DetectIsa()));
}

}  // namespace
}  // namespace fuselite::kernels::testing
