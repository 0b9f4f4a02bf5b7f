#include "kernels/tail/float_scale.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "kernels/numbers/quantization.h"
#include "kernels/tail/scale_lanes.h"
#include "kernels/tail/scale_query.h"
#include "kernels/tail/scale_tries.h"

namespace fuselite::kernels {
namespace {

// The width below which windows hardly had any pair.
constexpr double kHopeless = 0x1p-23;
// The most by which kNeighbours bring two bounds of the addend nearer to each other: 2^-22 of 256
// steps each.
constexpr double kReachOfNeighbours = 0x1p-13;

// What the pairs of a vector move: its code does for all what one of them asks for.
class Moved {
 public:
  void Add(const FloatScale& pair) {
    down_ |= pair.moves_down() || pair.moves_up();
    up_ |= pair.moves_up();
  }
  bool any() const { return down_; }
  // Whether what moves them moves the sums of `pair`, too.
  bool Covers(const FloatScale& pair) const {
    return (down_ || !pair.moves_down()) && (up_ || !pair.moves_up());
  }

 private:
  bool down_ = false, up_ = false;
};

class Search {
 public:
  // Takes what `moved` covers for as good as a pair that moves nothing.
  Search(const FloatScaleQuery& query, Isa isa, Moved moved)
      : q_(query), isa_(isa), moved_(moved), value_(query.scale.value()) {}

  std::optional<FloatScale> Run() {
    const double farthest = static_cast<double>(std::max(q_.largest, -q_.least)) * value_;
    const int above = Reached(value_, q_.largest, q_.max - q_.zero_point);
    const int below = Reached(value_, -q_.least, q_.zero_point - q_.min);
    const int count = std::max(above, below);
    if (farthest < kLeastReached || count == 0) return FloatScale{0, static_cast<float>(Offset())};
    if (farthest >= kMostReached) return std::nullopt;
    places_ = PlacesOf(q_.scale);
    const double reach = places_.Of(count + kStepLanes + 1);
    shift_ = ShiftOf(q_, places_.distance, reach);
    const auto nearest = static_cast<float>(value_);
    exact_ = reach < kExactInFloat;
    if (exact_) {
      FindSpread(places_, count, nearest, isa_, &spread_);
    }
    if (!spread_.certain) return Thorough(nearest, std::nullopt);
    const AddendRange window = Allowed(spread_.window, below > 0);
    if (window.width() < kHopeless) return Thorough(nearest, std::nullopt);
    const FloatScale pair = WithAddend(nearest, window.middle());
    const double missed = std::abs(pair.addend - Addend(nearest, window.middle()));
    if (0.5 * window.width() - missed > Rounding()) return pair;
    return Thorough(nearest, pair);
  }

 private:
  int32_t Offset() const { return OffsetOf(q_); }
  // `addend` and the zero point, less what the shift is of it.
  double Addend(double scale, double addend) const { return Offset() - scale * shift_ + addend; }
  FloatScale WithAddend(float scale, double addend) const {
    return {scale, static_cast<float>(Addend(scale, addend)), shift_};
  }

  // A window that is this much wider on both sides than a point needs no look at the steps: results
  // are rounded to 24 bits.
  double Rounding() const {
    const int64_t rest = q_.zero_point - Offset();
    return std::max(q_.max - rest, rest - q_.min) <= 128 ? 0x1p-18 : 0x1p-17;
  }

  // The part of `range`, which is right above zero, that is right below it, too, where there are
  // steps.
  AddendRange Allowed(AddendRange range, bool steps_below) const {
    if (q_.addend_has_sign) return {std::max(range.low, 0.0), std::min(range.high, 0.5)};
    if (!steps_below) return range;
    return {std::max(range.low, -range.high), std::min(range.high, -range.low)};
  }

  // Looks at every step that occurs, beginning with `first_try`.
  std::optional<FloatScale> Thorough(float nearest, std::optional<FloatScale> first_try) {
    first_ = IntegerResult(q_, q_.least);
    last_ = IntegerResult(q_, q_.largest);
    if (first_ == last_) return Constant();
    if (!PlaceSides()) return std::nullopt;
    if (first_try && Try(*first_try)) return best_;
    AddendBounds bounds = Bounds(nearest);
    bool found = TryBounds(nearest, bounds);
    if (!best_ && bounds.next_low - bounds.next_high > kReachOfNeighbours) return std::nullopt;
    for (const float end : {INFINITY, 0.0f}) {
      float scale = nearest;
      for (int i = 0; i < kNeighbours && !found; ++i) {
        scale = std::nextafterf(scale, end);
        found = TryBounds(scale, Bounds(scale));
      }
    }
    return best_;
  }

  // An addend with a sign rounds to nothing but zero.
  std::optional<FloatScale> Constant() const {
    if (!q_.addend_has_sign) return FloatScale{0, static_cast<float>(first_)};
    if (first_ == q_.zero_point) return FloatScale{0, 0};
    return std::nullopt;
  }

