#include "kernels/numbers/fixed_point.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace fuselite::kernels {
namespace {

constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
constexpr int32_t kMin = std::numeric_limits<int32_t>::min();

int32_t Mul(int32_t a, int32_t b) { return SaturatingRoundingDoublingHighMul(a, b); }
int32_t Add(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}
int32_t Sub(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
}
int32_t Saturate(int64_t x) { return static_cast<int32_t>(std::clamp<int64_t>(x, kMin, kMax)); }

// x * 2^exponent: saturated to the left, rounded half away from zero to the right.
int32_t MulByPowerOfTwo(int32_t x, int exponent) {
  if (exponent < 0) return RoundingDivideByPowerOfTwo(x, -exponent);
  return Saturate(static_cast<int64_t>(x) << exponent);
}

// (a + b) / 2, halves away from zero.
int32_t RoundingHalfSum(int32_t a, int32_t b) {
  const int64_t sum = int64_t{a} + b;
  return static_cast<int32_t>((sum + (sum >= 0 ? 1 : -1)) / 2);
}

// exp(x) in Q0.31 of x in [-1/4, 0) in Q0.31: the Taylor series at -1/8.
int32_t ExpOfLastQuarter(int32_t x) {
  constexpr int32_t kExpOfMinusEighth = 1895147668, kThird = 715827883;
  const int32_t t = Add(x, 1 << 28);
  const int32_t t2 = Mul(t, t), t3 = Mul(t2, t), t4 = Mul(t2, t2);
  const int32_t cubic = Mul(Add(MulByPowerOfTwo(t4, -2), t3), kThird);
  const int32_t series = Add(t, MulByPowerOfTwo(Add(cubic, t2), -1));
  return Add(kExpOfMinusEighth, Mul(kExpOfMinusEighth, series));
}

int LeadingZeros(int32_t x) { return std::countl_zero(static_cast<uint32_t>(x)); }

}  // namespace

int32_t FixedExpOnNegative(int32_t x) {
  // exp(-2^k) in Q0.31 for k from -2 on.
  constexpr int32_t kPowers[] = {1672461947, 1302514674, 790015084, 290630308,
                                 39332535,   720401,     242};
  if (x == 0) return kMax;
  constexpr int32_t kQuarter = 1 << 24;
  const int32_t last_quarter = (x & (kQuarter - 1)) - kQuarter;
  int32_t result = ExpOfLastQuarter(MulByPowerOfTwo(last_quarter, 5));
  const auto rest = static_cast<uint32_t>(Sub(last_quarter, x));
  for (int k = 0; k < 7; ++k) {
    if (rest & (uint32_t{1} << (24 + k))) result = Mul(result, kPowers[k]);
  }
  return result;
}

int32_t FixedOneOverOnePlus(int32_t x) {
  // Newton's iteration in Q2.29 on half the denominator.
  constexpr int32_t kOne = 1 << 29, k48Over17 = 1515870810, kMinus32Over17 = -1010580540;
  const int32_t half = RoundingHalfSum(x, kMax);
  int32_t y = Add(k48Over17, Mul(half, kMinus32Over17));
  for (int i = 0; i < 3; ++i) {
    const int32_t error = Sub(kOne, Mul(half, y));
    y = Add(y, MulByPowerOfTwo(Mul(y, error), 2));
  }
  return MulByPowerOfTwo(y, 1);
}

ReciprocalParts SplitReciprocal(int32_t x, int integer_bits) {
  const int zeros = LeadingZeros(x);
  const auto fraction = (static_cast<uint32_t>(x) << zeros) - (uint32_t{1} << 31);
  return {static_cast<int32_t>(fraction), integer_bits - zeros};
}

FixedReciprocal Reciprocal(int32_t x, int integer_bits) {
  const ReciprocalParts parts = SplitReciprocal(x, integer_bits);
  return {FixedOneOverOnePlus(parts.fraction), parts.bits_over_unit};
}

