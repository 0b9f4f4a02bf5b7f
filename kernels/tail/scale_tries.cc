#include "kernels/tail/scale_tries.h"

#include <algorithm>
#include <cmath>

namespace fuselite::kernels {
namespace {

// In the order of what they move.
constexpr ScaleTries::Beyond kBeyond[] = {{}, {.high = true}, {.low = true}, {true, true}};

// Whether sums reach both ends of the clamp.
bool ReachesAll(const FloatScaleQuery& q) {
  const double scale = q.scale.value();
  return static_cast<double>(q.largest) * scale >= q.max - q.zero_point &&
         static_cast<double>(-q.least) * scale >= q.zero_point - q.min;
}

// `bounds`, without the step that binds most where the addend may be beyond it.
AddendRange RangeOf(const AddendBounds& bounds, ScaleTries::Beyond beyond, bool has_sign) {
  const AddendRange range{beyond.low ? bounds.next_low : bounds.low,
                          beyond.high ? bounds.next_high : bounds.high};
  return has_sign ? AddendRange{std::max(range.low, 0.0), std::min(range.high, 0.5)} : range;
}

// The sums that a pair moves, each at most once.
class Moves {
 public:
  explicit Moves(FloatScale* pair) : pair_(pair) {}
  void Down(int64_t sum) { Set(&pair_->down, FloatScale::kNoneDown, sum); }
  void Up(int64_t sum) { Set(&pair_->up, FloatScale::kNoneUp, sum); }
  bool once() const { return once_; }