  bool PlaceSides() {
    const int32_t from = first_ - q_.zero_point, to = last_ - q_.zero_point;
    SetSide(from, to, &above_);
    SetSide(-to, -from, &below_);
    above_.sums = below_.sums = sums_.data();
    above_.offset = static_cast<float>(Offset());
    below_.below_zero = true;
    // With a sign the addend meets the same steps on both sides.
    symmetric_ = q_.addend_has_sign && spread_.certain;
    if (symmetric_) {
      PlaceSteps(places_, Longer(), isa_);
      return true;
    }
    below_.mirrored = !q_.addend_has_sign;
    below_.offset = -above_.offset;
    above_.shift = static_cast<float>(shift_);
    below_.shift = -above_.shift;
    below_.sums = sums_.data() + 1;
    return Place(above_) && Place(below_);
  }

  // The steps from result `from` to result `to`, seen from the side.
  static void SetSide(int32_t from, int32_t to, SideSteps* side) {
    side->first = std::max(from, 0) + 1;
    side->count = std::max(to - side->first + 1, 0);
  }
  const SideSteps& Longer() const { return above_.count >= below_.count ? above_ : below_; }

  bool Place(const SideSteps& side) const {
    if (exact_) PlaceSteps(places_, side, isa_);
    if (spread_.certain) return true;
    for (int i = 0; i < side.count; ++i) {
      const double place = places_.Of(side.first + i);
      const double part = place - static_cast<double>(static_cast<int64_t>(place));
      if (exact_ && part > kUncertain && part < 1 - kUncertain) continue;
      const auto at = FirstSum(side, side.first + i);
      if (!at) return false;
      side.sums->at[i] = static_cast<float>(static_cast<int32_t>(*at));
      side.sums->before[i] = static_cast<float>(static_cast<int32_t>(*at - 1));
    }
    PadSteps(side);
    return true;
  }

