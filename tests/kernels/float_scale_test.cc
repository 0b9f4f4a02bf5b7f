#include "kernels/tail/float_scale.h"

#include <algorithm>
#include <cmath>

#include "kernels/numbers/quantization.h"
#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {
namespace {

bool FusesMultiplyAdd() {
  return DetectIsa().has(Feature::kAvx2) || DetectIsa().has(Feature::kNeon);
}

// What the emitted code computes.
int32_t FloatResult(const FloatScaleQuery& q, const FloatScale& pair, int32_t unshifted) {
  int32_t sum = unshifted + pair.shift;
  if (sum == pair.down) --sum;
  if (sum == pair.up) ++sum;
  const auto x = static_cast<float>(sum);
  const float addend = q.addend_has_sign && unshifted < 0 ? -pair.addend : pair.addend;
  const auto rounded = static_cast<int32_t>(std::nearbyint(std::fmaf(x, pair.scale, addend)));
  return std::clamp(rounded + (q.addend_has_sign ? q.zero_point : 0), q.min, q.max);
}

int32_t IntegerResult(const FloatScaleQuery& q, int32_t sum) {
  return std::clamp(q.scale.Apply(sum) + q.zero_point, q.min, q.max);
}

FloatScaleQuery RandomQuery(Random& random) {
  FloatScaleQuery q;
  q.addend_has_sign = random.Chance(0.5);
  if (!q.addend_has_sign && random.Chance(0.5)) {
    q.scale.real = std::ldexp(random.Float(0.5f, 1.0f), random.Int(-12, 0));
    if (random.Chance(0.1)) q.scale.real = std::ldexp(1.0, random.Int(-12, 0));  // ties
  } else {
    q.scale.multiplier = static_cast<int32_t>(random.Int(1 << 30, INT32_MAX));
    if (random.Chance(0.05)) q.scale.multiplier = 1 << 30;
    if (random.Chance(0.02)) q.scale.multiplier = 0;
    q.scale.shift = static_cast<int32_t>(random.Int(-14, random.Chance(0.1) ? 3 : -1));
    if (random.Chance(0.3)) q.scale.multiplier &= ~0xFFF;  // places near to whole sums
  }
  const int32_t low = random.Chance(0.5) ? -128 : 0;
  q.zero_point =
      static_cast<int32_t>(random.Pick<int64_t>({low, low + 255, random.Int(low, low + 255)}));
  q.min = low;
  q.max =
      random.Chance(0.7) ? low + 255 : static_cast<int32_t>(random.Int(q.zero_point, low + 255));
  if (!q.addend_has_sign && q.scale.real == 0) q.min = q.zero_point;
  q.largest = random.Int(0, 1 << random.Int(1, 18));
  q.least = -random.Int(0, 1 << random.Int(1, 18));
  if (random.Chance(0.2)) {  // a large bias
    const int64_t bias = random.Int(-(1 << 20), 1 << 20);
    q.least += bias;
    q.largest += bias;
  }
  return q;
}

TEST(FloatScaleTest, PairsHoldAtEverySum) {
  int found = 0;
  constexpr int kCases = 400;
  for (uint64_t seed = 1; seed <= kCases; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const FloatScaleQuery q = RandomQuery(random);
    const auto pair = FindFloatScale(q, DetectIsa());
    if (!pair) continue;
    ++found;
    if (q.addend_has_sign) {
      ASSERT_TRUE(pair->addend >= 0 && pair->addend <= 0.5f);
    }
    for (int64_t sum = q.least; sum <= q.largest; ++sum) {
      const auto x = static_cast<int32_t>(sum);
      ASSERT_EQ(IntegerResult(q, x), FloatResult(q, *pair, x)) << sum;
    }
  }
  EXPECT_GT(found, FusesMultiplyAdd() ? kCases * 9 / 10 : -1);
}

// The least of the sums that occur whose result is `k` or more.
int64_t FirstSumOf(const FloatScaleQuery& q, int32_t k) {
  int64_t below = q.least, at = q.largest;
  while (at - below > 1) {
    const int64_t middle = (below + at) / 2;
    (IntegerResult(q, static_cast<int32_t>(middle)) >= k ? at : below) = middle;
  }
  return at;
}

// The ends, and the sums on both sides of every step, where a pair is wrong if it is anywhere.
std::vector<int64_t> SumsBesideSteps(const FloatScaleQuery& q) {
  std::vector<int64_t> sums = {q.least, q.largest};
  const int32_t first = IntegerResult(q, static_cast<int32_t>(q.least));
  const int32_t last = IntegerResult(q, static_cast<int32_t>(q.largest));
  for (int32_t k = first + 1; k <= last; ++k) {
    const int64_t at = FirstSumOf(q, k);
    for (int64_t sum = std::max(at - 3, q.least); sum <= std::min(at + 3, q.largest); ++sum) {
      sums.push_back(sum);
    }
  }
  return sums;
}

// Scales of one layer: with one clamp, and sums of their own.
std::vector<FloatScaleQuery> RandomLayer(Random& random) {
  std::vector<FloatScaleQuery> queries = {RandomQuery(random)};
  const int64_t channels = random.Int(1, kMostFloatScales);
  while (static_cast<int64_t>(queries.size()) < channels) {
    FloatScaleQuery q = RandomQuery(random);
    const FloatScaleQuery& first = queries[0];
    if ((q.scale.real > 0) != (first.scale.real > 0)) continue;
    q.zero_point = first.zero_point;
    q.min = first.min;
    q.max = first.max;
    q.addend_has_sign = first.addend_has_sign;
    queries.push_back(q);
  }
  return queries;
}

TEST(FloatScaleTest, PairsSideBySideHoldAtEverySum) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const std::vector<FloatScaleQuery> queries = RandomLayer(random);
    std::vector<std::optional<FloatScale>> pairs(queries.size());
    FindFloatScales(queries, DetectIsa(), FloatScaleEffort::kFewestMoves, pairs);
    for (size_t i = 0; i < queries.size(); ++i) {
      const FloatScaleQuery& q = queries[i];
      if (!pairs[i]) continue;
      if (q.addend_has_sign) {
        ASSERT_TRUE(pairs[i]->addend >= 0 && pairs[i]->addend <= 0.5f);
      }
      for (int64_t sum = q.least; sum <= q.largest; ++sum) {
        const auto x = static_cast<int32_t>(sum);
        ASSERT_EQ(IntegerResult(q, x), FloatResult(q, *pairs[i], x)) << i << " at " << sum;
      }
    }
  }
}

