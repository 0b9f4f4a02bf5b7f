// FUSELITE_DEQUANTIZED_SUM: the float sum of values that are mostly bytes, as bytes again. Made by
// rewrites of DEQUANTIZE, ADD and QUANTIZE around the residuals of quantized models.
#pragma once

#include <limits>
#include <span>
#include <string>

#include "kernels/operator.h"

namespace fuselite::kernels {

struct DequantizedSumParams {
  static constexpr int kMaxTerms = 8;
  // Where a sum ends that is not bounded.
  static constexpr float kLowest = std::numeric_limits<float>::lowest();
  static constexpr float kHighest = std::numeric_limits<float>::max();
  struct Range {
    float low, high;
  };
  // ranges[i]: of the sum of terms 0 to i, which is brought there before the next is added. That of
  // term 0 is not read.
  Range ranges[kMaxTerms];
};

// Inputs: 2 to kMaxTerms terms of one shape, int8 or uint8 with one scale each, or float32. With
//   v_0 = real(x_0), v_i = clamp(v_(i-1) + real(x_i), ranges[i])
// the output, int8 or uint8 with one scale, is v of the last term quantized as QUANTIZE does it:
// clamp(round(v / scale) + zero_point), halves away from zero. real(x) is scale * (x - zero_point),
// a float32 as it is. Each product and each sum is rounded, as the operators apart round theirs.
// Dense operands; one unit is a block of elements.
Result<std::unique_ptr<Kernel>> BuildDequantizedSumReference(const OpDescription&,
                                                             const BuildContext&);
Result<std::unique_ptr<Kernel>> BuildDequantizedSumHighway(const OpDescription&,
                                                           const BuildContext&);

// A term and what is done with it.
struct SumTerm {
  explicit SumTerm(const OpDescription& op, int input);
  DataType type;
  float scale;
  int32_t zero_point;
  DequantizedSumParams::Range range;
};
// The sums of `count` values of each term, which begin at x[term].
using SumTermsFunction = void(std::span<const SumTerm> terms, const void* const* x, int64_t count,
                              float* sums);
// Quantizes to bytes of the output's type.
using QuantizeSumsFunction = void(const float* sums, void* out, int64_t count, float scale,
                                  int32_t zero_point);
// Any of both, of which the two functions do the blocks.
Result<std::unique_ptr<Kernel>> MakeDequantizedSum(std::string name, const OpDescription& op,
                                                   SumTermsFunction* sum,
                                                   QuantizeSumsFunction* quantize);

}  // namespace fuselite::kernels
