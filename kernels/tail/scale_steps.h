// The steps of a scale: at which sums they are, and which floats put them there. What
// FindFloatScale (float_scale.h) searches with.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "kernels/tail/float_scale.h"
#include "runtime/cpu/isa.h"

namespace fuselite::kernels {

// Step k, counted from 1, is at the first sum behind the place first + (k - 1) distance, and below
// zero at its negative.
struct StepPlaces {
  double first, distance;
  double Of(int32_t k) const { return first + (k - 1) * distance; }
};

// So near to a whole sum doubles do not tell on which side of it a place is.
inline constexpr double kUncertain = 0x1p-16;

// Addends, the zero point left out.
struct AddendRange {
  double low, high;
  double width() const { return high - low; }
  double middle() const { return low + 0.5 * width(); }
};

// The floats next to the nearest one that are tried as scales, on each side of it.
inline constexpr int kNeighbours = 2;

// Up to how many steps are looked at, and to how many lanes lists of them are filled up.
inline constexpr int kMostSteps = 256, kStepLanes = 16;
// Every sum up to here is a float.
inline constexpr double kExactInFloat = 0x1p24;

// What is known of the steps 1 to `count` without placing them.
struct StepSpread {
  bool certain = false;  // all places are, in doubles
  AddendRange window{};  // with them the exact scale * sum + addend is right, halves rounded up
};
// Precondition: places.Of(count + kStepLanes + 1) is below kExactInFloat.
void FindSpread(const StepPlaces& places, int count, double scale, Isa isa, StepSpread* spread);

// The first sums of consecutive steps, and the sums one before. Behind them stand steps that are on
// the right side with all floats.
struct StepSums {
  alignas(64) std::array<float, kMostSteps + kStepLanes> at, before;
};

// Consecutive steps on one side of zero. Sums and results are seen from there: those below zero are
// negated.
struct SideSteps {
  bool below_zero = false;
  // The addend and the offset of results have the other sign than on the other side.
  bool mirrored = false;
  float offset = 0;
  float shift = 0;           // FloatScale::shift, negated as sums are
  int first = 1, count = 0;  // of steps
  StepSums* sums = nullptr;
};

// Places all of them. Precondition: that of FindSpread, and that all places are certain.
void PlaceSteps(const StepPlaces& places, const SideSteps& side, Isa isa);
// Fills up the lists behind steps that were placed one by one.
void PadSteps(const SideSteps& side);

// Which addends are right for all steps, and which are for all but the one that binds most in one
// direction. Exact up to 2^-24, roundings to floats considered. Where no addend is right, low is
// above high.
struct AddendBounds {
  double low, next_low, high, next_high;
};
AddendBounds BoundsOfAddends(std::span<const SideSteps> sides, float scale, Isa isa);

// Steps that floats take a sum too early, or too late.
struct MisplacedSteps {
  int count = 0;  // more than one: not all were counted
  int last = 0;   // its index on its side
};
struct Misplaced {
  MisplacedSteps early, late;
};
Misplaced FindMisplaced(const SideSteps& side, const FloatScale& pair, Isa isa);

}  // namespace fuselite::kernels
