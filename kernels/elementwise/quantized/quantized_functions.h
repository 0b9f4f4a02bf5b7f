// The functions of two quantized values, as TFLite's reference kernels compute them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/elementwise/elementwise.h"
#include "kernels/numbers/fixed_point.h"
#include "kernels/numbers/quantization.h"

namespace fuselite::kernels {

// ADD and SUB.
struct QuantizedSum {
  QuantizedAdd q;

  int32_t operator()(int32_t x, int32_t y) const {
    const int32_t a = Scaled(x, q.x_offset, q.x_multiplier, q.x_shift);
    const int32_t b = Scaled(y, q.y_offset, q.y_multiplier, q.y_shift);
    const int32_t sum = q.negate_y ? a - b : a + b;
    const int32_t result =
        MultiplyByQuantizedMultiplier(sum, q.output_multiplier, q.output_shift) + q.output_offset;
    return std::min(q.max, std::max(q.min, result));
  }
  int32_t Scaled(int32_t v, int32_t offset, int32_t multiplier, int32_t shift) const {
    return MultiplyByQuantizedMultiplier((v + offset) * (1 << q.left_shift), multiplier, shift);
  }
};

// ADD and SUB of int16 whose scales are powers of two: one operand has the output's scale, the
// other is shifted to it.
struct QuantizedPowerSum {
  int x_shift, y_shift;  // to the right
  bool subtract;
  int32_t min, max;

  int32_t operator()(int32_t x, int32_t y) const {
    const int32_t a = RoundingDivideByPowerOfTwo(x, x_shift);
    const int32_t b = RoundingDivideByPowerOfTwo(y, y_shift);
    return std::min(max, std::max(min, subtract ? a - b : a + b));
  }
};

struct QuantizedProduct {
  int32_t x_zero, y_zero, zero;
  FixedPoint scale;
  int32_t min, max;

  int32_t operator()(int32_t x, int32_t y) const {
    const int32_t result = zero + MultiplyByQuantizedMultiplier((x - x_zero) * (y - y_zero),
                                                                scale.multiplier, scale.shift);
    return std::min(max, std::max(min, result));
  }
};

// DIV, by the reciprocal of y in fixed point.
struct QuantizedQuotient {
  int32_t x_zero, y_zero, zero;
  FixedPoint scale;
  int32_t min, max;

  bool Refuses(int32_t y) const { return y == y_zero; }
  int32_t operator()(int32_t x, int32_t y) const {
    const int32_t sign = y < y_zero ? -1 : 1;
    const int32_t dividend = sign * (x - x_zero);
    const FixedReciprocal inverse = Reciprocal(sign * (y - y_zero), 31);
    const int headroom = std::countl_zero(static_cast<uint32_t>(dividend ^ (dividend >> 31))) - 1;
    const auto shifted = static_cast<int32_t>(static_cast<uint32_t>(dividend) << headroom);
    const int32_t quotient = SaturatingRoundingDoublingHighMul(shifted, inverse.scale);
    const int right = inverse.bits_over_unit + headroom - scale.shift;
    const int32_t scaled = SaturatingRoundingDoublingHighMul(quotient, scale.multiplier);
    return std::clamp(Sum(zero, Shifted(scaled, right)), min, max);
  }

 private:
  // Divides by 2^right. By other than 0 to 31 bits, which common scales lead to, LiteRT's own
  // kernel shifts by the count's last five, as x86-64 and aarch64 do, and adds one to what has no
  // sign.
  static int32_t Shifted(int32_t value, int right) {
    if (0 <= right && right <= 31) return RoundingDivideByPowerOfTwo(value, right);
    return Sum(value >> (right & 31), value >= 0 ? 1 : 0);
  }
  static int32_t Sum(int32_t a, int32_t b) {  // wraps around
    return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
  }
};

struct QuantizedPrelu {
  int32_t x_zero, y_zero, zero;
  FixedPoint identity, product;
  int32_t min, max;

  int32_t operator()(int32_t x, int32_t y) const {
    const int32_t v = x - x_zero;
    const int32_t result =
        v >= 0 ? MultiplyByQuantizedMultiplier(v, identity.multiplier, identity.shift)
               : MultiplyByQuantizedMultiplier(v * (y - y_zero), product.multiplier, product.shift);
    return std::min(max, std::max(min, result + zero));
  }
};

// Brings both operands to twice the larger scale with 7 more bits, and squares their difference.
struct QuantizedSquaredDifference {
  QuantizedSum sum;  // of which only Scaled() and the output's scale are used

  int32_t operator()(int32_t x, int32_t y) const {
    const QuantizedAdd& q = sum.q;
    const int32_t difference = sum.Scaled(x, q.x_offset, q.x_multiplier, q.x_shift) -
                               sum.Scaled(y, q.y_offset, q.y_multiplier, q.y_shift);
    const int32_t result = MultiplyByQuantizedMultiplier(difference * difference,
                                                         q.output_multiplier, q.output_shift) +
                           q.output_offset;
    return std::min(q.max, std::max(q.min, result));
  }
};

// Whether an ADD or SUB is a QuantizedPowerSum: int16 with scales that are powers of two, unless
// the model says otherwise.
bool HasPowerOfTwoScales(const OpDescription& op);

// Each fails on scales that TFLite refuses or aborts on.
Result<QuantizedPowerSum> MakeQuantizedPowerSum(BinaryKind kind, const OpDescription& op);
Result<QuantizedSum> MakeQuantizedSum(BinaryKind kind, const OpDescription& op);
Result<QuantizedProduct> MakeQuantizedProduct(const OpDescription& op);
Result<QuantizedQuotient> MakeQuantizedQuotient(const OpDescription& op);
Result<QuantizedPrelu> MakeQuantizedPrelu(const OpDescription& op);
Result<QuantizedSquaredDifference> MakeQuantizedSquaredDifference(const OpDescription& op);

}  // namespace fuselite::kernels
