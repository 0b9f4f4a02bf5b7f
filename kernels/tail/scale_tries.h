// Pairs of scales for queries that the nearest float does not serve as it is: the floats beside it
// are tried, and sums are moved (float_scale.h).
//
// The bounds of a try say which addends are right for all steps, and which are for all but the step
// that binds most in one direction. Beyond the upper bound that step comes too early above zero, or
// too late below, and one of its sums is moved down; beyond the lower bound it is the other way
// round. With a sign the addend meets the same step on both sides. What lies so near to a bound
// that floats do not tell its side is left open.
#pragma once

#include <climits>
#include <optional>

#include "kernels/tail/scale_lanes.h"
#include "kernels/tail/scale_query.h"

namespace fuselite::kernels {

class ScaleTries {
 public:
  // For the queries of `search`, which stays where it is.
  ScaleTries(const LaneSearch& search, Isa isa) : search_(search), isa_(isa) {}

  struct Bounds : AddendBounds {
    bool low_below_zero = false, high_below_zero = false;  // where the steps are that bind most
  };
  struct Found {
    std::optional<FloatScale> pair;
    Bounds nearest;            // of the nearest float
    int least_open = INT_MAX;  // the least that a try which is left open may move (MovesOf)

    // No tried scale has a pair that moves less; where there is none, none has any.
    bool certain() const { return pair ? MovesOf(*pair) <= least_open : least_open == INT_MAX; }
  };
  // For query i with the nearest float.
  Found Nearest(int i) const;
  // Tries the floats beside it, too, until a pair moves nothing. `found` is Nearest(i).
  void TryNeighbours(int i, Found* found) const;

  // Beyond which of the bounds an addend is.
  struct Beyond {
    bool low = false, high = false;
  };

 private:
  struct Step {
    int k = 0;
    int64_t at = 0;  // its first sum, as seen from its side
    bool below_zero = false;
    double sum() const { return static_cast<double>(below_zero ? -at : at); }
  };

  struct Sides {
    int above = 0, below = 0;
  };

  void Try(int i, float scale, Bounds* bounds, Found* found) const;
  Sides SidesOf(int i) const;
  Bounds BoundsOf(const ScaleTry& tried, Sides sides) const;
  Step StepAt(int i, const ScaleTry& tried, Sides sides, const Bounds& bounds, bool high) const;
  bool OnlyUnmovedIsBetter(int i, const FloatScale& pair) const;
  bool Move(int i, const ScaleTry& tried, Sides sides, const Bounds& bounds, Beyond beyond,
            FloatScale* pair) const;

  const LaneSearch& search_;
  const Isa isa_;
};

}  // namespace fuselite::kernels
