// Sums of 64 bits, those of 16-bit activations, on their way to int16.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/numbers/quantization.h"
#include "runtime/cpu/isa.h"

namespace fuselite::kernels {

// What brings wide sums to the output's scale, for each channel: fixed-point multipliers, or where
// `real` is not empty factors in double precision, rounded half away from zero.
struct WideScaling {
  std::vector<int32_t> multipliers = {}, shifts = {};  // of WideFixedPoint
  std::vector<double> real = {};
  int32_t zero_point = 0, min = 0, max = 0;
  // Not empty where the biases are constants and doubles hold every step exactly: then an int32 sum
  // without its bias is scaled as floor(sum * factor + addend), a third of the instructions that 64
  // bits take.
  std::vector<double> factors = {}, addends = {};
};
// Fills in `factors` and `addends` for these biases, where that is proven for all int32 sums: with
// the fixed point m * 2^-s and the bias b, floor((sum + b) * m / 2^s + 1/2) has no more than 53
// bits before it is rounded down, and no more than 32 behind. Otherwise leaves them empty.
void UseDoubles(std::span<const int64_t> biases, WideScaling* scaling);

// One row: to[i] = clamp(scaled(sum[i] + bias[i]) + zero_point, min, max) for `n` channels from
// `channel` on.
struct WideRow {
  const WideScaling* scaling = nullptr;
  int64_t channel = 0, n = 0;
  // The sums; int32 ones where `sums` is null, and then `to` may be where they are.
  const int64_t* sums = nullptr;
  const int32_t* narrow_sums = nullptr;
  // The bias of channel 0 on: one of them, or both null.
  const int64_t* bias = nullptr;
  const int32_t* narrow_bias = nullptr;
  int16_t* to = nullptr;
};
void ScaleWideRow(const WideRow& row);

struct WideRowFunctions {
  // Gives the same bits as ScaleWideRow.
  void (*scale)(const WideRow& row);
  // totals[i] += sums[i] * 2^shift, or without `totals` before where `first`.
  void (*add)(const int32_t* sums, int64_t n, int shift, bool first, int64_t* totals);
};

// The version for `isa`; null below SSSE3.
const WideRowFunctions* FindWideRowFunctions(Isa isa);

}  // namespace fuselite::kernels
