#include "kernels/gemm/wide_row.h"

#include <cstring>

#include "tests/kernels/quantized_cases.h"

namespace fuselite::kernels::testing {
namespace {

// Scales of every size, sums up to far beyond what they leave in 16 bits, and ties.
WideScaling RandomWideScaling(Random& random, int64_t channels, bool real) {
  const auto low = static_cast<int32_t>(random.Int(-32768, 0));
  WideScaling scaling{.zero_point = static_cast<int32_t>(random.Int(-9, 9)),
                      .min = low,
                      .max = static_cast<int32_t>(random.Int(low, 32767))};
  const int largest_shift = random.Pick({-1, 14});
  for (int64_t c = 0; c < channels; ++c) {
    if (real) {
      scaling.real.push_back(std::ldexp(random.Pick({1.0, 0.5, 0.7310585}), random.Int(-40, 3)));
      continue;
    }
    const WideFixedPoint fixed =
        ToWideFixedPoint({static_cast<int32_t>(random.Int(1 << 30, INT32_MAX)),
                          static_cast<int32_t>(random.Int(-31, largest_shift))});
    scaling.multipliers.push_back(random.Chance(0.1) ? 1 << 14 : fixed.multiplier);
    scaling.shifts.push_back(fixed.shift);
  }
  return scaling;
}

template <class T>
std::vector<T> RandomIntegers(Random& random, int64_t n, int bits) {
  std::vector<T> values(n);
  for (T& value : values) {
    const int64_t most = (int64_t{1} << random.Int(0, bits)) - 1;
    value = static_cast<T>(random.Int(-most - 1, most));
  }
  return values;
}

TEST(WideRowTest, EveryTargetScalesToTheBit) {
  int in_doubles = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const int64_t channels = random.Int(1, 40), channel = random.Int(0, channels - 1);
    WideScaling scaling = RandomWideScaling(random, channels, random.Chance(0.4));
    const int64_t rows = random.Int(1, 3), pitch = channels + random.Int(0, 3);
    const auto sums = RandomIntegers<int64_t>(random, rows * pitch, 46);
    const auto narrow_sums = RandomIntegers<int32_t>(random, rows * pitch, 31);
    const auto bias = RandomIntegers<int64_t>(random, channels, random.Pick({20, 40}));
    const auto narrow_bias = RandomIntegers<int32_t>(random, channels, 31);
    WideRows row{.scaling = &scaling,
                 .channel = channel,
                 .n = random.Int(1, channels - channel),
                 .rows = rows,
                 .sums_pitch = pitch,
                 .to_pitch = channels};
    random.Chance(0.5) ? row.sums = sums.data() : nullptr;
    row.narrow_sums = row.sums == nullptr ? narrow_sums.data() : nullptr;
    const int biased = static_cast<int>(random.Int(0, 2));
    if (biased == 1) row.bias = bias.data();
    if (biased == 2) row.narrow_bias = narrow_bias.data();
    if (random.Chance(0.5)) {
      std::vector<int64_t> constants(channels, 0);
      if (biased == 1) constants = bias;
      if (biased == 2) constants.assign(narrow_bias.begin(), narrow_bias.end());
      UseDoubles(constants, &scaling);
      in_doubles += !scaling.factors.empty();
    }
    std::vector<int16_t> expected(rows * channels, 77);
    row.to = expected.data();
    ScaleWideRows(row);
    for (Isa isa : RunnableIsas()) {
      const WideRowFunctions* functions = FindWideRowFunctions(isa);
      if (functions == nullptr) continue;
      std::vector<int16_t> actual(rows * channels, 77);
      row.to = actual.data();
      functions->scale(row);
      EXPECT_EQ(actual, expected) << IsaName(isa);
      if (row.sums != nullptr) continue;
      std::vector<int32_t> in_place = narrow_sums;
      WideRows over = row;
      over.narrow_sums = in_place.data();
      over.to = reinterpret_cast<int16_t*>(in_place.data());
      over.to_pitch = 2 * pitch;
      functions->scale(over);
      for (int64_t r = 0; r < rows; ++r) {
        EXPECT_EQ(std::memcmp(in_place.data() + r * pitch, expected.data() + r * channels,
                              row.n * sizeof(int16_t)),
                  0)
            << IsaName(isa) << " in place, row " << r;
      }
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(in_doubles, 9);
}

TEST(WideRowTest, EveryTargetAdds) {
  for (Isa isa : RunnableIsas()) {
    const WideRowFunctions* functions = FindWideRowFunctions(isa);
    if (functions == nullptr) continue;
    for (int64_t n = 0; n < 40; ++n) {
      Random random(n + 1);
      const auto sums = RandomIntegers<int32_t>(random, n, 31);
      const auto before = RandomIntegers<int64_t>(random, n + 1, 50);
      for (int shift : {0, 8}) {
        for (bool first : {false, true}) {
          std::vector<int64_t> totals = before, expected = before;
          for (int64_t i = 0; i < n; ++i) {
            expected[i] = (first ? 0 : before[i]) + int64_t{sums[i]} * (int64_t{1} << shift);
          }
          functions->add(sums.data(), n, shift, first, totals.data());
          EXPECT_EQ(totals, expected) << IsaName(isa) << " " << n << " " << shift << first;
        }
      }
    }
  }
}

}  // namespace
}  // namespace fuselite::kernels::testing
