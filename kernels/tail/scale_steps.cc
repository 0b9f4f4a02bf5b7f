#include "kernels/tail/scale_steps.h"

#include <algorithm>
#include <cfloat>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tail/scale_steps.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, kStepLanes>;
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

void VectorFindSpread(const StepPlaces& places, int count, double scale, StepSpread* spread) {
  const Words d;
  const auto lanes = static_cast<int>(hn::Lanes(d));
  const auto distance = static_cast<uint32_t>(Whole(places.distance));
  auto place = FirstFractions(static_cast<uint32_t>(Whole(places.first)), distance);
  const auto step = hn::Set(d, static_cast<int32_t>(distance * static_cast<uint32_t>(lanes)));
  auto least = place, most = place;
  int i = lanes;
  for (; i < count; i += lanes) {
    place = hn::Add(place, step);
    least = hn::Min(least, place);
    most = hn::Max(most, place);
  }
  // The least and the greatest fraction of a place.
  const double from = (hn::GetLane(hn::MinOfLanes(d, least)) + 0x1p31) * 0x1p-32;
  const double to = (hn::GetLane(hn::MaxOfLanes(d, most)) + 0x1p31) * 0x1p-32;
  // What reaches k - 1/2 at the first sum of step k is, with the place's fraction f,
  //   1/2 - first scale + (k - 1) (1 - distance scale) - (1 - f) scale.
  const double base = 0.5 - places.first * scale;
  const double drift = (1 - places.distance * scale) * (i - 1);
  const double inexact = 0x1p-23 * scale;  // of places: up to 2^-32 for each step
  spread->certain = from > kUncertain && to < 1 - kUncertain;
  spread->window.low = base + std::max(drift, 0.0) - (1 - to) * scale + inexact;
  spread->window.high = base + std::min(drift, 0.0) + from * scale - inexact;
}

void VectorPlaceSteps(const StepPlaces& places, const SideSteps& side) {
  const hn::CappedTag<double, kStepLanes / 2> d;
  const hn::Rebind<float, decltype(d)> df;
  const hn::Rebind<int32_t, decltype(d)> dw;
  const auto lanes = static_cast<int>(hn::Lanes(d));
  const auto distance = hn::Set(d, places.distance);
  const auto first = hn::Set(d, places.Of(side.first));
  const auto one_sum = hn::Set(df, 1.0f);
  for (int i = 0; i < side.count; i += lanes) {
    const auto place = hn::MulAdd(hn::Iota(d, static_cast<double>(i)), distance, first);
    const auto before = hn::ConvertTo(df, hn::DemoteTo(dw, place));
    hn::Store(before, df, side.sums->before.data() + i);
    hn::Store(hn::Add(before, one_sum), df, side.sums->at.data() + i);
  }
}

// The greatest number of each lane, and the next.
struct Greatest {
  hn::Vec<Floats> most, next;
  void Keep(hn::Vec<Floats> x) {
    next = hn::Max(next, hn::Min(most, x));
    most = hn::Max(most, x);
  }
  // A number that two lanes have counts once.
  void OfLanes(float* of_all, float* next_of_all) const {
    const Floats d;
    const auto all = hn::MaxOfLanes(d, most);
    *of_all = hn::GetLane(all);
    *next_of_all = hn::GetLane(hn::MaxOfLanes(d, hn::IfThenElse(hn::Eq(most, all), next, most)));
  }
};

// Half a unit in the last of 24 bits below value - 1/2 is rounded up to it, half a unit above is
// rounded down to it, and it becomes the even number.
void KeepBounds(const SideSteps& side, float scale, Greatest* low, Greatest* high) {
  const Floats d;
  const hn::RebindToUnsigned<Floats> du;
  const auto s = hn::Set(d, scale);
  const auto exponent = hn::BitCast(d, hn::Set(du, 0x7F800000u));
  auto step = hn::Iota(d, static_cast<float>(side.first) - 0.5f);
  const auto parity = hn::Iota(du, static_cast<uint32_t>(side.first) +
                                       static_cast<uint32_t>(static_cast<int>(side.offset) + 1));
  // Negative where the value is even.
  const auto sign = hn::BitCast(d, hn::ShiftLeft<31>(parity));
  const auto unit = hn::Or(hn::Set(d, 0x1p-24f), sign);
  for (int i = 0; i < side.count; i += static_cast<int>(hn::Lanes(d))) {
    const auto middle = hn::Add(step, hn::Set(d, side.offset));
    const auto half_unit = hn::Mul(hn::And(middle, exponent), unit);
    const auto at = hn::NegMulAdd(hn::Load(d, side.sums->at.data() + i), s, step);
    const auto before = hn::MulSub(hn::Load(d, side.sums->before.data() + i), s, step);
    low->Keep(hn::Add(at, half_unit));
    high->Keep(hn::Sub(before, half_unit));
    step = hn::Add(step, hn::Set(d, static_cast<float>(hn::Lanes(d))));
  }
}

