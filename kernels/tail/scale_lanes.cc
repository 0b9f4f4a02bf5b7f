#include "kernels/tail/scale_lanes.h"

#include <algorithm>
#include <cmath>

#include "kernels/tail/scale_query.h"

namespace fuselite::kernels {
namespace {

// In a scale above kNarrow * count `count` steps mostly leave room that their spread shows, which
// takes less time to see. With fewer than kFewestNarrow others in a vector that holds for all.
constexpr double kNarrow = 12 * 0x1p-18;
constexpr int kFewestNarrow = 4;

}  // namespace

LaneSearch::LaneSearch(std::span<const FloatScaleQuery> queries, Isa isa)
    : queries_(queries), q_(queries[0]), isa_(isa) {
  for (size_t i = 0; i < queries.size(); ++i) Add(static_cast<int>(i));
  if (narrow_ < kFewestNarrow) {
    taken_ = {};
    return;
  }
  const auto offset = static_cast<float>(OffsetOf(q_));
  if (q_.addend_has_sign) above_ = std::max(above_, below_);
  if (above_ > 0) BoundsOfLanes(lanes_, above_, offset, isa_, &upper_);
  if (below_ > 0 && !q_.addend_has_sign) BoundsOfLanes(lanes_, below_, -offset, isa_, &lower_);
}

std::optional<FloatScale> LaneSearch::Pair(int i) const {
  if (!taken_[i]) return std::nullopt;
  AddendRange range = {q_.addend_has_sign ? 0.0 : -INFINITY, q_.addend_has_sign ? 0.5 : INFINITY};
  if (above_ > 0) {
    if (!upper_.certain(i)) return std::nullopt;
    range = {std::max<double>(range.low, upper_.low[i]),
             std::min<double>(range.high, upper_.high[i])};
  }
  if (below_ > 0 && !q_.addend_has_sign) {
    if (!lower_.certain(i)) return std::nullopt;
    range = {std::max<double>(range.low, -lower_.high[i]),
             std::min<double>(range.high, -lower_.low[i])};
  }
  const float scale = lanes_.scale[i];
  const double zero = OffsetOf(q_) - double{scale} * shifts_[i];
  const auto addend = static_cast<float>(zero + range.middle());
  const double exact = double{addend} - zero;
  // Bounds are exact up to 2^-23 of 1 or the scale.
  const double inexact = 0x1p-22 * std::max(scale, 1.0f);
  if (exact - range.low < inexact || range.high - exact < inexact) return std::nullopt;
  return FloatScale{scale, addend, shifts_[i]};
}

void LaneSearch::Add(int i) {
  const FloatScaleQuery& q = queries_[i];
  const double value = q.scale.value();
  const double farthest = static_cast<double>(std::max(q.largest, -q.least)) * value;
  const int above = Reached(value, q.largest, q.max - q.zero_point);
  const int below = Reached(value, -q.least, q.zero_point - q.min);
  const int count = std::max(above, below);
  if (farthest < 0.125 || farthest >= kMostReached || count == 0) return;
  const StepPlaces places = PlacesOf(q.scale);
  const double reach = places.Of(count + 1);
  if (reach >= kExactInFloat) return;
  shifts_[i] = ShiftOf(q, places.distance, reach);
  lanes_.Set(i, places, static_cast<float>(value));
  taken_[i] = true;
  narrow_ += value < kNarrow * count ? 1 : 0;
  above_ = std::max(above_, above);
  below_ = std::max(below_, below);
}

}  // namespace fuselite::kernels
