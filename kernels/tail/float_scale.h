// Requantization in single floats, proven equal to the integer one.
//
// What TFLite does to an int32 sum before it clamps the result to 8 bits is a monotone step
// function of the sum, with at most 255 steps within the clamp. So is
//   round(fma(float(sum), scale, addend)),
// rounding to the nearest, ties to even: two functions that agree on both sides of each step agree
// everywhere. TFLite rounds twice where it shifts to the right, first to the nearest multiple of
// 2^-e and then half away from zero: its k-th step up, and down, is at
//   ((2k - 1) 2^e - 1) 2^30 / multiplier,
// half of 2^31 / multiplier nearer to zero than one rounding would have it. The addend makes up
// for that, and has the sum's sign where steps on both sides of zero count.
//
// An addend that holds a zero point of -128 has no more than 17 bits behind the point. So the sums
// take the zero point instead, as the whole number of sums that comes nearest to it, which costs
// nothing where they begin with a bias: the addend is what that leaves, with all of its 24 bits.
//
// A float has 24 bits, and steps may be so near to the middle between two sums' products that it
// takes one of them a sum too early or too late. That is wrong at one sum alone, and the formula
// gives what is right there for the sum's neighbour: the sum before an early step is moved down by
// one, the first sum of a late step up by one. The proof is the same: at all other sums the two
// functions agree on both sides of each step, and the moved sums are computed.
#pragma once

#include <optional>
#include <span>

#include "runtime/cpu/isa.h"
#include "runtime/tensor.h"

namespace fuselite::kernels {

// The scale from sums to steps, zero point and clamp left out.
struct SumScale {
  // MultiplyByQuantizedMultiplier(sum, multiplier, shift), multiplier not negative.
  int32_t multiplier = 0, shift = 0;
  // Or instead, where it is positive: real * sum in double precision, rounded half away from zero.
  double real = 0;

  double value() const;
  // Precondition: the result fits into 32 bits.
  int32_t Apply(int32_t sum) const;
};

struct FloatScaleQuery {
  SumScale scale;
  int64_t least = INT32_MIN, largest = INT32_MAX;  // of the sums that occur
  int32_t zero_point = 0, min = 0, max = 0;        // the clamp, zero point included; at most 8 bits
  // The addend takes the sum's sign, and the zero point is added to what comes out. Else the addend
  // holds the zero point; then a fixed-point scale must have its clamp at or above the zero point.
  bool addend_has_sign = false;
};

// With addend_has_sign the addend is within [0, 1/2], so that adding it to nothing gives 0.
struct FloatScale {
  // Stand for no moved sum: as floats, these and the sums beside them are the same, so that moving
  // them changes nothing.
  static constexpr int32_t kNoneDown = INT32_MAX, kNoneUp = INT32_MIN;

  float scale = 0, addend = 0;
  // What is added to every sum before all else, and is part of the sums below; 0 with
  // addend_has_sign.
  int32_t shift = 0;
  // The sums of which one is subtracted, and to which one is added, before the formula.
  int32_t down = kNoneDown, up = kNoneUp;

  bool moves_down() const { return down != kNoneDown; }
  bool moves_up() const { return up != kNoneUp; }
};

// Whether kernels on it fuse a multiplication and an addition.
inline bool FusesMultiplyAdd(Isa isa) { return isa.has(Feature::kAvx2) || isa.has(Feature::kNeon); }

// The fewest moved sums with the nearest float and its neighbours, none for nearly all scales; of
// two ways to move one, mostly that which moves it down. nullopt where more than one would have to
// be moved in a direction; and always where `isa` cannot fuse a multiplication and an addition.
// What is found may depend on it, but never what that computes.
// Takes 0.05 microseconds with AVX-512 where the steps' spread shows that there is room, 0.1 where
// each of 128 steps is looked at, and up to 0.4 where no addend fits the nearest float.
// Precondition: DefaultFloatState, under which the result holds, too.
std::optional<FloatScale> FindFloatScale(const FloatScaleQuery& query, Isa isa);

// How long a vector's pairs are sought.
enum class FloatScaleEffort {
  kFewestMoves,  // until what they move is least
  // A pair that moves sums ends the search for its channel wherever it may: 29% fewer instructions
  // for the 25,100 channels of an unrolled LSTM.
  kFirstPair,
  // Pairs that move nothing and are found side by side, without a look at the steps of single
  // scales: a third of the instructions.
  kPlain,
};

// FindFloatScale for up to kMostFloatScales queries with one zero point, clamp and kind of addend,
// one pair for each, or none for all: the pairs are one vector's, whose code is that of the channel
// that asks for most. It moves sums down, or down and up, as soon as one of them does; those found
// later may then move as many where a longer search would have found a pair that moves fewer. With
// kFewestMoves the vector never moves more than the pairs of FindFloatScale would.
inline constexpr int kMostFloatScales = 16;
void FindFloatScales(std::span<const FloatScaleQuery> queries, Isa isa, FloatScaleEffort effort,
                     std::span<std::optional<FloatScale>> pairs);

}  // namespace fuselite::kernels
