// The bounds of many scales' addends, side by side: those of 16 scales with 256 steps take 0.23 us
// on a Zen 5. Lanes without a query are looked at only where they share a vector with others: a
// vector of AVX2 has eight channels, half of the lanes.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/tail/scale_steps.h"
#include "runtime/cpu/isa.h"

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

// Half a unit in the last of the 24 bits of each value that steps 1 to `count` above zero have,
// results moved by `offset`; negative where the value is even (KeepBounds in scale_steps.cc).
struct HalfUnits {
  HalfUnits(int count, float offset, Isa isa);

  int count;
  Lanes<float> of_steps[kMostSteps / kStepLanes + 1];  // behind the last step of any value
};

// The bounds that each lane has.
struct LaneBounds {
  Lanes<float> low, high;  // as AddendBounds; exact up to 2^-23
  // The least sum of a place's fraction and kUncertain, wrapped around at 1: in 2^-32, the sign bit
  // flipped. Places near a whole sum, on either side, have the least ones.
  Lanes<int32_t> least;

  // As StepSpread::certain, without which bounds do not hold.
  static constexpr int32_t kMargin = static_cast<int32_t>(kUncertain * 0x1p32);
  static constexpr int32_t kLeastCertain = INT32_MIN + 2 * kMargin;
  bool certain(int i) const { return least[i] > kLeastCertain; }
};
// Finds the bounds of the steps that `half_units` has, above zero, for the first `count` lanes.
// What stands in the other lanes is undefined.
void BoundsOfLanes(const ScaleLanes& lanes, int count, const HalfUnits& half_units, Isa isa,
                   LaneBounds* bounds);

// The pairs of scales that need no moved sum, with the nearest floats.
struct LanePairs {
  Lanes<float> addend;
  uint32_t found = 0;  // bit i: lane i has one; else its addend is none
};
// Finds pairs for the first `count` lanes, within the bounds above and below zero, each null where
// no lane has steps there; those below are seen from there. Results are moved by `offset`. With a
// sign addends are within [0, 1/2]. What lies so near to a bound that floats do not tell its side
// is not found.
void PairsOfLanes(const QueryLanes& queries, const ScaleLanes& nearest, int count,
                  const LaneBounds* above, const LaneBounds* below, float offset, bool has_sign,
                  Isa isa, LanePairs* pairs);

// The distance from a bound from which on it is sure on which side of it an addend is: bounds are
// exact up to 2^-23 of 1 or the scale.
inline double Inexact(float scale) { return scale > 1 ? 0x1p-22 * scale : 0x1p-22; }

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
