#include "kernels/tail/float_scale.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "kernels/quantization.h"
#include "kernels/tail/step_search.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tail/float_scale.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "runtime/float_state.h"
#include "runtime/isa.h"

#ifndef FUSELITE_KERNELS_TAIL_FLOAT_SCALE_ONCE_
#define FUSELITE_KERNELS_TAIL_FLOAT_SCALE_ONCE_
namespace fuselite::kernels {

// Steps are so near to a whole sum that doubles do not tell on which side.
inline constexpr double kUncertain = 0x1p-16;
inline constexpr int kMaxSteps = 256, kMostLanes = 16;
// Every sum up to here is a float.
inline constexpr double kExactInFloat = 0x1p24;

// Which addends, the zero point left out, put every step where it belongs: between the two, up to
// roundings.
struct AddendWindow {
  double low, high;
};

// Step k, counted from 1: sums of at least sums[k - 1], the least whole number from first + (k - 1)
// distance on, are on it, or as far below zero.
struct Steps {
  double first = 0, distance = 1;
  int count = 0;
  // How many sums stand in single floats; more than `count` count as steps, too. 0: none yet, and
  // all are below kExactInFloat.
  int placed = 0;
  bool certain = true;  // of all sums
  AddendWindow window;  // with the scale that they were placed with
  alignas(64) std::array<double, kMaxSteps + kMostLanes> sums;
  // The same in single floats, and the sums one before.
  alignas(64) std::array<float, kMaxSteps + kMostLanes> at, before;
};

struct FloatCheck {
  FloatScale pair;
  float offset = 0;         // of the results
  bool both_sides = false;  // steps below zero count, and the addend has no sign
};

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::CappedTag<double, kMostLanes / 2>;
using Double = hn::Vec<Doubles>;
using Floats = hn::CappedTag<float, kMostLanes>;
using Words = hn::RebindToSigned<Floats>;

HWY_INLINE double Least(Double v) { return hn::GetLane(hn::MinOfLanes(Doubles(), v)); }
HWY_INLINE double Most(Double v) { return hn::GetLane(hn::MaxOfLanes(Doubles(), v)); }

// f(index, numbers of the steps from index + 1 on), the last step repeated up to a whole vector,
// until it gives false; whether it never did.
template <class D, class F>
HWY_INLINE bool ForSteps(D d, int count, F f) {
  using T = hn::TFromD<D>;
  const auto last = hn::Set(d, static_cast<T>(count));
  const auto lanes = hn::Set(d, static_cast<T>(hn::Lanes(d)));
  auto k = hn::Iota(d, 1);
  for (int i = 0; i < count; i += static_cast<int>(hn::Lanes(d))) {
    if (!f(i, hn::Min(k, last))) return false;
    k = hn::Add(k, lanes);
  }
  return true;
}

// Places of steps, in whole numbers of 2^-32 that wrap around: twice as many in a vector as
// doubles. The sign bit is flipped, so that they compare.
hn::Vec<Words> FirstFractions(uint32_t first, uint32_t distance) {
  const Words d;
  const auto k = hn::Iota(d, 0);
  const auto wrapped = hn::Mul(k, hn::Set(d, static_cast<int32_t>(distance)));
  return hn::Add(wrapped, hn::Set(d, static_cast<int32_t>(first ^ 0x80000000u)));
}

uint64_t Whole(double place) { return static_cast<uint64_t>(static_cast<int64_t>(place * 0x1p32)); }

// Gives as the window with `scale` what is surely within it. Precondition: the steps and a vector
// more are below kExactInFloat.
void CountSteps(double scale, Steps* steps) {
  const Words d;
  const auto lanes = static_cast<int>(hn::Lanes(d));
  const auto distance = static_cast<uint32_t>(Whole(steps->distance));
  auto place = FirstFractions(static_cast<uint32_t>(Whole(steps->first)), distance);
  const auto step = hn::Set(d, static_cast<int32_t>(distance * static_cast<uint32_t>(lanes)));
  auto least = place, most = place;
  int i = lanes;
  for (; i < steps->count; i += lanes) {
    place = hn::Add(place, step);
    least = hn::Min(least, place);
    most = hn::Max(most, place);
  }
  // The least and the greatest fraction of a place.
  const double from = (hn::GetLane(hn::MinOfLanes(d, least)) + 0x1p31) * 0x1p-32;
  const double to = (hn::GetLane(hn::MaxOfLanes(d, most)) + 0x1p31) * 0x1p-32;
  steps->certain = from > kUncertain && to < 1 - kUncertain;
  // What reaches k - 1/2 at the first sum of step k is, with the place's fraction f,
  //   1/2 - first scale + (k - 1) (1 - distance scale) - (1 - f) scale.
  const double base = 0.5 - steps->first * scale;
  const double drift = (1 - steps->distance * scale) * (i - 1);
  const double inexact = 0x1p-23 * scale;  // of places: up to 2^-32 for each step
  steps->window = {base + std::max(drift, 0.0) - (1 - to) * scale + inexact,
                   base + std::min(drift, 0.0) + from * scale - inexact};
}

// Writes the sums that CountSteps has counted, in single floats.
void PlaceCounted(Steps* steps) {
  const Words d;
  const Floats df;
  const auto lanes = static_cast<int>(hn::Lanes(d));
  const uint64_t first = Whole(steps->first), distance = Whole(steps->distance);
  alignas(64) std::array<int32_t, kMostLanes> high_lanes;
  for (int i = 0; i < lanes; ++i) {
    high_lanes[i] = static_cast<int32_t>((first + static_cast<uint64_t>(i) * distance) >> 32);
  }
  auto low = FirstFractions(static_cast<uint32_t>(first), static_cast<uint32_t>(distance));
  auto high = hn::Load(d, high_lanes.data());
  const uint64_t vector = distance * static_cast<uint64_t>(lanes);
  const auto low_step = hn::Set(d, static_cast<int32_t>(static_cast<uint32_t>(vector)));
  const auto high_step = hn::Set(d, static_cast<int32_t>(vector >> 32));
  const auto one = hn::Set(df, 1.0f);
  int i = 0;
  for (; i < steps->count; i += lanes) {
    const auto before = hn::ConvertTo(df, high);
    hn::Store(before, df, steps->before.data() + i);
    hn::Store(hn::Add(before, one), df, steps->at.data() + i);
    const auto next = hn::Add(low, low_step);
    const auto carry = hn::VecFromMask(d, hn::Lt(next, low));  // -1
    high = hn::Sub(hn::Add(high, high_step), carry);
    low = next;
  }
  steps->placed = i;
}

// Writes the sums and the window of addends with `scale`.
void PlaceSteps(double scale, Steps* steps) {
  const Doubles d;
  const auto distance = hn::Set(d, steps->distance);
  const auto before = hn::Set(d, steps->first - steps->distance);
  const auto s = hn::Set(d, scale), half = hn::Set(d, 0.5);
  auto nearest = hn::Set(d, 1.0), furthest = hn::Zero(d);
  auto low = hn::Set(d, -1e300), high = hn::Set(d, 1e300);
  ForSteps(d, steps->count, [&](int i, Double k) HWY_ATTR {
    const auto at = hn::MulAdd(k, distance, before);
    const auto sum = hn::Ceil(at);
    const auto beyond = hn::Sub(sum, at);
    nearest = hn::Min(nearest, beyond);
    furthest = hn::Max(furthest, beyond);
    hn::Store(sum, d, steps->sums.data() + i);
    const auto addend = hn::NegMulAdd(sum, s, hn::Sub(k, half));
    low = hn::Max(low, addend);
    high = hn::Min(high, addend);
    return true;
  });
  steps->certain = Least(nearest) > kUncertain && Most(furthest) < 1 - kUncertain;
  steps->window = {Most(low), Least(high) + scale};
}

AddendWindow FindWindow(const Steps& steps, double scale) {
  const Doubles d;
  const auto s = hn::Set(d, scale), half = hn::Set(d, 0.5);
  auto low = hn::Set(d, -1e300), high = hn::Set(d, 1e300);
  ForSteps(d, steps.count, [&](int i, Double k) HWY_ATTR {
    // What reaches k - 1/2 at the step's first sum.
    const auto addend = hn::NegMulAdd(hn::Load(d, steps.sums.data() + i), s, hn::Sub(k, half));
    low = hn::Max(low, addend);
    high = hn::Min(high, addend);
    return true;
  });
  return {Most(low), Least(high) + scale};
}

// The sums as single floats.
void RoundSums(Steps* steps) {
  const Doubles d;
  const hn::Rebind<float, Doubles> df;
  const auto one = hn::Set(d, 1.0);
  for (int i = 0; i < steps->count; i += static_cast<int>(hn::Lanes(d))) {
    const auto sum = hn::Load(d, steps->sums.data() + i);
    hn::Store(hn::DemoteTo(df, sum), df, steps->at.data() + i);
    hn::Store(hn::DemoteTo(df, hn::Sub(sum, one)), df, steps->before.data() + i);
  }
}

bool HoldsAtSteps(const Steps& steps, const FloatCheck& check) {
  const Floats df;
  const auto scale = hn::Set(df, check.pair.scale), addend = hn::Set(df, check.pair.addend);
  const auto offset = hn::Set(df, check.offset);
  return ForSteps(df, steps.placed, [&](int i, hn::Vec<Floats> step) HWY_ATTR {
    const auto at = hn::Load(df, steps.at.data() + i);
    const auto before = hn::Load(df, steps.before.data() + i);
    const auto up = hn::Add(offset, step);
    auto holds = hn::And(hn::Ge(hn::Round(hn::MulAdd(at, scale, addend)), up),
                         hn::Lt(hn::Round(hn::MulAdd(before, scale, addend)), up));
    if (check.both_sides) {
      const auto down = hn::Sub(offset, step);
      holds = hn::And(holds, hn::Le(hn::Round(hn::NegMulAdd(at, scale, addend)), down));
      holds = hn::And(holds, hn::Gt(hn::Round(hn::NegMulAdd(before, scale, addend)), down));
    }
    return hn::AllTrue(df, holds);
  });
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

constexpr auto kCountSteps = FUSELITE_SIMD_TABLE(CountSteps);
constexpr auto kPlaceCounted = FUSELITE_SIMD_TABLE(PlaceCounted);
constexpr auto kRoundSums = FUSELITE_SIMD_TABLE(RoundSums);
constexpr auto kPlaceSteps = FUSELITE_SIMD_TABLE(PlaceSteps);
constexpr auto kFindWindow = FUSELITE_SIMD_TABLE(FindWindow);
constexpr auto kHoldsAtSteps = FUSELITE_SIMD_TABLE(HoldsAtSteps);

bool FusesMultiplyAdd(Isa isa) { return isa.has(Feature::kAvx2) || isa.has(Feature::kNeon); }

// 2^exponent, where that is neither too large for a double nor denormal: ldexp is a call, and four
// of them were an eighth of the search.
double PowerOfTwo(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(1023 + exponent) << 52);
}

// The steps that sums up to `largest` reach, and the next one, of `steps`.
int Reached(double scale, int64_t largest, int32_t steps) {
  if (steps <= 0 || largest <= 0) return 0;
  const double reached = std::floor(static_cast<double>(largest) * scale) + 2;
  return static_cast<int>(std::min<double>(reached, steps));
}

void FindDistance(const SumScale& scale, Steps* steps) {
  if (scale.real > 0) {
    steps->distance = 1 / scale.real;
    steps->first = 0.5 * steps->distance;
    return;
  }
  const int right = std::max(-scale.shift, 0), left = std::max(scale.shift, 0);
  const double unit = PowerOfTwo(30 - left) / scale.multiplier;
  steps->distance = PowerOfTwo(right + 1) * unit;
  steps->first = (PowerOfTwo(right) - (right > 0 ? 1 : 0)) * unit;
}

// The least of the sums around `near` on step k, or as far below zero. Among all of 32 bits.
int64_t FirstOnStep(const SumScale& scale, double near, int k, bool below) {
  int64_t sum = std::llround(near) - 1;
  for (; sum <= std::llround(near); ++sum) {
    const auto x = static_cast<int32_t>(below ? -sum : sum);
    if ((below ? -scale.Apply(x) : scale.Apply(x)) >= k) break;
  }
  return sum;
}

// Corrects the sums of which doubles are not sure. False where a step below zero is at another
// distance from it than the one above.
bool SettleSteps(const SumScale& scale, int above, int below, Steps* steps) {
  for (int k = 1; k <= steps->count; ++k) {
    const double at = steps->first + (k - 1) * steps->distance;
    if (at > INT32_MAX - 2) break;  // no sum is there
    if (std::abs(at - std::round(at)) > kUncertain) continue;
    const int64_t up = FirstOnStep(scale, at, k, false), down = FirstOnStep(scale, at, k, true);
    if (up != down && k <= above && k <= below) return false;
    steps->sums[k - 1] = static_cast<double>(k <= above ? up : down);
  }
  return true;
}

// In windows that are narrower hardly any pair was found.
constexpr double kHopeless = 0x1p-23;

class FloatScaleSearch {
 public:
  FloatScaleSearch(const FloatScaleQuery& query, Isa isa) : query_(query), isa_(isa) {}

