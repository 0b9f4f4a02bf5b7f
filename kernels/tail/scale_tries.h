// Pairs of scales for queries that the nearest float does not serve as it is: the floats beside it
// are tried, and sums are moved (float_scale.h).
//
// The bounds of a try say which addends are right for all steps, and which are for all but the step
// that binds most in one direction. Beyond the upper bound that step comes too early above zero, or
// too late below, and one of its sums is moved down; beyond the lower bound it is the other way
// round. With a sign the addend meets the same step on both sides. What lies so near to a bound
// that floats do not tell its side is left open.
#pragma once

#include <optional>
#include <span>

#include "kernels/tail/scale_lanes.h"

namespace fuselite::kernels {

class ScaleTries {
 public:
  // The nearest float, and its neighbours on both sides.
  static constexpr int kScales = 1 + 2 * kNeighbours;

  // For the queries of `search`, which stays where it is.
  ScaleTries(const LaneSearch& search, Isa isa) : search_(search), isa_(isa) {}

  struct Found {
    std::optional<FloatScale> pair;
    // No tried scale has a pair that moves less (MovesOf); where there is none, none has any.
    bool certain = false;
  };
  // For query i, which the first `scales` of them are tried for.
  Found Of(int i, int scales) const;

  // Beyond which of the bounds an addend is.
  struct Beyond {
    bool low = false, high = false;
  };

 private:
  struct Bounds : AddendBounds {
    bool low_below_zero = false, high_below_zero = false;  // where the steps are that bind most
  };
  struct Step {
    int k = 0;
    int64_t at = 0;  // its first sum, as seen from its side
    bool below_zero = false;
  };

  struct Sides {
    int above = 0, below = 0;
  };

  Sides SidesOf(int i) const;
  Bounds BoundsOf(const ScaleTry& tried, Sides sides) const;
  Step StepAt(int i, const ScaleTry& tried, Sides sides, const Bounds& bounds, bool high) const;
  bool Move(int i, const ScaleTry& tried, Sides sides, const Bounds& bounds, Beyond beyond,
            FloatScale* pair) const;

  const LaneSearch& search_;
  const Isa isa_;
};

}  // namespace fuselite::kernels
