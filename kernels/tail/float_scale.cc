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

inline constexpr int kMaxSteps = 256, kMostLanes = 16;
// Every sum up to here is a float.
inline constexpr double kExactInFloat = 0x1p24;

// Steps above zero, and as far below it.
struct Steps {
  StepPlaces places{};
  int count = 0;
  bool certain = true;  // of all sums
  AddendRange window{};
  // How many sums stand below; more than `count` count as steps, too.
  int placed = 0;
  // The first sums of the steps, and the sums one before.
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

using Floats = hn::CappedTag<float, kMostLanes>;
using Words = hn::RebindToSigned<Floats>;

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
  const auto distance = static_cast<uint32_t>(Whole(steps->places.distance));
  auto place = FirstFractions(static_cast<uint32_t>(Whole(steps->places.first)), distance);
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
  const double base = 0.5 - steps->places.first * scale;
  const double drift = (1 - steps->places.distance * scale) * (i - 1);
  const double inexact = 0x1p-23 * scale;  // of places: up to 2^-32 for each step
  steps->window = {base + std::max(drift, 0.0) - (1 - to) * scale + inexact,
                   base + std::min(drift, 0.0) + from * scale - inexact};
}

// Writes the sums that CountSteps has counted, in single floats.
void PlaceCounted(Steps* steps) {
  const Words d;
  const Floats df;
  const auto lanes = static_cast<int>(hn::Lanes(d));
  const uint64_t first = Whole(steps->places.first), distance = Whole(steps->places.distance);
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

bool HoldsAtSteps(const Steps& steps, const FloatCheck& check) {
  const Floats df;
  const auto scale = hn::Set(df, check.pair.scale), addend = hn::Set(df, check.pair.addend);
  const auto offset = hn::Set(df, check.offset);
  auto step = hn::Iota(df, 1);
  for (int i = 0; i < steps.placed; i += static_cast<int>(hn::Lanes(df))) {
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
    if (!hn::AllTrue(df, holds)) return false;
    step = hn::Add(step, hn::Set(df, static_cast<float>(hn::Lanes(df))));
  }
  return true;
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

constexpr auto kCountSteps = FUSELITE_SIMD_TABLE(CountSteps);
constexpr auto kPlaceCounted = FUSELITE_SIMD_TABLE(PlaceCounted);
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

StepPlaces PlacesOf(const SumScale& scale) {
  if (scale.real > 0) return {.first = 0.5 / scale.real, .distance = 1 / scale.real};
  const int right = std::max(-scale.shift, 0), left = std::max(scale.shift, 0);
  const double unit = PowerOfTwo(30 - left) / scale.multiplier;
  return {.first = (PowerOfTwo(right) - (right > 0 ? 1 : 0)) * unit,
          .distance = PowerOfTwo(right + 1) * unit};
}

// In windows that are narrower hardly any pair was found.
constexpr double kHopeless = 0x1p-23;

// Tries the nearest scale with the middle of the addends that fit it, on the steps that lie as far
// below zero as above.
class QuickSearch {
 public:
  QuickSearch(const FloatScaleQuery& query, Isa isa) : query_(query), isa_(isa) {}

  std::optional<FloatScale> Run() {
    const double value = query_.scale.value();
    const int32_t zero_point = query_.zero_point;
    const int above = Reached(value, query_.largest, query_.max - zero_point);
    const int below = Reached(value, -query_.least, zero_point - query_.min);
    steps_.count = std::max(above, below);
    const double farthest = static_cast<double>(std::max(query_.largest, -query_.least)) * value;
    // Nothing is reached but zero: what moves steps towards it is at most 1/4 of one.
    if (farthest < 0.125 || steps_.count == 0) return FloatScale{0, Offset()};
    if (farthest >= kMostSteps) return std::nullopt;
    steps_.places = PlacesOf(query_.scale);
    if (steps_.places.Of(steps_.count + kMostLanes + 1) >= kExactInFloat) return std::nullopt;
    both_sides_ = !query_.addend_has_sign && below > 0;
    const auto nearest = static_cast<float>(value);
    kCountSteps.For(isa_)(nearest, &steps_);
    return steps_.certain ? WithScale(nearest, steps_.window) : std::nullopt;
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

  std::optional<FloatScale> WithScale(float scale, AddendRange window) {
    if (both_sides_) {
      window = {std::max(window.low, -window.high), std::min(window.high, -window.low)};
    }
    if (query_.addend_has_sign) {
      window = {std::max(window.low, 0.0), std::min(window.high, 0.5)};
    }
    const double width = window.high - window.low;
    if (width < kHopeless) return std::nullopt;
    const double wanted = Offset() + window.low + 0.5 * width;
    const FloatScale pair{scale, static_cast<float>(wanted)};
    if (0.5 * width - std::abs(pair.addend - wanted) > Rounding()) return pair;
    kPlaceCounted.For(isa_)(&steps_);
    if (kHoldsAtSteps.For(isa_)(steps_, {pair, Offset(), both_sides_})) return pair;
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
  const auto pair = QuickSearch(query, isa).Run();
  return pair ? pair : SearchFloatScale(query, PlacesOf(query.scale), isa);
}

}  // namespace fuselite::kernels
#endif  // HWY_ONCE
