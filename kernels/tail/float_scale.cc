#include "kernels/tail/float_scale.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/quantization.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tail/float_scale.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "runtime/cpu.h"
#include "runtime/float_state.h"

#ifndef FUSELITE_KERNELS_TAIL_FLOAT_SCALE_ONCE_
#define FUSELITE_KERNELS_TAIL_FLOAT_SCALE_ONCE_
namespace fuselite::kernels {

// Steps are so near to a whole sum that doubles do not tell on which side.
inline constexpr double kUncertain = 0x1p-16;
inline constexpr int kMaxSteps = 256, kMostLanes = 8;

// Which addends, the zero point left out, put every step where it belongs: between the two, up to
// roundings.
struct AddendWindow {
  double low, high;
};

// Step k, counted from 1: sums of at least sums[k - 1], the least whole number from first + (k - 1)
// distance on, are on it, or as far below zero.
struct Steps {
  double first = 0, distance = 1;
  int count = 0;
  bool certain = true;  // of all sums
  AddendWindow window;  // with the scale that they were placed with
  alignas(64) std::array<double, kMaxSteps + kMostLanes> sums;
};

struct FloatCheck {
  FloatScale pair;
  float offset = 0;         // of the results
  bool both_sides = false;  // steps below zero count, and the addend has no sign
};

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::CappedTag<double, kMostLanes>;
using Double = hn::Vec<Doubles>;

HWY_INLINE double Least(Double v) { return hn::GetLane(hn::MinOfLanes(Doubles(), v)); }
HWY_INLINE double Most(Double v) { return hn::GetLane(hn::MaxOfLanes(Doubles(), v)); }

// f(index, numbers of the steps from index + 1 on), the last step repeated up to a whole vector,
// until it gives false; whether it never did.
template <class F>
HWY_INLINE bool ForSteps(int count, F f) {
  const Doubles d;
  const auto last = hn::Set(d, count), lanes = hn::Set(d, static_cast<double>(hn::Lanes(d)));
  auto k = hn::Iota(d, 1);
  for (int i = 0; i < count; i += static_cast<int>(hn::Lanes(d))) {
    if (!f(i, hn::Min(k, last))) return false;
    k = hn::Add(k, lanes);
  }
  return true;
}

// Writes the sums and the window of addends with `scale`.
void PlaceSteps(double scale, Steps* steps) {
  const Doubles d;
  const auto distance = hn::Set(d, steps->distance);
  const auto before = hn::Set(d, steps->first - steps->distance);
  const auto s = hn::Set(d, scale), half = hn::Set(d, 0.5);
  auto nearest = hn::Set(d, 1.0), furthest = hn::Zero(d);
  auto low = hn::Set(d, -1e300), high = hn::Set(d, 1e300);
  ForSteps(steps->count, [&](int i, Double k) HWY_ATTR {
    const auto at = hn::MulAdd(k, distance, before);
    const auto sum = hn::Ceil(at);
    const auto beyond = hn::Sub(sum, at);
    nearest = hn::Min(nearest, beyond);
    furthest = hn::Max(furthest, beyond);
    hn::Store(sum, d, steps->sums.data() + i);
    const auto addend = hn::NegMulAdd(sum, s, hn::Sub(k, half));
    low = hn::Max(low, addend);
    high = hn::Min(high, addend);
    return true;
  });
  steps->certain = Least(nearest) > kUncertain && Most(furthest) < 1 - kUncertain;
  steps->window = {Most(low), Least(high) + scale};
}

AddendWindow FindWindow(const Steps& steps, double scale) {
  const Doubles d;
  const auto s = hn::Set(d, scale), half = hn::Set(d, 0.5);
  auto low = hn::Set(d, -1e300), high = hn::Set(d, 1e300);
  ForSteps(steps.count, [&](int i, Double k) HWY_ATTR {
    // What reaches k - 1/2 at the step's first sum.
    const auto addend = hn::NegMulAdd(hn::Load(d, steps.sums.data() + i), s, hn::Sub(k, half));
    low = hn::Max(low, addend);
    high = hn::Min(high, addend);
    return true;
  });
  return {Most(low), Least(high) + scale};
}

bool HoldsAtSteps(const Steps& steps, const FloatCheck& check) {
  const Doubles d;
  const hn::Rebind<float, Doubles> df;
  const auto scale = hn::Set(df, check.pair.scale), addend = hn::Set(df, check.pair.addend);
  const auto offset = hn::Set(df, check.offset);
  const auto one = hn::Set(d, 1.0);
  return ForSteps(steps.count, [&](int i, Double k) HWY_ATTR {
    const auto sum = hn::Load(d, steps.sums.data() + i);
    const auto at = hn::DemoteTo(df, sum), before = hn::DemoteTo(df, hn::Sub(sum, one));
    const auto step = hn::DemoteTo(df, k);
    const auto up = hn::Add(offset, step);
    auto holds = hn::And(hn::Ge(hn::Round(hn::MulAdd(at, scale, addend)), up),
                         hn::Lt(hn::Round(hn::MulAdd(before, scale, addend)), up));
    if (check.both_sides) {
      const auto down = hn::Sub(offset, step);
      holds = hn::And(holds, hn::Le(hn::Round(hn::NegMulAdd(at, scale, addend)), down));
      holds = hn::And(holds, hn::Gt(hn::Round(hn::NegMulAdd(before, scale, addend)), down));
    }
    return hn::AllTrue(df, holds);
  });
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

constexpr auto kPlaceSteps = FUSELITE_SIMD_TABLE(PlaceSteps);
constexpr auto kFindWindow = FUSELITE_SIMD_TABLE(FindWindow);
constexpr auto kHoldsAtSteps = FUSELITE_SIMD_TABLE(HoldsAtSteps);

// The machine's own level: what is found does not depend on it.
const Isa kIsa = DetectIsa();
bool FusesMultiplyAdd() { return Includes(kIsa, Isa::kAvx2) || Includes(kIsa, Isa::kNeon); }

// The steps that sums up to `largest` reach, and the next one, of `steps`.
int Reached(double scale, int64_t largest, int32_t steps) {
  if (steps <= 0 || largest <= 0) return 0;
  const double reached = std::floor(static_cast<double>(largest) * scale) + 2;
  return static_cast<int>(std::min<double>(reached, steps));
}

void FindDistance(const SumScale& scale, Steps* steps) {
  if (scale.real > 0) {
    steps->distance = 1 / scale.real;
    steps->first = 0.5 * steps->distance;
    return;
  }
  const int right = std::max(-scale.shift, 0), left = std::max(scale.shift, 0);
  const double unit = std::ldexp(1.0, 30 - left) / scale.multiplier;
  steps->distance = std::ldexp(unit, right + 1);
  steps->first = (std::ldexp(1.0, right) - (right > 0 ? 1 : 0)) * unit;
}

// The least of the sums around `near` on step k, or as far below zero. Among all of 32 bits.
int64_t FirstOnStep(const SumScale& scale, double near, int k, bool below) {
  int64_t sum = std::llround(near) - 1;
  for (; sum <= std::llround(near); ++sum) {
    const auto x = static_cast<int32_t>(below ? -sum : sum);
    if ((below ? -scale.Apply(x) : scale.Apply(x)) >= k) break;
  }
  return sum;
}

// Corrects the sums of which doubles are not sure. False where a step below zero is at another
// distance from it than the one above.
bool SettleSteps(const SumScale& scale, int above, int below, Steps* steps) {
  for (int k = 1; k <= steps->count; ++k) {
    const double at = steps->first + (k - 1) * steps->distance;
    if (at > INT32_MAX - 2) break;  // no sum is there
    if (std::abs(at - std::round(at)) > kUncertain) continue;
    const int64_t up = FirstOnStep(scale, at, k, false), down = FirstOnStep(scale, at, k, true);
    if (up != down && k <= above && k <= below) return false;
    steps->sums[k - 1] = static_cast<double>(k <= above ? up : down);
  }
  return true;
}

// A window that is this much wider on both sides than a point needs no check: results are below 256
// and rounded to 24 bits.
constexpr double kRounding = 0x1p-17;
constexpr double kExactInFloat = 0x1p24;
// In windows that are narrower hardly any pair was found.
constexpr double kHopeless = 0x1p-23;

class FloatScaleSearch {
 public:
  explicit FloatScaleSearch(const FloatScaleQuery& query) : query_(query) {}

  std::optional<FloatScale> Run() {
    const double value = query_.scale.value();
    const int32_t zero_point = query_.zero_point;
    const int above = Reached(value, query_.largest, query_.max - zero_point);
    const int below = Reached(value, -query_.least, zero_point - query_.min);
    steps_.count = std::max(above, below);
    const double farthest = static_cast<double>(std::max(query_.largest, -query_.least)) * value;
    // Nothing is reached but zero: what moves steps towards it is at most 1/4 of one.
    if (farthest < 0.125 || steps_.count == 0) return FloatScale{0, Offset()};
    if (farthest >= 0x1p30) return std::nullopt;
    FindDistance(query_.scale, &steps_);
    const auto nearest = static_cast<float>(value);
    kPlaceSteps.For(kIsa)(nearest, &steps_);
    if (!steps_.certain) {
      if (!SettleSteps(query_.scale, above, below, &steps_)) return std::nullopt;
      steps_.window = kFindWindow.For(kIsa)(steps_, nearest);
    }
    both_sides_ = !query_.addend_has_sign && below > 0;
    if (const auto pair = WithScale(nearest, steps_.window, {0.5, 0.25, 0.75})) return pair;
    for (const float scale : {std::nextafterf(nearest, 0), std::nextafterf(nearest, INFINITY)}) {
      const AddendWindow window = kFindWindow.For(kIsa)(steps_, scale);
      if (const auto pair = WithScale(scale, window, {0.5})) return pair;
    }
    return std::nullopt;
  }

 private:
  float Offset() const {
    return query_.addend_has_sign ? 0.0f : static_cast<float>(query_.zero_point);
  }

  // Addends at these parts of the window.
  std::optional<FloatScale> WithScale(float scale, AddendWindow window,
                                      std::initializer_list<double> parts) const {
    if (both_sides_) {
      window = {std::max(window.low, -window.high), std::min(window.high, -window.low)};
    }
    if (query_.addend_has_sign) {
      window = {std::max(window.low, 0.0), std::min(window.high, 0.5)};
    }
    const double width = window.high - window.low;
    if (width < kHopeless) return std::nullopt;
    for (const double part : parts) {
      const double wanted = Offset() + window.low + part * width;
      const FloatScale pair{scale, static_cast<float>(wanted)};
      const double room = 0.5 * width - std::abs(pair.addend - wanted);
      if (part == 0.5 && room > kRounding && steps_.sums[steps_.count - 1] < kExactInFloat) {
        return pair;
      }
      if (kHoldsAtSteps.For(kIsa)(steps_, {pair, Offset(), both_sides_})) return pair;
    }
    return std::nullopt;
  }

  const FloatScaleQuery& query_;
  Steps steps_;
  bool both_sides_ = false;
};

}  // namespace

double SumScale::value() const {
  return real > 0 ? real : std::ldexp(static_cast<double>(multiplier), shift - 31);
}

int32_t SumScale::Apply(int32_t sum) const {
  if (real > 0) return static_cast<int32_t>(std::round(sum * real));
  return MultiplyByQuantizedMultiplier(sum, multiplier, shift);
}

std::optional<FloatScale> FindFloatScale(const FloatScaleQuery& query) {
  if (!FusesMultiplyAdd()) return std::nullopt;
  const DefaultFloatState state;
  return FloatScaleSearch(query).Run();
}

}  // namespace fuselite::kernels
#endif  // HWY_ONCE
