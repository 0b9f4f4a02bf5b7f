// Stages of tails with random parameters.
#pragma once

#include "kernels/tail/tail.h"
#include "tests/kernels/random.h"

namespace fuselite::kernels::testing {

inline int32_t RandomAccumulator(Random& random) {
  switch (random.Int(0, 3)) {
    case 0: return static_cast<int32_t>(random.Int(INT32_MIN, INT32_MAX));
    case 1: return static_cast<int32_t>(random.Int(-300, 300));
    case 2: return random.Pick<int32_t>({INT32_MIN, INT32_MIN + 1, INT32_MAX, 0, -1, 1});
    default: return static_cast<int32_t>(random.Int(-200000, 200000));
  }
}

inline int32_t RandomMultiplier(Random& random) {
  if (random.Chance(0.1)) return random.Pick<int32_t>({0, 1 << 30, INT32_MAX, (1 << 30) + 1});
  return static_cast<int32_t>(random.Int(1 << 30, INT32_MAX));
}

// To codes in [low, high], each of `channels` by a scale of its own or all by one.
inline TailStage RandomRequantize(Random& random, int64_t channels, int32_t low, int32_t high) {
  TailStage stage;
  stage.kind = TailStage::Kind::kRequantize;
  Requantize& r = stage.requantize;
  // Shifts beyond a layer's usual ones give values to which no zero point can be added in int32.
  const bool extreme = random.Chance(0.3);
  const int64_t entries = random.Chance(0.5) ? 1 : channels;
  std::vector<int32_t> multipliers(entries), shifts(entries);
  for (int64_t c = 0; c < entries; ++c) {
    multipliers[c] = RandomMultiplier(random);
    shifts[c] = static_cast<int32_t>(extreme ? random.Int(-31, 30) : random.Int(-16, -1));
  }
  r.multipliers = std::move(multipliers);
  r.shifts = std::move(shifts);
  r.zero_point = extreme ? 0 : static_cast<int32_t>(random.Int(low, high));
  r.min = static_cast<int32_t>(random.Int(low, 0));
  r.max = static_cast<int32_t>(random.Int(1, high));
  return stage;
}

// Adds to rows of `width` codes of [low, high]; the operand is input 0.
inline TailStage RandomQuantizedAdd(Random& random, int64_t width, int32_t low, int32_t high) {
  TailStage stage;
  stage.kind = TailStage::Kind::kQuantizedAdd;
  stage.operand = {.input = 0,
                   .row_stride = random.Pick<int64_t>({0, 1, width}),
                   .channel_stride = static_cast<int32_t>(random.Int(0, 1))};
  QuantizedAdd& q = stage.add;
  q.left_shift = high < 256 ? 20 : 14;
  q.x_offset = static_cast<int32_t>(random.Int(-high, -low));
  q.y_offset = static_cast<int32_t>(random.Int(-high, -low));
  q.x_multiplier = RandomMultiplier(random);
  q.y_multiplier = RandomMultiplier(random);
  q.negate_x = random.Chance(0.3);
  q.negate_y = !q.negate_x && random.Chance(0.3);
  q.output_multiplier = RandomMultiplier(random);
  q.x_shift = static_cast<int32_t>(random.Int(-4, -1));
  q.y_shift = static_cast<int32_t>(random.Int(-4, -1));
  q.output_shift = static_cast<int32_t>(random.Int(random.Chance(0.3) ? -31 : -20, -8));
  q.output_offset = static_cast<int32_t>(random.Int(low, high));
  q.min = static_cast<int32_t>(random.Int(low, 0));
  q.max = static_cast<int32_t>(random.Int(1, high));
  return stage;
}

inline TailStage RandomLookup(Random& random) {
  TailStage stage;
  stage.kind = TailStage::Kind::kLookup;
  std::vector<uint8_t> table(256);
  for (uint8_t& entry : table) entry = static_cast<uint8_t>(random.Int(0, 255));
  stage.table = std::move(table);
  return stage;
}

}  // namespace fuselite::kernels::testing
