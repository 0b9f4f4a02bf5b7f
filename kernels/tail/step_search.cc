#include "kernels/tail/step_search.h"

#include <algorithm>
#include <array>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tail/step_search.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/simd.h"

#ifndef FUSELITE_KERNELS_TAIL_STEP_SEARCH_ONCE_
#define FUSELITE_KERNELS_TAIL_STEP_SEARCH_ONCE_
namespace fuselite::kernels {

// The steps between results that occur: at[i] is the first sum whose result is value[i] or more,
// as what is converted to single floats; before[i] is the sum below it. Behind `count` the last
// step is repeated up to a whole vector.
struct OccurringSteps {
  static constexpr int kMost = 256, kLanes = 16;
  int count = 0;
  bool addend_has_sign = false;  // then values are less the zero point
  alignas(64) std::array<float, kMost + kLanes> at, before, value;

  void Set(int i, int64_t sum) {
    at[i] = static_cast<float>(static_cast<int32_t>(sum));
    before[i] = static_cast<float>(static_cast<int32_t>(sum - 1));
  }
  void Pad() {
    for (int i = count; i < count + kLanes; ++i) {
      at[i] = at[count - 1];
      before[i] = before[count - 1];
      value[i] = value[count - 1];
    }
  }
};

// Steps that floats do not take where they belong, among those that were looked at.
struct MisplacedSteps {
  int count = 0, step = 0;
};
struct Misplaced {
  MisplacedSteps early, late;
};

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using StepFloats = hn::CappedTag<float, OccurringSteps::kLanes>;
using StepDoubles = hn::CappedTag<double, OccurringSteps::kLanes / 2>;

// Steps first_k and the next ones, which have the results `value` and so on; whether doubles are
// sure of all places. Sums below zero of a step are behind the place of the one before.
bool PlaceOccurring(const StepPlaces& places, int32_t first_k, int32_t value,
                    OccurringSteps* steps) {
  const StepDoubles d;
  const hn::Rebind<float, StepDoubles> df;
  const auto first = hn::Set(d, places.first), distance = hn::Set(d, places.distance);
  const auto zero = hn::Zero(d), one = hn::Set(d, 1.0);
  auto nearest = one, furthest = zero;
  const auto last = hn::Set(d, static_cast<double>(steps->count - 1));
  for (int i = 0; i < steps->count; i += static_cast<int>(hn::Lanes(d))) {
    const auto index = hn::Min(hn::Iota(d, static_cast<double>(i)), last);
    const auto k = hn::Add(index, hn::Set(d, static_cast<double>(first_k)));
    const auto above = hn::Gt(k, zero);
    const auto number = hn::IfThenElse(above, hn::Sub(k, one), hn::Neg(k));
    const auto place = hn::MulAdd(number, distance, first);
    const auto beyond = hn::Ceil(place);
    nearest = hn::Min(nearest, hn::Sub(beyond, place));
    furthest = hn::Max(furthest, hn::Sub(beyond, place));
    const auto sum = hn::IfThenElse(above, beyond, hn::Sub(one, beyond));
    const auto result = hn::Add(index, hn::Set(d, static_cast<double>(value)));
    hn::Store(hn::DemoteTo(df, sum), df, steps->at.data() + i);
    hn::Store(hn::DemoteTo(df, hn::Sub(sum, one)), df, steps->before.data() + i);
    hn::Store(hn::DemoteTo(df, result), df, steps->value.data() + i);
  }
  return hn::GetLane(hn::MinOfLanes(d, nearest)) > kUncertain &&
         hn::GetLane(hn::MaxOfLanes(d, furthest)) < 1 - kUncertain;
}

// The addends with which the exact scale * sum + addend, halves rounded up, is on the right side of
// every step.
AddendRange RangeOfAddends(const OccurringSteps& steps, double scale) {
  const StepDoubles d;
  const hn::Rebind<float, StepDoubles> df;
  const auto s = hn::Set(d, scale), half = hn::Set(d, 0.5), zero = hn::Zero(d);
  const auto none_low = hn::Set(d, -1e300), none_high = hn::Set(d, 1e300);
  auto low = none_low, high = none_high;
  for (int i = 0; i < steps.count; i += static_cast<int>(hn::Lanes(d))) {
    const auto at = hn::PromoteTo(d, hn::Load(df, steps.at.data() + i));
    const auto before = hn::PromoteTo(d, hn::Load(df, steps.before.data() + i));
    const auto middle = hn::Sub(hn::PromoteTo(d, hn::Load(df, steps.value.data() + i)), half);
    const auto least = hn::NegMulAdd(at, s, middle), most = hn::NegMulAdd(before, s, middle);
    if (!steps.addend_has_sign) {
      low = hn::Max(low, least);
      high = hn::Min(high, most);
      continue;
    }
    // Below zero the addend is subtracted.
    const auto at_below = hn::Lt(at, zero), before_below = hn::Lt(before, zero);
    low = hn::Max(low, hn::IfThenElse(at_below, none_low, least));
    high = hn::Min(high, hn::IfThenElse(at_below, hn::Neg(least), none_high));
    high = hn::Min(high, hn::IfThenElse(before_below, none_high, most));
    low = hn::Max(low, hn::IfThenElse(before_below, hn::Neg(most), none_low));
  }
  return {hn::GetLane(hn::MaxOfLanes(d, low)), hn::GetLane(hn::MinOfLanes(d, high))};
}

// Looks for the steps whose sums floats put on the wrong side, until there are two of a kind.
Misplaced FindMisplaced(const OccurringSteps& steps, const FloatScale& pair) {
  const StepFloats d;
  const auto scale = hn::Set(d, pair.scale), addend = hn::Set(d, pair.addend);
  const auto result = [&](auto sum) HWY_ATTR {
    const auto with_sign = steps.addend_has_sign ? hn::CopySign(addend, sum) : addend;
    return hn::Round(hn::MulAdd(sum, scale, with_sign));
  };
  Misplaced found;
  const auto add = [&](auto wrong, int i, MisplacedSteps* kind) HWY_ATTR {
    wrong = hn::And(wrong, hn::FirstN(d, static_cast<size_t>(steps.count - i)));
    if (hn::AllFalse(d, wrong)) return;
    kind->count += static_cast<int>(hn::CountTrue(d, wrong));
    kind->step = i + static_cast<int>(hn::FindKnownFirstTrue(d, wrong));
  };
  for (int i = 0; i < steps.count; i += static_cast<int>(hn::Lanes(d))) {
    const auto value = hn::Load(d, steps.value.data() + i);
    const auto late = hn::Lt(result(hn::Load(d, steps.at.data() + i)), value);
    const auto early = hn::Ge(result(hn::Load(d, steps.before.data() + i)), value);
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

constexpr auto kPlaceOccurring = FUSELITE_SIMD_TABLE(PlaceOccurring);
constexpr auto kRangeOfAddends = FUSELITE_SIMD_TABLE(RangeOfAddends);
constexpr auto kFindMisplaced = FUSELITE_SIMD_TABLE(FindMisplaced);

// Neighbours of the nearest float that are tried on both sides.
constexpr int kNeighbours = 2;

class StepSearch {
 public:
  StepSearch(const FloatScaleQuery& query, const StepPlaces& places, Isa isa)
      : q_(query), places_(places), isa_(isa) {}

  std::optional<FloatScale> Run() {
    const auto farthest = static_cast<double>(std::max(q_.largest, -q_.least));
    if (farthest * q_.scale.value() >= kMostSteps) return std::nullopt;
    steps_.addend_has_sign = q_.addend_has_sign;
    first_ = ResultOf(q_.least);
    last_ = ResultOf(q_.largest);
    if (first_ == last_) return Constant();
    if (last_ - first_ > OccurringSteps::kMost || !FindSteps()) return std::nullopt;
    const auto nearest = static_cast<float>(q_.scale.value());
    float up = nearest, down = nearest;
    bool found = TryScale(nearest);
    for (int i = 0; i < kNeighbours && !found; ++i) {
      up = std::nextafterf(up, INFINITY);
      down = std::nextafterf(down, 0.0f);
      found = TryScale(up) || TryScale(down);
    }
    return best_;
  }

 private:
  int32_t Offset() const { return q_.addend_has_sign ? q_.zero_point : 0; }
  int32_t ResultOf(int64_t sum) const {
    const int64_t result = int64_t{q_.scale.Apply(static_cast<int32_t>(sum))} + q_.zero_point;
    return static_cast<int32_t>(std::clamp<int64_t>(result, q_.min, q_.max));
  }

  // An addend with a sign rounds to nothing but zero.
  std::optional<FloatScale> Constant() const {
    if (!q_.addend_has_sign) return FloatScale{0, static_cast<float>(first_)};
    if (first_ == q_.zero_point) return FloatScale{0, 0};
    return std::nullopt;
  }

  bool FindSteps() {
    const int32_t first_k = first_ + 1 - q_.zero_point, value = first_ + 1 - Offset();
    steps_.count = last_ - first_;
    if (!kPlaceOccurring.For(isa_)(places_, first_k, value, &steps_) && !SettleSteps(first_k)) {
      return false;
    }
    steps_.Pad();
    return true;
  }

  // Puts right the steps that doubles are not sure of.
  bool SettleSteps(int32_t first_k) {
    for (int i = 0; i < steps_.count; ++i) {
      const int32_t k = first_k + i;
      const double place = places_.Of(k), sum = std::ceil(place);
      if (sum - place > kUncertain && sum - place < 1 - kUncertain) continue;
      const auto at = FirstSum(k, static_cast<int64_t>(k > 0 ? sum : 1 - sum));
      if (!at) return false;
      steps_.Set(i, *at);
    }
    return true;
  }

  // The first sum that is scaled to k or more, among those around `sum`.
  std::optional<int64_t> FirstSum(int32_t k, int64_t sum) const {
    const auto reaches = [&](int64_t x) { return q_.scale.Apply(static_cast<int32_t>(x)) >= k; };
    for (int i = 0; i < 4; ++i) {
      if (sum <= q_.least || sum > q_.largest) return std::nullopt;
      if (!reaches(sum)) {
        ++sum;
      } else if (reaches(sum - 1)) {
        --sum;
      } else {
        return sum;
      }
    }
    return std::nullopt;
  }

  // Tries it with several addends; whether one of them needs no moved sum.
  bool TryScale(float scale) {
    AddendRange range = kRangeOfAddends.For(isa_)(steps_, scale);
    if (q_.addend_has_sign) range = {std::max(range.low, 0.0), std::min(range.high, 0.5)};
    // The ends, too: where the range is empty, and where roundings make it so.
    for (const double part : {0.5, 0.25, 0.75, 0.0, 1.0}) {
      const double addend = range.low + part * (range.high - range.low);
      if (Try({scale, static_cast<float>(addend)})) return true;
    }
    return false;
  }

  // Keeps the pair if it moves less than the best one; whether it moves nothing.
  bool Try(FloatScale pair) {
    if (q_.addend_has_sign && !(pair.addend >= 0 && pair.addend <= 0.5f)) return false;
    const Misplaced misplaced = kFindMisplaced.For(isa_)(steps_, pair);
    const bool moves_nothing = misplaced.early.count + misplaced.late.count == 0;
    if (!MoveSums(misplaced, &pair) || !HoldsAtEnds(pair)) return false;
    if (!best_ || Moves(pair) < Moves(*best_)) best_ = pair;
    return moves_nothing;
  }

  static int Moves(const FloatScale& pair) { return pair.moves_down() + 2 * pair.moves_up(); }

  // Whether what it moves puts the misplaced steps right.
  bool MoveSums(const Misplaced& misplaced, FloatScale* pair) const {
    const auto& [early, late] = misplaced;
    if (early.count > 1 || late.count > 1) return false;
    constexpr float kMost = 0x1p23f;  // sums up to here, and their neighbours, are floats
    if (early.count > 0) {
      const float sum = steps_.before[early.step];
      if (std::abs(sum) > kMost) return false;
      pair->down = static_cast<int32_t>(sum);
    }
    if (late.count > 0) {
      const float sum = steps_.at[late.step];
      if (std::abs(sum) > kMost) return false;
      pair->up = static_cast<int32_t>(sum);
    }
    // Neither is moved onto the other.
    if (pair->moves_down() && pair->moves_up() && std::abs(pair->down - pair->up) < 3) return false;
    return (early.count == 0 || FloatResult(*pair, pair->down) == ResultOf(pair->down)) &&
           (late.count == 0 || FloatResult(*pair, pair->up) == ResultOf(pair->up));
  }

  // Between the ends and the next step results are the ends'.
  bool HoldsAtEnds(const FloatScale& pair) const {
    return FloatResult(pair, q_.least) == first_ && FloatResult(pair, q_.largest) == last_;
  }

  // What is emitted computes.
  int32_t FloatResult(const FloatScale& pair, int64_t sum) const {
    const auto moved = static_cast<int32_t>(sum + (sum == pair.up) - (sum == pair.down));
    const auto x = static_cast<float>(moved);
    const float addend = q_.addend_has_sign ? std::copysign(pair.addend, x) : pair.addend;
    const double rounded = std::nearbyint(std::fma(x, pair.scale, addend)) + Offset();
    return static_cast<int32_t>(std::clamp<double>(rounded, q_.min, q_.max));
  }

  const FloatScaleQuery& q_;
  const StepPlaces places_;
  const Isa isa_;
  int32_t first_ = 0, last_ = 0;  // the results of the ends
  OccurringSteps steps_;
  std::optional<FloatScale> best_;
};

}  // namespace

std::optional<FloatScale> SearchFloatScale(const FloatScaleQuery& query, const StepPlaces& places,
                                           Isa isa) {
  return StepSearch(query, places, isa).Run();
}

}  // namespace fuselite::kernels
#endif  // HWY_ONCE