// What a vector's code moves for all pairs: nothing, sums down, or down and up.
int MovesOfVector(std::span<const std::optional<FloatScale>> pairs) {
  int moves = 0;
  for (const auto& pair : pairs) {
    if (pair) moves = std::max(moves, pair->moves_up() ? 2 : pair->moves_down() ? 1 : 0);
  }
  return moves;
}

// Scales so small that many need a look at each step, on every ISA with its own vectors.
TEST(FloatScaleTest, FindsSideBySideWhatIsFoundAlone) {
  for (const Isa isa : {Isa(Isa::kAvx2), DetectIsa()}) {
    if (!DetectIsa().has(Feature::kAvx2)) GTEST_SKIP() << "no fused multiplications";
    int narrow = 0, moved = 0, without = 0;
    for (uint64_t seed = 1; seed <= 300; ++seed) {
      Random random(seed);
      SCOPED_TRACE(random.Trace());
      std::vector<FloatScaleQuery> queries = RandomLayer(random);
      for (FloatScaleQuery& q : queries) {
        if (q.scale.real > 0) {
          q.scale.real = std::ldexp(random.Float(0.5f, 1.0f), random.Int(-12, -9));
        } else {
          q.scale = {.multiplier = static_cast<int32_t>(random.Int(1 << 30, INT32_MAX)),
                     .shift = static_cast<int32_t>(random.Int(-12, -9))};
        }
        q.largest = random.Int(1 << 16, 1 << 20);
        q.least = -random.Int(1 << 16, 1 << 20);
      }
      std::vector<std::optional<FloatScale>> pairs(queries.size()), alone(queries.size());
      const FloatScaleEffort effort = random.Pick(
          {FloatScaleEffort::kFewestMoves, FloatScaleEffort::kFirstPair, FloatScaleEffort::kPlain});
      const bool plain = effort == FloatScaleEffort::kPlain;
      FindFloatScales(queries, isa, effort, pairs);
      std::ranges::transform(queries, alone.begin(),
                             [&](const auto& q) { return FindFloatScale(q, isa); });
      const auto has_none = [](const auto& pair) { return !pair.has_value(); };
      if (std::ranges::any_of(pairs, has_none)) {
        ASSERT_TRUE(std::ranges::all_of(pairs, has_none));
        if (!plain) {
          ASSERT_TRUE(std::ranges::any_of(alone, has_none));
        }
        ++without;
        continue;
      }
      if (plain) {
        ASSERT_EQ(MovesOfVector(pairs), 0);
      } else if (effort == FloatScaleEffort::kFewestMoves &&
                 std::ranges::none_of(alone, has_none)) {
        ASSERT_LE(MovesOfVector(pairs), MovesOfVector(alone));
      }
      for (size_t i = 0; i < queries.size(); ++i) {
        const FloatScaleQuery& q = queries[i];
        moved += pairs[i]->moves_down() || pairs[i]->moves_up();
        narrow += alone[i] && pairs[i]->addend != alone[i]->addend;
        for (const int64_t sum : SumsBesideSteps(q)) {
          const auto x = static_cast<int32_t>(sum);
          ASSERT_EQ(IntegerResult(q, x), FloatResult(q, *pairs[i], x)) << i << " at " << sum;
        }
      }
    }
    EXPECT_GT(narrow, 100);
    EXPECT_GT(moved, 100);
    EXPECT_GT(without, 10);
  }
}

