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
  // without its bias is scaled, the zero point added, as the integer nearest to sum * factor +
  // addend, in a quarter of the instructions that 64 bits take. None is as near to two.
  std::vector<double> factors = {}, addends = {};
};
// Fills in `factors` and `addends` for these biases, where that is proven for all int32 sums: with
// the fixed point m * 2^-s and the bias b, (sum + b) * m / 2^s is rounded half up, as (sum + b) * m
// / 2^s + 2^-(s + 1) is to the nearest integer, which has no more than 53 bits before it is rounded
// and no more than 32 behind. Otherwise leaves them empty.
void UseDoubles(std::span<const int64_t> biases, WideScaling* scaling);

// Each of some rows: to[i] = clamp(scaled(sum[i] + bias[i]) + zero_point, min, max) for `n`
// channels from `channel` on.
struct WideRows {
  const WideScaling* scaling = nullptr;
  int64_t channel = 0, n = 0;
  // The sums; int32 ones where `sums` is null, and then each row's `to` may be where they are.
  const int64_t* sums = nullptr;
  const int32_t* narrow_sums = nullptr;
  // The bias of channel 0 on: one of them, or both null.
  const int64_t* bias = nullptr;
  const int32_t* narrow_bias = nullptr;
  int16_t* to = nullptr;
  int64_t rows = 1, sums_pitch = 0, to_pitch = 0;  // pitches: elements from a row to the next

  // One of the rows alone.
  WideRows Row(int64_t row) const {
    WideRows one = *this;
    if (sums != nullptr) one.sums += row * sums_pitch;
    if (narrow_sums != nullptr) one.narrow_sums += row * sums_pitch;
    one.to += row * to_pitch;
    one.rows = 1;
    return one;
  }
};
void ScaleWideRows(const WideRows& rows);

struct WideRowFunctions {
  // Gives the same bits as ScaleWideRows.
  void (*scale)(const WideRows& rows);
  // totals[i] += sums[i] * 2^shift, or without `totals` before where `first`.
  void (*add)(const int32_t* sums, int64_t n, int shift, bool first, int64_t* totals);
};

// The version for `isa`; null below SSSE3.
const WideRowFunctions* FindWideRowFunctions(Isa isa);

}  // namespace fuselite::kernels
