#include "kernels/tail/lane_bounds.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tail/lane_bounds.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/tail/scale_query.h"

// The numbers of steps as floats, from 0 on: counting in floats would convert and spread each.
#ifndef FUSELITE_KERNELS_TAIL_STEP_NUMBERS
#define FUSELITE_KERNELS_TAIL_STEP_NUMBERS
namespace fuselite::kernels {
inline constexpr std::array<float, kMostSteps> kStepNumbers = [] {
  std::array<float, kMostSteps> numbers{};
  for (size_t k = 0; k < numbers.size(); ++k) numbers[k] = static_cast<float>(k);
  return numbers;
}();
}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, kStepLanes>;
using Words = hn::RebindToSigned<Floats>;
using Doubles = hn::CappedTag<double, kStepLanes / 2>;

// The fraction of a place in 2^-32, its sign bit flipped.
hn::Vec<hn::Rebind<int32_t, Doubles>> FlippedFraction(hn::Vec<Doubles> place) {
  const Doubles d;
  const auto fraction = hn::Sub(place, hn::Floor(place));
  const auto whole = hn::Floor(hn::Mul(fraction, hn::Set(d, 0x1p32)));
  return hn::DemoteTo(hn::Rebind<int32_t, Doubles>(), hn::Sub(whole, hn::Set(d, 0x1p31)));
}

// Vector form of Reached().
hn::Vec<Doubles> ReachedByLanes(hn::Vec<Doubles> scale, hn::Vec<Doubles> largest, int steps) {
  const Doubles d;
  if (steps <= 0) return hn::Zero(d);
  const auto most = hn::Set(d, static_cast<double>(steps));
  const auto reached = hn::Trunc(hn::Min(hn::Mul(largest, scale), most));
  return hn::IfThenElseZero(hn::Gt(largest, hn::Zero(d)),
                            hn::Min(hn::Add(reached, hn::Set(d, 2.0)), most));
}

// Vector form of ShiftOf().
hn::Vec<Doubles> ShiftOfLanes(hn::Vec<Doubles> shift, hn::Vec<Doubles> reach,
                              hn::Vec<Doubles> least, hn::Vec<Doubles> largest) {
  const Doubles d;
  const auto size = hn::Abs(shift);
  const auto whole = hn::Trunc(hn::Add(shift, hn::CopySign(hn::Set(d, 0.5), shift)));
  const auto holds = [&](hn::Vec<Doubles> low, hn::Vec<Doubles> high)
                         HWY_ATTR { return hn::Le(low, high); };
  auto ok = hn::And(holds(size, hn::Set(d, kMostShifted)),
                    hn::Lt(hn::Add(reach, size), hn::Set(d, kExactInFloat - 1)));
  ok = hn::And(ok, holds(hn::Set(d, -0x1p31), hn::Add(least, whole)));
  ok = hn::And(ok, hn::Lt(hn::Add(largest, whole), hn::Set(d, 0x1p31)));
  return hn::IfThenElseZero(ok, whole);
}

void VectorPlaceLanes(int above, int below, float offset, QueryLanes* queries,
                      ScaleLanes* nearest) {
  const Doubles d;
  const hn::Rebind<float, Doubles> df;
  const hn::Rebind<int32_t, Doubles> dw;
  const auto set = [](double x) HWY_ATTR { return hn::Set(Doubles(), x); };
  for (size_t at = 0; at < kStepLanes; at += hn::Lanes(d)) {
    const auto scale = hn::Load(d, queries->scale.data() + at);
    const auto least = hn::Load(d, queries->least.data() + at);
    const auto largest = hn::Load(d, queries->largest.data() + at);
    const auto distance = hn::Div(set(1), scale);
    const auto first = hn::Mul(distance, hn::Load(d, queries->first_part.data() + at));
    const auto up = ReachedByLanes(scale, largest, above);
    const auto down = ReachedByLanes(scale, hn::Neg(least), below);
    const auto reach = hn::MulAdd(hn::Max(up, down), distance, first);
    const auto farthest = hn::Mul(hn::Max(largest, hn::Neg(least)), scale);
    auto has = hn::And(hn::Ge(farthest, set(kLeastReached)), hn::Lt(farthest, set(kMostReached)));
    has = hn::And(has, hn::Lt(reach, set(kExactInFloat)));
    const auto shift = ShiftOfLanes(hn::Mul(set(offset), distance), reach, least, largest);
    hn::Store(first, d, queries->first.data() + at);
    hn::Store(distance, d, queries->distance.data() + at);
    hn::Store(hn::IfThenElseZero(has, up), d, queries->above.data() + at);
    hn::Store(hn::IfThenElseZero(has, down), d, queries->below.data() + at);
    hn::Store(shift, d, queries->shift.data() + at);
    const auto as_float = hn::DemoteTo(df, scale);
    const auto tried = hn::PromoteTo(d, as_float);
    hn::Store(as_float, df, nearest->scale.data() + at);
    const auto start = hn::NegMulAdd(first, tried, set(0.5));
    const auto drift = hn::NegMulAdd(distance, tried, set(1));
    hn::Store(hn::DemoteTo(df, start), df, nearest->start.data() + at);
    hn::Store(hn::DemoteTo(df, drift), df, nearest->drift.data() + at);
    hn::Store(FlippedFraction(first), dw, nearest->fraction.data() + at);
    hn::Store(hn::Xor(FlippedFraction(distance), hn::Set(dw, INT32_MIN)), dw,
              nearest->distance.data() + at);
  }
}