// Steps that are so long that floats take some of them a sum too early or too late.
TEST(FloatScaleTest, MovedSumsAreRight) {
  int found = 0, down = 0, up = 0;
  constexpr int kCases = 1500;
  for (uint64_t seed = 1; seed <= kCases; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    FloatScaleQuery q = RandomQuery(random);
    if (q.scale.real > 0) {
      q.scale.real = std::ldexp(random.Float(0.5f, 1.0f), random.Int(-13, -7));
    } else {
      q.scale.multiplier = static_cast<int32_t>(random.Int(1 << 30, INT32_MAX));
      q.scale.shift = static_cast<int32_t>(random.Int(-13, -7));
    }
    q.largest = random.Int(1 << 14, 1 << 24);
    q.least = -random.Int(1 << 14, 1 << 24);
    const auto pair = FindFloatScale(q, DetectIsa());
    if (!pair) continue;
    ++found;
    down += pair->moves_down();
    up += pair->moves_up();
    std::vector<int64_t> sums = SumsBesideSteps(q);
    for (int i = 0; i < 1000; ++i) sums.push_back(random.Int(q.least, q.largest));
    for (const int64_t sum : sums) {
      const auto x = static_cast<int32_t>(sum);
      ASSERT_EQ(IntegerResult(q, x), FloatResult(q, *pair, x)) << sum;
    }
  }
  if (!FusesMultiplyAdd()) GTEST_SKIP() << "no fused multiplications";
  EXPECT_GT(found, kCases * 2 / 3);
  EXPECT_GT(down, 50);
  EXPECT_GT(up, 10);
}

// The addends with which `scale` is right for every sum, from the first to the last, found by
// bisection of what each step asks of them; an addend with a sign from 0 to 1/2.
struct Addends {
  float first, last;
};
Addends AddendsOf(const FloatScaleQuery& q, float scale) {
  const float offset = q.addend_has_sign ? 0.0f : static_cast<float>(q.zero_point);
  Addends all{q.addend_has_sign ? 0.0f : offset - 1, q.addend_has_sign ? 0.5f : offset + 1};
  // Narrows `all` to where the sum's result is at least (at most) `k`.
  const auto narrow = [&](int64_t sum, int32_t k, bool at_least) {
    const auto holds = [&](float addend) {
      const int32_t result =
          FloatResult(q, {.scale = scale, .addend = addend}, static_cast<int32_t>(sum));
      return at_least ? result >= k : result <= k;
    };
    const bool rises = !q.addend_has_sign || sum >= 0;
    float good = rises == at_least ? all.last : all.first;
    float bad = rises == at_least ? all.first : all.last;
    if (holds(bad)) return;
    if (!holds(good)) {
      all = {1, 0};
      return;
    }
    for (float middle = good + (bad - good) / 2; middle != good && middle != bad;
         middle = good + (bad - good) / 2) {
      (holds(middle) ? good : bad) = middle;
    }
    (rises == at_least ? all.first : all.last) = good;
  };
  const int32_t from = IntegerResult(q, static_cast<int32_t>(q.least));
  const int32_t to = IntegerResult(q, static_cast<int32_t>(q.largest));
  for (int32_t k = from + 1; k <= to && all.first <= all.last; ++k) {
    const int64_t at = FirstSumOf(q, k);
    narrow(at, k, true);
    narrow(at - 1, k - 1, false);
  }
  return all;
}