  std::optional<FloatScale> Run() {
    const double value = query_.scale.value();
    const int32_t zero_point = query_.zero_point;
    const int above = Reached(value, query_.largest, query_.max - zero_point);
    const int below = Reached(value, -query_.least, zero_point - query_.min);
    steps_.count = std::max(above, below);
    const double farthest = static_cast<double>(std::max(query_.largest, -query_.least)) * value;
    // Nothing is reached but zero: what moves steps towards it is at most 1/4 of one.
    if (farthest < 0.125 || steps_.count == 0) return FloatScale{0, Offset()};
    if (farthest >= 0x1p30) return std::nullopt;
    FindDistance(query_.scale, &steps_);
    both_sides_ = !query_.addend_has_sign && below > 0;
    const auto nearest = static_cast<float>(value);
    if (steps_.first + (steps_.count + kMostLanes) * steps_.distance < kExactInFloat) {
      kCountSteps.For(isa_)(nearest, &steps_);
      const auto pair = steps_.certain ? WithScale(nearest, steps_.window, {0.5}) : std::nullopt;
      if (pair) return pair;
    }
    kPlaceSteps.For(isa_)(nearest, &steps_);
    if (!steps_.certain) {
      if (!SettleSteps(query_.scale, above, below, &steps_)) return std::nullopt;
      steps_.window = kFindWindow.For(isa_)(steps_, nearest);
    }
    kRoundSums.For(isa_)(&steps_);
    steps_.placed = steps_.count;
    if (const auto pair = WithScale(nearest, steps_.window, {0.5, 0.25, 0.75})) return pair;
    for (const float scale : {std::nextafterf(nearest, 0), std::nextafterf(nearest, INFINITY)}) {
      const AddendWindow window = kFindWindow.For(isa_)(steps_, scale);
      if (const auto pair = WithScale(scale, window, {0.5})) return pair;
    }
    return std::nullopt;
  }