void VectorHalfUnits(int count, float offset, float* half_units) {
  const Floats d;
  const Words dw;
  const auto exponent = hn::BitCast(d, hn::Set(dw, 0x7F800000));
  auto k = hn::Iota(d, 1.0f);
  auto parity = hn::Iota(dw, static_cast<int32_t>(offset) + 2);
  for (int i = 0; i < count; i += static_cast<int>(hn::Lanes(d))) {
    const auto middle = hn::Add(k, hn::Set(d, offset - 0.5f));
    const auto sign = hn::BitCast(d, hn::ShiftLeft<31>(parity));
    const auto unit = hn::Or(hn::Set(d, 0x1p-24f), sign);
    hn::Store(hn::Mul(hn::And(middle, exponent), unit), d, half_units + i);
    k = hn::Add(k, hn::Set(d, static_cast<float>(hn::Lanes(d))));
    parity = hn::Add(parity, hn::Set(dw, static_cast<int32_t>(hn::Lanes(d))));
  }
}

// With a place's fraction f, what the first sum of step k is below k - 1/2 is
//   start + (k - 1) drift + f scale - scale,
// and what the sum before it is, scale more. The fractions' sign bit is flipped, so that they
// compare and become floats; kMargin is added to them, which `start` takes back.
void VectorBoundsOfLanes(const ScaleLanes& lanes, size_t count, int steps, const float* half_units,
                         LaneBounds* bounds) {
  const Floats d;
  const Words dw;
  const auto margin = hn::Set(dw, LaneBounds::kMargin);
  for (size_t at = 0; at < count; at += hn::Lanes(d)) {
    const auto scale = hn::Load(d, lanes.scale.data() + at);
    const auto unit = hn::Mul(scale, hn::Set(d, 0x1p-32f));
    const auto drift = hn::Load(d, lanes.drift.data() + at);
    const auto middle = hn::Set(d, static_cast<float>(0.5 - kUncertain));
    const auto start = hn::MulAdd(middle, scale, hn::Load(d, lanes.start.data() + at));
    const auto distance = hn::Load(dw, lanes.distance.data() + at);
    auto fraction = hn::Add(hn::Load(dw, lanes.fraction.data() + at), margin), least = fraction;
    auto low = hn::Set(d, -FLT_MAX), high = hn::Set(d, FLT_MAX);
    for (int k = 0; k < steps; ++k) {
      const auto line = hn::MulAdd(hn::Set(d, kStepNumbers[k]), drift, start);
      const auto before = hn::MulAdd(hn::ConvertTo(d, fraction), unit, line);
      const auto bound = hn::Add(before, hn::Set(d, half_units[k]));
      low = hn::Max(low, bound);
      high = hn::Min(high, bound);
      least = hn::Min(least, fraction);
      fraction = hn::Add(fraction, distance);
    }
    hn::Store(hn::Sub(low, scale), d, bounds->low.data() + at);
    hn::Store(high, d, bounds->high.data() + at);
    hn::Store(least, dw, bounds->least.data() + at);
  }
}

// The bounds of half a vector of lanes, those below zero as they are seen from above.
struct DoubleBounds {
  hn::Vec<Doubles> low, high;
  hn::Mask<Doubles> certain;

