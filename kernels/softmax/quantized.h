// SOFTMAX of quantized rows, to the bit of TFLite's reference kernel.
#pragma once

#include "kernels/numbers/fixed_point.h"
#include "kernels/numbers/interpolated_table.h"
#include "kernels/numbers/quantization.h"
#include "kernels/softmax/softmax.h"

namespace fuselite::kernels {

// The exponentials of beta (x - largest).
Result<ExpTable> SoftmaxExpTable(const OpDescription& op);

// What an exponential in Q0.31 becomes: RoundingDivideByPowerOfTwo(
// SaturatingRoundingDoublingHighMul(e, scale), shift) above the output type's smallest value.
// `shift` > 31: everything becomes that value (TFLite aborts).
struct SoftmaxScale {
  int32_t scale;
  int shift;
};
// `sum` in Q12.19, at least 1.0; `output_bits` of the output's type.
SoftmaxScale ScaleOfSum(int64_t sum, int output_bits);
// ScaleOfSum() before the division: `fraction` for `scale`, `bits_over_unit` for `shift`.
ReciprocalParts PartsOfSum(int64_t sum, int output_bits);

// Whether scales and zero points are such as TFLite takes.
Status CheckQuantizedSoftmax(const OpDescription& op);

// int8 or uint8 to the same type or to int16; int16 (kernels/softmax/int16.cc).
Result<std::unique_ptr<Kernel>> BuildQuantizedSoftmaxReference(const OpDescription&);
// 8 bits in rows of at most 8192 elements, whose sums fit into 32 bits; int16 in rows of any
// length.
Result<std::unique_ptr<Kernel>> BuildQuantizedSoftmaxHighway(const OpDescription&,
                                                             const BuildContext&);

// An exponential e becomes (e * factor + 2^(shift - 1)) >> shift, at most 32767: e is part of the
// sum 2^shift (1 + x), the factor 2^15 / (1 + x). The sum of e alone gives 32768.
struct InverseOfSum {
  int32_t factor;
  int shift;  // positive: the largest value alone adds 32767 to the sum
};

// int16, from two tables with interpolation: of exp and of 1 / (1 + x).
struct Int16Softmax {
  using Table = InterpolatedTable<double>;
  // Precondition: CheckInt16Softmax(op).
  explicit Int16Softmax(const OpDescription& op);
  // `sum` of a row's exponentials, which have 15 fraction bits.
  static InverseOfSum InverseOf(int32_t sum);

  const Table* exp;    // over [-10, 0], where 32767 stands for 0
  FixedPoint scale{};  // of differences, to the table's inputs less 32767
  int64_t n;           // elements of a row
};
// A row of softmax.n values, one by one.
void Int16SoftmaxScalarRow(const Int16Softmax& softmax, const int16_t* in, int16_t* out);
Status CheckInt16Softmax(const OpDescription& op);
Result<std::unique_ptr<Kernel>> BuildInt16Softmax(const OpDescription& op);
Result<std::unique_ptr<Kernel>> BuildInt16SoftmaxHighway(const OpDescription& op, Isa isa);

}  // namespace fuselite::kernels