TEST(FloatScaleTest, OverlooksNoAddendThatMovesNothing) {
  if (!FusesMultiplyAdd()) GTEST_SKIP() << "no fused multiplications";
  int narrow = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    FloatScaleQuery q = RandomQuery(random);
    q.scale = {.multiplier = static_cast<int32_t>(random.Int(1 << 30, INT32_MAX)),
               .shift = static_cast<int32_t>(random.Int(-13, -7))};
    q.min = q.addend_has_sign ? q.min : q.zero_point;
    q.largest = random.Int(1 << 14, 1 << 22);
    q.least = -random.Int(1 << 14, 1 << 22);
    const Addends addends = AddendsOf(q, static_cast<float>(q.scale.value()));
    // Bounds are exact up to 2^-24.
    if (addends.last - addends.first < 0x1p-22f) continue;
    narrow += addends.last - addends.first < 0x1p-16f;
    const auto pair = FindFloatScale(q, DetectIsa());
    ASSERT_TRUE(pair.has_value());
    ASSERT_FALSE(pair->moves_down() || pair->moves_up());
  }
  EXPECT_GT(narrow, 50);
}

// Sums far beyond what a float holds, shifts far beyond what sums reach.
TEST(FloatScaleTest, ExtremeSumsAreRight) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    FloatScaleQuery q;
    q.scale.multiplier = static_cast<int32_t>(random.Int(1 << 30, INT32_MAX));
    q.scale.shift = -static_cast<int32_t>(random.Int(0, 31));
    q.addend_has_sign = random.Chance(0.5);
    q.zero_point = static_cast<int32_t>(random.Int(-128, 127));
    q.min = q.addend_has_sign ? -128 : q.zero_point;
    q.max = 127;
    const int64_t center = random.Int(INT32_MIN + 1000, INT32_MAX - 1000);
    q.least = center - random.Int(0, 1000);
    q.largest = center + random.Int(0, 1000);
    const auto pair = FindFloatScale(q, DetectIsa());
    if (!pair) continue;
    ++found;
    for (int64_t sum = q.least; sum <= q.largest; ++sum) {
      const auto x = static_cast<int32_t>(sum);
      ASSERT_EQ(IntegerResult(q, x), FloatResult(q, *pair, x)) << sum;
    }
  }
  EXPECT_GT(found, FusesMultiplyAdd() ? 1300 : -1);
}

// A dead channel has a bias that is all that counts: its scale may be anything.
TEST(FloatScaleTest, OneResultNeedsNoScale) {
  FloatScaleQuery q{.scale = {.multiplier = 1320764593, .shift = -27, .real = 0},
                    .least = 1073741760 - 2088960,
                    .largest = 1073741760 + 2088960,
                    .zero_point = -128,
                    .min = -128,
                    .max = 127};
  const int32_t result = IntegerResult(q, static_cast<int32_t>(q.least));
  ASSERT_GT(result, q.zero_point);
  ASSERT_EQ(result, IntegerResult(q, static_cast<int32_t>(q.largest)));
  const auto pair = FindFloatScale(q, DetectIsa());
  ASSERT_EQ(pair.has_value(), FusesMultiplyAdd());
  if (pair) {
    EXPECT_EQ(FloatResult(q, *pair, 1073741760), result);
  }
  q.addend_has_sign = true;  // which rounds to nothing but zero
  EXPECT_FALSE(FindFloatScale(q, DetectIsa()).has_value());
}

}  // namespace
}  // namespace fuselite::kernels::testing