  void Narrow(hn::Vec<Doubles> other_low, hn::Vec<Doubles> other_high) {
    low = hn::Max(low, other_low);
    high = hn::Min(high, other_high);
  }
  void Add(const LaneBounds* side, size_t at, bool below_zero) {
    if (side == nullptr) return;
    const Doubles d;
    const auto of = [&](const auto& lanes) HWY_ATTR {
      using T = std::remove_cvref_t<decltype(lanes[0])>;
      return hn::PromoteTo(d, hn::Load(hn::Rebind<T, Doubles>(), lanes.data() + at));
    };
    const auto side_low = of(side->low), side_high = of(side->high);
    below_zero ? Narrow(hn::Neg(side_high), hn::Neg(side_low)) : Narrow(side_low, side_high);
    const auto least_certain = hn::Set(d, static_cast<double>(LaneBounds::kLeastCertain));
    certain = hn::And(certain, hn::Gt(of(side->least), least_certain));
  }
};

void VectorPairsOfLanes(const QueryLanes& queries, const ScaleLanes& nearest, size_t count,
                        const LaneBounds* above, const LaneBounds* below, float offset,
                        bool has_sign, LanePairs* pairs) {
  const Doubles d;
  const hn::Rebind<float, Doubles> df;
  pairs->found = 0;
  for (size_t at = 0; at < count; at += hn::Lanes(d)) {
    const auto steps =
        hn::Add(hn::Load(d, queries.above.data() + at), hn::Load(d, queries.below.data() + at));
    DoubleBounds bounds{hn::Set(d, has_sign ? 0.0 : -INFINITY),
                        hn::Set(d, has_sign ? 0.5 : INFINITY), hn::Gt(steps, hn::Zero(d))};
    bounds.Add(above, at, false);
    bounds.Add(below, at, true);
    const auto scale = hn::PromoteTo(d, hn::Load(df, nearest.scale.data() + at));
    const auto shift = hn::Load(d, queries.shift.data() + at);
    const auto zero = hn::NegMulAdd(scale, shift, hn::Set(d, static_cast<double>(offset)));
    const auto half_width = hn::Mul(hn::Set(d, 0.5), hn::Sub(bounds.high, bounds.low));
    const auto addend = hn::DemoteTo(df, hn::Add(zero, hn::Add(bounds.low, half_width)));
    const auto exact = hn::Sub(hn::PromoteTo(d, addend), zero);
    const auto inexact = hn::Mul(hn::Set(d, 0x1p-22), hn::Max(scale, hn::Set(d, 1.0)));
    const auto beside = hn::Min(hn::Sub(exact, bounds.low), hn::Sub(bounds.high, exact));
    const auto found = hn::And(bounds.certain, hn::Ge(beside, inexact));
    hn::Store(addend, df, pairs->addend.data() + at);
    uint8_t bits[8] = {};
    hn::StoreMaskBits(d, found, bits);
    pairs->found |= static_cast<uint32_t>(bits[0]) << at;
  }
}

// The bounds of the steps of one query, a vector of them at a time.
class TrySteps {
 public:
  explicit TrySteps(const ScaleTry& tried) {
    const Floats d;
    const Words dw;
    const auto lanes = static_cast<int32_t>(hn::Lanes(d));
    const auto scale = hn::Set(d, tried.scale);
    unit_ = hn::Mul(scale, hn::Set(d, 0x1p-32f));
    drift_ = hn::Set(d, tried.drift);
    start_ = hn::MulAdd(hn::Set(d, 0.5f), scale, hn::Set(d, tried.start));
    fraction_ =
        hn::Add(hn::Mul(hn::Iota(dw, 0), hn::Set(dw, tried.distance)), hn::Set(dw, tried.fraction));
    distance_ = hn::Mul(hn::Set(dw, tried.distance), hn::Set(dw, lanes));
    k_ = hn::Iota(d, 0.0f);
  }
  // The bounds of the next steps, whose half units are `half_units`.
  hn::Vec<Floats> Next(const float* half_units) {
    const Floats d;
    const auto line = hn::MulAdd(k_, drift_, start_);
    const auto before = hn::MulAdd(hn::ConvertTo(d, fraction_), unit_, line);
    fraction_ = hn::Add(fraction_, distance_);
    k_ = hn::Add(k_, hn::Set(d, static_cast<float>(hn::Lanes(d))));
    return hn::Add(before, hn::Load(d, half_units));
  }

 private:
  hn::Vec<Floats> unit_, drift_, start_, k_;
  hn::Vec<Words> fraction_, distance_;
};

