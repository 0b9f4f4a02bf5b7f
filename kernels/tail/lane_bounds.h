// The bounds of many scales' addends, side by side: those of 16 scales with 256 steps take 0.23 us
// on a Zen 5.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/tail/scale_steps.h"
#include "runtime/isa.h"

namespace fuselite::kernels {

template <class T>
struct alignas(64) Lanes : std::array<T, kStepLanes> {};

// Queries of a vector, and where their steps are. Nothing is cleared: that took as long as to place
// the steps.
struct QueryLanes {
  // What is asked, zeros in unused lanes.
  Lanes<double> scale;
  Lanes<double> first_part;  // StepPlaces::first, of its distance
  Lanes<double> least, largest;
  // What PlaceLanes finds.
  Lanes<double> first, distance;  // StepPlaces
  Lanes<double> above, below;     // steps that count on both sides of zero
  Lanes<double> shift;            // FloatScale::shift

  // Lane i has steps, whose first sums are all floats. Else nothing of it is to be read.
  bool has_steps(int i) const { return above[i] + below[i] > 0; }
  StepPlaces places(int i) const { return {first[i], distance[i]}; }
};

// The nearest floats to the scales of queries, and how far from their steps sums are with them.
struct ScaleLanes {
  Lanes<float> scale;
  Lanes<float> start, drift;          // of what steps are off by
  Lanes<int32_t> fraction, distance;  // of places, in 2^-32; the fraction's sign bit is flipped
};

// Places the steps, of which up to `above` and `below` are within the clamp, where results are
// moved by `offset`, and takes for each lane the float that is nearest to its scale.
void PlaceLanes(int above, int below, float offset, Isa isa, QueryLanes* queries,
                ScaleLanes* nearest);

// Of the values of steps 1 to `count` above zero, results moved by `offset`: half a unit in the
// last of their 24 bits, negative where the value is even; see KeepBounds in scale_steps.cc.
struct HalfUnits {
  HalfUnits(int count, float offset, Isa isa);

  int count;
  Lanes<float> of_steps[kMostSteps / kStepLanes + 1];  // behind the last step of any value
};

// The bounds that each lane has.
struct LaneBounds {
  Lanes<float> low, high;          // as AddendBounds; exact up to 2^-23
  Lanes<int32_t> least, greatest;  // fractions less 1/2, in 2^-32

  // As StepSpread::certain, without which bounds do not hold.
  bool certain(int i) const {
    constexpr double kSurely = 0x1p31 - kUncertain * 0x1p32;
    return least[i] > -kSurely && greatest[i] < kSurely;
  }
};
// Those of the steps that `half_units` has, above zero.
void BoundsOfLanes(const ScaleLanes& lanes, const HalfUnits& half_units, Isa isa,
                   LaneBounds* bounds);

// One query's steps with one scale.
struct ScaleTry {
  float scale, start, drift;
  int32_t fraction, distance;  // as ScaleLanes

  static ScaleTry Of(const ScaleLanes& lanes, int lane, const StepPlaces& places, float scale);
};
// The bounds of its first `count` steps, exact up to 2^-23. Precondition: places are certain
// (LaneBounds), and half_units has as many.
AddendBounds BoundsOfTry(const ScaleTry& tried, int count, const HalfUnits& half_units, Isa isa);
// The step among them that has `bound` as its lower bound (or else its upper one), which is one of
// BoundsOfTry's.
int StepOfBound(const ScaleTry& tried, int count, const HalfUnits& half_units, double bound,
                bool is_lower, Isa isa);

}  // namespace fuselite::kernels
