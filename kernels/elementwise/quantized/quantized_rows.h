// Rows of two quantized values each, with vectors: what highway_quantized.cc computes, and
// quantized_rows.cc plans.
#pragma once

#include <array>
#include <memory>
#include <variant>

#include "kernels/elementwise/joined_rows.h"
#include "kernels/elementwise/quantized/quantized_functions.h"
#include "kernels/tail/float_sum.h"
#include "runtime/cpu/isa.h"

namespace fuselite::kernels {

// The quantized functions rounded once, in float32, where that gives the same results, which is
// proven or tried on all pairs of bytes when a kernel is built (FindRounded). Results are clamped
// after they were cut to 16 bits, so they must stay within those.
//
// round(y_scale (y - y_zero) + (x_scale (x - x_zero) + addend) + zero), but for the exceptions.
struct RoundedSum {
  int32_t x_zero, y_zero, zero;
  float x_scale, y_scale, addend;
  int32_t min, max;
  SumExceptions exceptions = {};
};

// round(scale p + nudge sign(p)) + zero of p = (x - x_zero) (y - y_zero). The nudge carries over
// what the first of TFLite's two roundings does.
struct RoundedProduct {
  int32_t x_zero, y_zero, zero;
  float scale, nudge;
  int32_t min, max;
};

// round(scale d^2) + zero, d being the difference that QuantizedSquaredDifference squares.
struct RoundedSquaredDifference {
  QuantizedSquaredDifference exact;
  float scale;
  int32_t zero;
  int32_t min, max;
};

// A QuantizedQuotient of bytes as unsigned values, with what it makes of each divisor beforehand.
// The operand by which nothing is divided has an inverse of 0.
struct TabledQuotient {
  struct Divisors {
    std::array<int32_t, 256> inverse;  // FixedReciprocal::scale of the divisor without its sign
    std::array<int32_t, 256> right;    // bits to shift by, beside those of the dividend
  };
  QuantizedQuotient exact;
  std::shared_ptr<const Divisors> divisors;
  int32_t min, max;
};

using QuantizedFunction =
    std::variant<QuantizedSum, QuantizedProduct, QuantizedPrelu, QuantizedSquaredDifference,
                 TabledQuotient, RoundedSum, RoundedProduct, RoundedSquaredDifference>;

// How rows of values become rows of results. Bytes are XORed with `flip` on their way in and out:
// with 0x80, int8 becomes uint8, 128 higher, and the function is one of unsigned values. The
// rounded functions are those of bytes.
struct QuantizedRowFunction {
  QuantizedFunction function;
  DataType type;  // kInt8, kUInt8 or kInt16
  uint8_t flip;   // 0 for kInt16
};

using QuantizedRowsFunction = void(const QuantizedRowFunction& function, const RowBlock& block);

// Null where there is no vector target.
QuantizedRowsFunction* QuantizedRows(Isa isa);

}  // namespace fuselite::kernels