AddendBounds VectorBoundsOfTry(const ScaleTry& tried, int count, const float* half_units) {
  const Floats d;
  const auto lanes = static_cast<int>(hn::Lanes(d));
  const auto most = hn::Set(d, FLT_MAX), least = hn::Set(d, -FLT_MAX);
  auto low = least, next_low = least, high = most, next_high = most;
  const auto keep = [&](auto lower, auto upper) HWY_ATTR {
    next_low = hn::Max(next_low, hn::Min(low, lower));
    low = hn::Max(low, lower);
    next_high = hn::Min(next_high, hn::Max(high, upper));
    high = hn::Min(high, upper);
  };
  TrySteps steps(tried);
  int k = 0;
  for (; k + lanes <= count; k += lanes) {
    const auto bound = steps.Next(half_units + k);
    keep(bound, bound);
  }
  if (k < count) {
    const auto is_step = hn::FirstN(d, static_cast<size_t>(count - k));
    const auto bound = steps.Next(half_units + k);
    keep(hn::IfThenElse(is_step, bound, least), hn::IfThenElse(is_step, bound, most));
  }
  // A bound that two lanes have counts once.
  const auto lowest = hn::MaxOfLanes(d, low), highest = hn::MinOfLanes(d, high);
  next_low = hn::MaxOfLanes(d, hn::IfThenElse(hn::Eq(low, lowest), next_low, low));
  next_high = hn::MinOfLanes(d, hn::IfThenElse(hn::Eq(high, highest), next_high, high));
  return {hn::GetLane(lowest) - tried.scale, hn::GetLane(next_low) - tried.scale,
          hn::GetLane(highest), hn::GetLane(next_high)};
}

int VectorStepOfBound(const ScaleTry& tried, int count, const float* half_units, float bound,
                      bool is_lower) {
  const Floats d;
  const auto less = hn::Set(d, is_lower ? tried.scale : 0.0f);
  TrySteps steps(tried);
  int k = 0;
  for (; k < count; k += static_cast<int>(hn::Lanes(d))) {
    const auto is_bound = hn::Eq(hn::Sub(steps.Next(half_units + k), less), hn::Set(d, bound));
    const intptr_t found = hn::FindFirstTrue(d, is_bound);
    if (found >= 0) return k + static_cast<int>(found) + 1;
  }
  return k;
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

constexpr auto kPlaceLanes = FUSELITE_SIMD_TABLE(VectorPlaceLanes);
constexpr auto kBoundsOfLanes = FUSELITE_SIMD_TABLE(VectorBoundsOfLanes);
constexpr auto kPairsOfLanes = FUSELITE_SIMD_TABLE(VectorPairsOfLanes);
constexpr auto kHalfUnits = FUSELITE_SIMD_TABLE(VectorHalfUnits);
constexpr auto kBoundsOfTry = FUSELITE_SIMD_TABLE(VectorBoundsOfTry);
constexpr auto kStepOfBound = FUSELITE_SIMD_TABLE(VectorStepOfBound);

}  // namespace

void PlaceLanes(int above, int below, float offset, Isa isa, QueryLanes* queries,
                ScaleLanes* nearest) {
  kPlaceLanes.For(isa)(above, below, offset, queries, nearest);
}

HalfUnits::HalfUnits(int count, float offset, Isa isa) : count(count) {
  kHalfUnits.For(isa)(count, offset, of_steps[0].data());
}

void BoundsOfLanes(const ScaleLanes& lanes, int count, const HalfUnits& half_units, Isa isa,
                   LaneBounds* bounds) {
  kBoundsOfLanes.For(isa)(lanes, static_cast<size_t>(count), half_units.count,
                          half_units.of_steps[0].data(), bounds);
}

void PairsOfLanes(const QueryLanes& queries, const ScaleLanes& nearest, int count,
                  const LaneBounds* above, const LaneBounds* below, float offset, bool has_sign,
                  Isa isa, LanePairs* pairs) {
  kPairsOfLanes.For(isa)(queries, nearest, static_cast<size_t>(count), above, below, offset,
                         has_sign, pairs);
}

ScaleTry ScaleTry::Of(const ScaleLanes& lanes, int lane, const StepPlaces& places, float scale) {
  return {.scale = scale,
          .start = static_cast<float>(0.5 - places.first * scale),
          .drift = static_cast<float>(1 - places.distance * scale),
          .fraction = lanes.fraction[lane],
          .distance = lanes.distance[lane]};
}

AddendBounds BoundsOfTry(const ScaleTry& tried, int count, const HalfUnits& half_units, Isa isa) {
  return kBoundsOfTry.For(isa)(tried, count, half_units.of_steps[0].data());
}

int StepOfBound(const ScaleTry& tried, int count, const HalfUnits& half_units, double bound,
                bool is_lower, Isa isa) {
  return kStepOfBound.For(isa)(tried, count, half_units.of_steps[0].data(),
                               static_cast<float>(bound), is_lower);
}

}  // namespace fuselite::kernels
#endif  // HWY_ONCE