 private:
  void Set(int32_t* moved, int32_t none, int64_t sum) {
    once_ &= *moved == none;
    *moved = static_cast<int32_t>(sum + pair_->shift);
  }
  FloatScale* pair_;
  bool once_ = true;
};

}  // namespace

ScaleTries::Found ScaleTries::Nearest(int i) const {
  Found found;
  // A step of the clamp that no sum reaches may be the one that binds most.
  if (!search_.certain(i) || !ReachesAll(search_.query(i))) found.least_open = 0;
  if (search_.certain(i)) Try(i, search_.nearest().scale[i], &found.nearest, &found);
  return found;
}

// The two steps that bind most bind another scale, too, each with the bound that its sum moves:
// where these leave no room, no other steps have to be looked at.
void ScaleTries::TryNeighbours(int i, Found* found) const {
  if (!search_.certain(i)) return;
  const float nearest = search_.nearest().scale[i];
  const bool has_sign = search_.query(i).addend_has_sign;
  const auto tried = ScaleTry::Of(search_.nearest(), i, search_.lanes().places(i), nearest);
  const double low_sum = StepAt(i, tried, SidesOf(i), found->nearest, false).sum();
  const double high_sum = StepAt(i, tried, SidesOf(i), found->nearest, true).sum();
  const auto leaves_room = [&](float scale) {
    const double more = double{scale} - double{nearest};
    const AddendBounds bounds{.low = found->nearest.low - low_sum * more,
                              .next_low = 0,
                              .high = found->nearest.high - high_sum * more,
                              .next_high = 0};
    return RangeOf(bounds, {}, has_sign).width() >= -4 * Inexact(scale);
  };
  for (const float end : {INFINITY, 0.0f}) {
    float scale = nearest;
    for (int away = 0; away < kNeighbours; ++away) {
      if (found->pair && MovesOf(*found->pair) == 0) return;
      scale = std::nextafterf(scale, end);
      if (found->pair && OnlyUnmovedIsBetter(i, *found->pair) && !leaves_room(scale)) continue;
      Bounds bounds;
      Try(i, scale, &bounds, found);
    }
  }
}

// With a sign, where both sides have the same steps, what moves a sum on one side moves one on the
// other.
bool ScaleTries::OnlyUnmovedIsBetter(int i, const FloatScale& pair) const {
  const QueryLanes& lanes = search_.lanes();
  const bool alike = search_.query(i).addend_has_sign && lanes.above[i] == lanes.below[i];
  return alike || MovesOf(pair) == 1;
}

void ScaleTries::Try(int i, float scale, Bounds* bounds, Found* found) const {
  const FloatScaleQuery& q = search_.query(i);
  const auto shift = static_cast<int32_t>(search_.lanes().shift[i]);
  const Sides sides = SidesOf(i);
  const auto tried = ScaleTry::Of(search_.nearest(), i, search_.lanes().places(i), scale);
  *bounds = BoundsOf(tried, sides);
  for (const Beyond beyond : kBeyond) {
    const int moves = beyond.high + 2 * beyond.low;  // that of MovesOf, without a sign
    const int least = q.addend_has_sign ? std::min(moves, 1) : moves;
    if (found->pair && MovesOf(*found->pair) <= least) return;
    const AddendRange range = RangeOf(*bounds, beyond, q.addend_has_sign);
    if (range.width() < -2 * Inexact(scale)) continue;
    FloatScale pair;
    if (WithAddend(scale, OffsetOf(q), shift, range, &pair) &&
        Move(i, tried, sides, *bounds, beyond, &pair)) {
      if (!found->pair || MovesOf(pair) < MovesOf(*found->pair)) found->pair = pair;
    } else {
      found->least_open = std::min(found->least_open, least);
    }
  }
}

// The steps that are looked at, with a sign those of the longer side for both.
ScaleTries::Sides ScaleTries::SidesOf(int i) const {
  const auto above = static_cast<int>(search_.lanes().above[i]);
  const auto below = static_cast<int>(search_.lanes().below[i]);
  if (search_.query(i).addend_has_sign) return {.above = std::max(above, below)};
  return {above, below};
}

// Seen from above zero: what is a lower bound below zero is an upper one.
ScaleTries::Bounds ScaleTries::BoundsOf(const ScaleTry& tried, Sides sides) const {
  Bounds all{{-INFINITY, -INFINITY, INFINITY, INFINITY}};
  if (sides.above > 0) all = {BoundsOfTry(tried, sides.above, *search_.above(), isa_)};
  if (sides.below == 0) return all;
  const AddendBounds lower = BoundsOfTry(tried, sides.below, *search_.below(), isa_);
  all.low_below_zero = -lower.high > all.low;
  all.next_low = std::max({all.next_low, -lower.next_high, std::min(-lower.high, all.low)});
  all.low = std::max(all.low, -lower.high);
  all.high_below_zero = -lower.low < all.high;
  all.next_high = std::min({all.next_high, -lower.next_low, std::max(-lower.low, all.high)});
  all.high = std::min(all.high, -lower.low);
  return all;
}

// The step that binds most, and its first sum.
ScaleTries::Step ScaleTries::StepAt(int i, const ScaleTry& tried, Sides sides, const Bounds& bounds,
                                    bool high) const {
  Step step{.below_zero = high ? bounds.high_below_zero : bounds.low_below_zero};
  const double bound = high ? bounds.high : bounds.low;
  const bool is_lower = high == step.below_zero;
  step.k = step.below_zero
               ? StepOfBound(tried, sides.below, *search_.below(), -bound, is_lower, isa_)
               : StepOfBound(tried, sides.above, *search_.above(), bound, is_lower, isa_);
  step.at = static_cast<int64_t>(std::ceil(search_.lanes().places(i).Of(step.k)));
  return step;
}

// Moves the sums of the steps that an addend beyond the bounds misplaces; whether that makes them
// right.
bool ScaleTries::Move(int i, const ScaleTry& tried, Sides sides, const Bounds& bounds,
                      Beyond beyond, FloatScale* pair) const {
  if (!beyond.low && !beyond.high) return true;
  const FloatScaleQuery& q = search_.query(i);
  const bool has_sign = q.addend_has_sign;
  // With a sign, whether the step is among those above zero, or below.
  const auto is_above = [&](const Step& step) {
    return has_sign ? step.k <= search_.lanes().above[i] : !step.below_zero;
  };
  const auto is_below = [&](const Step& step) {
    return has_sign ? step.k <= search_.lanes().below[i] : step.below_zero;
  };
  Moves moves(pair);
  if (beyond.high) {
    const Step step = StepAt(i, tried, sides, bounds, true);
    if (is_above(step)) moves.Down(step.at - 1);
    if (is_below(step)) has_sign ? moves.Up(1 - step.at) : moves.Down(-step.at);
  }
  if (beyond.low) {
    const Step step = StepAt(i, tried, sides, bounds, false);
    if (is_above(step)) moves.Up(step.at);
    if (is_below(step)) has_sign ? moves.Down(-step.at) : moves.Up(1 - step.at);
  }
  return moves.once() && MovesRight(q, *pair);
}

}  // namespace fuselite::kernels
