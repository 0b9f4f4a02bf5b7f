// The search for the scales of a vector, side by side.
#pragma once

#include <optional>
#include <span>

#include "kernels/tail/lane_bounds.h"

namespace fuselite::kernels {

// Finds the pairs of scales side by side that need no moved sum and not another scale than the
// nearest float.
class LaneSearch {
 public:
  // `queries` stay where they are.
  LaneSearch(std::span<const FloatScaleQuery> queries, Isa isa);

  // Whether query i has one, which then is pair(i).
  bool found(int i) const { return (pairs_.found >> i & 1) != 0; }
  FloatScale pair(int i) const {
    return {nearest_.scale[i], pairs_.addend[i], static_cast<int32_t>(lanes_.shift[i])};
  }

  // For other tries of the same queries: what they ask, whether the steps of query i are placed so
  // that bounds hold, and the most steps of a query. With a sign those above zero are those on
  // either side. Sides without a step have no half units.
  const FloatScaleQuery& query(int i) const { return queries_[i]; }
  const QueryLanes& lanes() const { return lanes_; }
  const ScaleLanes& nearest() const { return nearest_; }
  bool certain(int i) const;
  const std::optional<HalfUnits>& above() const { return above_; }
  const std::optional<HalfUnits>& below() const { return below_; }

 private:
  std::span<const FloatScaleQuery> queries_;
  QueryLanes lanes_;
  ScaleLanes nearest_;
  std::optional<HalfUnits> above_, below_;
  LaneBounds upper_, lower_;
  LanePairs pairs_;
};

// Makes `*pair` of `scale`, `shift` and the float that is nearest to the middle of `range` as an
// addend to scaled sums, `offset` less scale * shift included. False where that is not surely
// within the range: bounds are exact up to 2^-23 of 1 or the scale.
bool WithAddend(float scale, int32_t offset, int32_t shift, AddendRange range, FloatScale* pair);

}  // namespace fuselite::kernels