AddendBounds VectorBoundsOfAddends(std::span<const SideSteps> sides, float scale) {
  const auto none = hn::Set(Floats(), -FLT_MAX);
  Greatest low{none, none}, high{none, none};  // the upper bounds' negatives
  for (const SideSteps& side : sides) {
    KeepBounds(side, scale, side.mirrored ? &high : &low, side.mirrored ? &low : &high);
  }
  float bounds[4];
  low.OfLanes(&bounds[0], &bounds[1]);
  high.OfLanes(&bounds[2], &bounds[3]);
  return {bounds[0], bounds[1], -bounds[2], -bounds[3]};
}

Misplaced VectorFindMisplaced(const SideSteps& side, const FloatScale& pair) {
  const Floats d;
  const auto scale = hn::Set(d, pair.scale);
  const auto addend = hn::Set(d, side.mirrored ? -pair.addend : pair.addend);
  const auto shift = hn::Set(d, side.shift);
  const auto result = [&](const float* sums) HWY_ATTR {
    return hn::Round(hn::MulAdd(hn::Add(hn::Load(d, sums), shift), scale, addend));
  };
  const auto lanes = static_cast<int>(hn::Lanes(d));
  auto value = hn::Iota(d, static_cast<float>(side.first) + side.offset);
  Misplaced found;
  const auto add = [&](auto wrong, int i, MisplacedSteps* kind) HWY_ATTR {
    if (hn::AllFalse(d, wrong)) return;
    kind->count += static_cast<int>(hn::CountTrue(d, wrong));
    kind->last = i + static_cast<int>(hn::FindKnownFirstTrue(d, wrong));
  };
  for (int i = 0; i < side.count; i += lanes) {
    const auto late = hn::Lt(result(side.sums->at.data() + i), value);
    const auto early = hn::Ge(result(side.sums->before.data() + i), value);
    value = hn::Add(value, hn::Set(d, static_cast<float>(lanes)));
    if (hn::AllFalse(d, hn::Or(late, early))) continue;
    add(early, i, &found.early);
    add(late, i, &found.late);
    if (found.early.count > 1 || found.late.count > 1) break;
  }
  return found;
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

constexpr auto kFindSpread = FUSELITE_SIMD_TABLE(VectorFindSpread);
constexpr auto kPlaceSteps = FUSELITE_SIMD_TABLE(VectorPlaceSteps);
constexpr auto kBoundsOfAddends = FUSELITE_SIMD_TABLE(VectorBoundsOfAddends);
constexpr auto kFindMisplaced = FUSELITE_SIMD_TABLE(VectorFindMisplaced);

}  // namespace

void FindSpread(const StepPlaces& places, int count, double scale, Isa isa, StepSpread* spread) {
  kFindSpread.For(isa)(places, count, scale, spread);
}

void PlaceSteps(const StepPlaces& places, const SideSteps& side, Isa isa) {
  kPlaceSteps.For(isa)(places, side);
  PadSteps(side);
}

void PadSteps(const SideSteps& side) {
  std::fill_n(side.sums->at.data() + side.count, kStepLanes, FLT_MAX);
  std::fill_n(side.sums->before.data() + side.count, kStepLanes, -FLT_MAX);
}

AddendBounds BoundsOfAddends(std::span<const SideSteps> sides, float scale, Isa isa) {
  return kBoundsOfAddends.For(isa)(sides, scale);
}

Misplaced FindMisplaced(const SideSteps& side, const FloatScale& pair, Isa isa) {
  return kFindMisplaced.For(isa)(side, pair);
}

}  // namespace fuselite::kernels
#endif  // HWY_ONCE