 private:
  float Offset() const {
    return query_.addend_has_sign ? 0.0f : static_cast<float>(query_.zero_point);
  }

  // A window that is this much wider on both sides than a point needs no check: results are rounded
  // to 24 bits.
  double Rounding() const {
    const int64_t offset = query_.addend_has_sign ? query_.zero_point : 0;
    const int64_t largest = std::max(query_.max - offset, offset - query_.min);
    return largest <= 128 ? 0x1p-18 : 0x1p-17;
  }

  // Addends at these parts of the window.
  std::optional<FloatScale> WithScale(float scale, AddendWindow window,
                                      std::initializer_list<double> parts) {
    if (both_sides_) {
      window = {std::max(window.low, -window.high), std::min(window.high, -window.low)};
    }
    if (query_.addend_has_sign) {
      window = {std::max(window.low, 0.0), std::min(window.high, 0.5)};
    }
    const double width = window.high - window.low;
    if (width < kHopeless) return std::nullopt;
    for (const double part : parts) {
      const double wanted = Offset() + window.low + part * width;
      const FloatScale pair{scale, static_cast<float>(wanted)};
      const double room = 0.5 * width - std::abs(pair.addend - wanted);
      const bool counted = steps_.placed == 0;
      if (part == 0.5 && room > Rounding() &&
          (counted || steps_.at[steps_.count - 1] < kExactInFloat)) {
        return pair;
      }
      if (counted) kPlaceCounted.For(isa_)(&steps_);
      if (kHoldsAtSteps.For(isa_)(steps_, {pair, Offset(), both_sides_})) return pair;
    }
    return std::nullopt;
  }

  const FloatScaleQuery& query_;
  const Isa isa_;
  Steps steps_;
  bool both_sides_ = false;
};

}  // namespace

double SumScale::value() const { return real > 0 ? real : multiplier * PowerOfTwo(shift - 31); }

int32_t SumScale::Apply(int32_t sum) const {
  if (real > 0) return static_cast<int32_t>(std::round(sum * real));
  return MultiplyByQuantizedMultiplier(sum, multiplier, shift);
}

std::optional<FloatScale> FindFloatScale(const FloatScaleQuery& query, Isa isa) {
  if (!FusesMultiplyAdd(isa)) return std::nullopt;
  const DefaultFloatState state;
  const auto pair = FloatScaleSearch(query, isa).Run();
  return pair ? pair : SearchFloatScale(query, isa);
}

}  // namespace fuselite::kernels
#endif  // HWY_ONCE