  // The first sum that reaches step k.
  std::optional<int64_t> FirstSum(const SideSteps& side, int32_t k) const {
    const double place = places_.Of(k);
    const double beyond = std::ceil(place) - place;
    auto sum = static_cast<int64_t>(std::ceil(place));
    if (beyond > kUncertain && beyond < 1 - kUncertain) return sum;
    const auto reaches = [&](int64_t x) {
      return side.below_zero ? q_.scale.Apply(static_cast<int32_t>(-x)) <= -k
                             : q_.scale.Apply(static_cast<int32_t>(x)) >= k;
    };
    const int64_t farthest = side.below_zero ? -q_.least : q_.largest;
    for (int i = 0; i < 4; ++i) {
      if (sum < 1 || sum > farthest) return std::nullopt;
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

  AddendBounds Bounds(float scale) const {
    if (symmetric_) return BoundsOfAddends({&Longer(), 1}, scale, isa_);
    const SideSteps sides[] = {above_, below_};
    return BoundsOfAddends(sides, scale, isa_);
  }

  // Tries the addends that misplace the fewest steps; whether one of them needs no better.
  bool TryBounds(float scale, const AddendBounds& bounds) {
    const AddendRange ranges[] = {{bounds.low, bounds.high},
                                  {bounds.low, bounds.next_high},
                                  {bounds.next_low, bounds.high},
                                  {bounds.next_low, bounds.next_high}};
    for (int i = 0; i < 4 && !(best_ && MovesOf(*best_) <= i); ++i) {
      AddendRange range = ranges[i];
      if (q_.addend_has_sign) range = {std::max(range.low, 0.0), std::min(range.high, 0.5)};
      if (range.low > range.high) continue;
      if (Try(WithAddend(scale, range.middle()))) return true;
    }
    return false;
  }

  // Keeps the pair if it moves less than the best one; whether it moves nothing that `moved_` does
  // not.
  bool Try(FloatScale pair) {
    Misplaced above = FindMisplaced(symmetric_ ? Longer() : above_, pair, isa_);
    const Misplaced below = symmetric_ ? OnSide(above, below_) : FindMisplaced(below_, pair, isa_);
    if (symmetric_) above = OnSide(above, above_);
    const StepSums &up = *above_.sums, &down = *below_.sums;
    if (!Move(above.early, up.before, below.late, down.at, &pair.down)) return false;
    if (!Move(above.late, up.at, below.early, down.before, &pair.up)) return false;
    if (!MovesRight(q_, pair) || !HoldsAtEnds(pair)) return false;
    if (!best_ || MovesOf(pair) < MovesOf(*best_)) best_ = pair;
    return moved_.Covers(pair);
  }

  // The misplaced ones among the steps that `side` has.
  static Misplaced OnSide(Misplaced misplaced, const SideSteps& side) {
    for (MisplacedSteps* kind : {&misplaced.early, &misplaced.late}) {
      if (kind->last >= side.count) kind->count = 0;
    }
    return misplaced;
  }

  // The one sum to move of those of misplaced steps above and below zero, if there is any.
  using Sums = decltype(StepSums::at);
  bool Move(const MisplacedSteps& above, const Sums& sums_above, const MisplacedSteps& below,
            const Sums& sums_below, int32_t* sum) const {
    if (above.count + below.count > 1) return false;
    if (above.count + below.count == 0) return true;
    const float at = above.count > 0 ? sums_above[above.last] : -sums_below[below.last];
    *sum = static_cast<int32_t>(at + static_cast<float>(shift_));
    return true;
  }

  // Between the ends and the next step results are the ends', or beyond them in the clamp.
  bool HoldsAtEnds(const FloatScale& pair) const {
    return (first_ == q_.min || FloatResult(q_, pair, q_.least) == first_) &&
           (last_ == q_.max || FloatResult(q_, pair, q_.largest) == last_);
  }

  const FloatScaleQuery& q_;
  const Isa isa_;
  const Moved moved_;
  const double value_;
  StepPlaces places_{};
  bool exact_ = false;  // all first sums are floats
  StepSpread spread_;
  int32_t shift_ = 0;
  int32_t first_ = 0, last_ = 0;  // the results of the ends
  SideSteps above_, below_;
  bool symmetric_ = false;  // both have the sums of the longer one
  std::array<StepSums, 2> sums_;
  std::optional<FloatScale> best_;
};

// Looks at the scales of a vector side by side, and thoroughly only at those that this leaves open.
class VectorSearch {
 public:
  VectorSearch(std::span<const FloatScaleQuery> queries, Isa isa, FloatScaleEffort effort,
               std::span<std::optional<FloatScale>> pairs)
      : queries_(queries),
        isa_(isa),
        effort_(effort),
        pairs_(pairs),
        search_(queries, isa),
        tries_(search_, isa) {}

  // Whether all have a pair.
  bool Run() {
    std::array<Open, kStepLanes> lanes;
    size_t count = 0;
    for (int i = 0; i < static_cast<int>(queries_.size()); ++i) {
      if (search_.found(i)) {
        pairs_[i].emplace(search_.pair(i));
        continue;
      }
      if (effort_ == FloatScaleEffort::kPlain) return false;
      lanes[count++] = {i, tries_.Nearest(i)};
    }
    const std::span open = std::span(lanes).first(count);
    // Who asks for most comes first: what the code moves for it anyway needs no better scale.
    std::ranges::sort(open, std::greater(), &Open::asks_for);
    for (Open& lane : open) {
      pairs_[lane.query] = Find(lane);
      if (!pairs_[lane.query]) return false;
      moved_.Add(*pairs_[lane.query]);
    }
    return true;
  }

 private:
  // A query that the nearest float does not serve as it is.
  struct Open {
    int query = 0;
    ScaleTries::Found found{};

    // What the tried scale moves: what it has no pair for most, and what it leaves open least, as a
    // pair that moves less may be found by looking at the steps.
    int asks_for() const {
      if (!found.pair) return 4;
      return found.certain() ? MovesOf(*found.pair) : 0;
    }
  };

  std::optional<FloatScale> Find(Open& lane) const {
    ScaleTries::Found& found = lane.found;
    const bool first_will_do = effort_ == FloatScaleEffort::kFirstPair;
    if (found.pair && (first_will_do || moved_.Covers(*found.pair))) return found.pair;
    tries_.TryNeighbours(lane.query, &found);
    if (found.certain() || (found.pair && moved_.Covers(*found.pair))) return found.pair;
    return Search(queries_[lane.query], isa_, moved_).Run();
  }

  const std::span<const FloatScaleQuery> queries_;
  const Isa isa_;
  const FloatScaleEffort effort_;
  const std::span<std::optional<FloatScale>> pairs_;
  const LaneSearch search_;
  const ScaleTries tries_;
  Moved moved_;
};

}  // namespace

double SumScale::value() const { return real > 0 ? real : multiplier * PowerOfTwo(shift - 31); }

int32_t SumScale::Apply(int32_t sum) const {
  if (real > 0) return static_cast<int32_t>(std::round(sum * real));
  return MultiplyByQuantizedMultiplier(sum, multiplier, shift);
}

std::optional<FloatScale> FindFloatScale(const FloatScaleQuery& query, Isa isa) {
  if (!FusesMultiplyAdd(isa)) return std::nullopt;
  return Search(query, isa, {}).Run();
}

void FindFloatScales(std::span<const FloatScaleQuery> queries, Isa isa, FloatScaleEffort effort,
                     std::span<std::optional<FloatScale>> pairs) {
  static_assert(kMostFloatScales == kStepLanes);
  std::ranges::fill(pairs, std::nullopt);
  if (!FusesMultiplyAdd(isa) || queries.empty()) return;
  if (!VectorSearch(queries, isa, effort, pairs).Run()) std::ranges::fill(pairs, std::nullopt);
}

}  // namespace fuselite::kernels