FixedLogParts SplitLogOfQ12(int32_t x) {
  constexpr int kInputBits = 12;
  constexpr int32_t kRootOfHalf = 1518500250;
  constexpr int32_t kQuarter = 1 << (31 - fixed_log::kPowerBits - 2);
  const auto exponent = [](int bits) { return MulByPowerOfTwo(bits, 31 - fixed_log::kPowerBits); };
  // x as it is and multiplied by sqrt(1/2); the one with the smaller r is taken.
  const int zeros_a = LeadingZeros(x);
  const int32_t r_a = MulByPowerOfTwo(Mul(MulByPowerOfTwo(x, zeros_a - 1), kRootOfHalf), 1);
  const int32_t power_a = Saturate(int64_t{exponent(kInputBits - zeros_a)} + kQuarter);
  const int headroom_b = LeadingZeros(Mul(x, kRootOfHalf)) - 1;
  const int32_t r_b = MulByPowerOfTwo(x, headroom_b);
  const int32_t power_b = Saturate(int64_t{exponent(kInputBits - headroom_b)} - kQuarter);
  return {std::min(r_a, r_b), std::max(power_a, power_b)};
}

int32_t FixedLogOfQ12(int32_t x) {
  using namespace fixed_log;
  const auto [r, power] = SplitLogOfQ12(x);
  const int32_t p = RoundingHalfSum(r, kFourthRootOfHalf);
  const int32_t half_q = Sub(r, kFourthRootOfHalf);
  const int32_t q = Add(half_q, half_q);
  const int32_t q2 = Mul(q, q);
  const int32_t numerator = Add(Mul(q, r), Mul(Mul(q, q2), kAlphaN));
  const int32_t denominator = Add(Mul(p, Add(Add(kAlphaI, q), Mul(kAlphaD, q2))), Mul(kAlphaF, q));
  const int32_t inverse = FixedOneOverOnePlus(denominator);
  const int32_t sum = Add(Mul(power, kLog2), Mul(MulByPowerOfTwo(numerator, -kPowerBits), inverse));
  return MulByPowerOfTwo(sum, 1);
}

FixedPoint FixedInverseSqrt(int32_t x) {
  if (x <= 1) return {kMax, 0};
  int right = 11;
  for (; x >= 1 << 29; ++right) x /= 4;
  const int pairs = (LeadingZeros(x) - 1) / 2 - 1;
  right -= pairs;
  x <<= 2 * pairs;
  // Newton's iteration in Q3.28, from 1.
  constexpr int32_t kThreeHalves = (1 << 28) + (1 << 27), kRootOfHalf = 1518500250;
  const int32_t half = MulByPowerOfTwo(x >> 1, -1);
  int32_t y = 1 << 28;
  for (int i = 0; i < 5; ++i) {
    const int32_t cube = MulByPowerOfTwo(Mul(Mul(y, y), y), 6);
    y = MulByPowerOfTwo(Sub(Mul(kThreeHalves, y), Mul(half, cube)), 3);
  }
  y = Mul(y, kRootOfHalf);
  if (right < 0) {
    y = static_cast<int32_t>(static_cast<uint32_t>(y) << -right);
    right = 0;
  }
  return {y, -right};
}

Result<ScaledDifference> MakeScaledDifference(double beta, double scale) {
  constexpr int kIntegerBits = 5, kFractionBits = 31 - kIntegerBits;
  constexpr double kMost = std::numeric_limits<int32_t>::max();  // as TFLite saturates it
  const double real = std::min(beta * scale * (1 << kFractionBits), kMost);
  if (!(real > 1)) {
    return Unsupported("does not take an input scale of ", scale, " and a beta of ", beta);
  }
  ScaledDifference result{.scale = ToFixedPoint(real)};
  const double radius = ((1 << kIntegerBits) - 1) * static_cast<double>(1 << kFractionBits) /
                        static_cast<double>(int64_t{1} << result.scale.shift);
  result.least = -static_cast<int32_t>(std::floor(radius));
  return result;
}

Result<ExpTable> MakeExpTable(double beta, double scale) {
  FUSELITE_ASSIGN_OR_RETURN(const ScaledDifference difference, MakeScaledDifference(beta, scale));
  ExpTable table{};
  for (int32_t d = 0; d < 256 && -d >= difference.least; ++d) {
    table.values[d] = FixedExpOnNegative(difference(-d));
  }
  return table;
}

}  // namespace fuselite::kernels
