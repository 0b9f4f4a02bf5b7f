// The fused tail: what happens to a value between an operator's accumulator and memory.
//
// A tail is a list of stages applied in order to every output element: activations, a residual
// add, a multiply, requantization. It is written once as scalar code (reference), once with
// Highway and once by the JIT, and attaches to any kernel that produces tiles of outputs. Alone, it
// is a chain of elementwise operators.
//
// The output is seen as rows of `channels` elements: the innermost dimension, and all the others
// flattened. Every stage is rounded to float32, as if the operators ran one by one, so that a
// fused chain has the bits of the unfused one wherever the stage itself has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/fields.h"
#include "kernels/tail/elementwise_kinds.h"
#include "runtime/channel_values.h"

namespace fuselite::kernels {

// The element of operand `input` for output (row, channel), `rows_per_batch` rows being one batch:
//   base[(row / rows_per_batch) * batch_stride + (row % rows_per_batch) * row_stride
//        + channel * channel_stride]
// A residual of the output's own shape has {rows_per_batch * pitch, pitch, 1}, a per-channel vector
// {0, 0, 1}, a scalar {0, 0, 0}, a squeeze-excite gate [N,1,1,C] {C, 0, 1}, a mask [N,H,W,1]
// {rows_per_batch, 1, 0}.
struct TailOperand {
  int input = -1;  // index among the inputs of the OpDescription
  int64_t batch_stride = 0;
  int64_t row_stride = 0;
  int32_t channel_stride = 0;  // 0 or 1
  // Of a float stage that is emitted: elements are bfloat16 in memory (DivideFloatTail).
  bool bfloat16 = false;
};

// From an int32 accumulator to a quantized value, per output channel c (index 0 where size is 1):
//   clamp(MultiplyByQuantizedMultiplier(acc, multipliers[c], shifts[c]) + zero_point, min, max)
// with TFLite's double rounding (kernels/numbers/quantization.h).
struct Requantize {
  ChannelValues<int32_t> multipliers;  // 1 or channels
  ChannelValues<int32_t> shifts;       // left positive
  int32_t zero_point = 0;
  int32_t min = 0, max = 0;
};

// A quantized ADD or SUB, TFLite's way: both operands get their offset, are shifted left and
// scaled to a common scale, one of them negated for SUB, added, and scaled to the output's.
struct QuantizedAdd {
  int32_t left_shift = 0;
  int32_t x_offset = 0, x_multiplier = 0, x_shift = 0;  // the flowing value
  int32_t y_offset = 0, y_multiplier = 0, y_shift = 0;  // the operand
  bool negate_x = false, negate_y = false;              // at most one of them
  int32_t output_multiplier = 0, output_shift = 0, output_offset = 0;
  int32_t min = 0, max = 0;
};

struct TailStage {
  enum class Kind : uint8_t {
    kUnary,         // float
    kBinary,        // float; `operand` is float32
    kRequantize,    // int32 -> quantized
    kQuantizedAdd,  // quantized, quantized `operand` of the output's type -> quantized
    kLookup,        // 8-bit -> 8-bit, table[uint8(value)]
    kDequantize,    // int32 or quantized -> float: scales[c] * (value - zero_point)
    kQuantize,      // float -> quantized: clamp(round(x / scales[0]) + zero_point)
    // int32 -> quantized: clamp(round(real_scales[c] * x) + zero_point) in double precision, halves
    // away from zero: how TFLite's reference of FULLY_CONNECTED requantizes.
    kRescale,
  };
  Kind kind = Kind::kUnary;
  UnaryKind unary = UnaryKind::kIdentity;
  BinaryKind binary = BinaryKind::kAdd;
  float a = 0, b = 0;  // of the unary function
  TailOperand operand;
  Requantize requantize;
  QuantizedAdd add;
  ChannelValues<uint8_t> table;       // 256 entries
  ChannelValues<float> scales;        // kDequantize: 1 or channels; kQuantize: 1
  ChannelValues<double> real_scales;  // kRescale: 1 or channels
  int32_t zero_point = 0, min = 0, max = 0;

  static TailStage Unary(UnaryKind kind, float a = 0, float b = 0);
  static TailStage Binary(BinaryKind kind, TailOperand operand);
  std::string ToString() const;  // "clamp(0, 6)", "add #3", "requantize"
};

struct Tail {
  std::vector<TailStage> stages;
  int64_t rows_per_batch = INT64_MAX;

  bool empty() const { return stages.empty(); }
  std::string ToString() const;  // the stages', separated by ", "
};

// What the stages take for an element, where 1 is what moving it takes, a clamp or an addition
// included (GrainFor in kernels/make_kernel.h): at least 1.
int64_t ElementWork(const Tail& tail);

// The float range of a fused activation that is a clamp; false for kTanh and kSignBit. kNone is
// the clamp to all floats.
bool ActivationRange(Activation activation, float* min, float* max);
// Appends the stage of a float operator's fused activation, nothing for kNone. False for
// kSignBit, which no TFLite kernel computes.
bool AppendActivation(Activation activation, Tail* tail);

}  // namespace fuselite::kernels
