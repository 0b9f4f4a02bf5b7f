#include "kernels/winograd/algorithm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/winograd/transforms.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/std_max-inl.h"
#include "kernels/winograd/channels-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The points of m = 4 and their powers.
constexpr float kP = 0.625f, kP2 = kP * kP, kP3 = kP2 * kP;
constexpr float kQ = 1.5f, kQ2 = kQ * kQ, kQ3 = kQ2 * kQ;

// B^T of one axis: d[0], d[step], ... become the terms of that axis.
template <WinogradTile kTile, class D, class V>
HWY_INLINE void InputAxis(D d, V* HWY_RESTRICT x, int step) {
  const auto at = [&](int i) HWY_ATTR -> V& { return x[i * step]; };
  if constexpr (kTile == WinogradTile{2, 1}) {
    const V d1 = at(1), d2 = at(2);
    at(0) = hn::Sub(at(0), d2);
    at(1) = hn::Add(d1, d2);
    at(2) = hn::Sub(d2, d1);
    at(3) = hn::Sub(at(3), d1);
  } else if constexpr (kTile == WinogradTile{2, 2}) {
    const V d2 = at(2);
    at(0) = hn::Sub(at(0), d2);
    at(4) = hn::Sub(at(4), d2);
  } else {
    const V p = hn::Set(d, kP), p2 = hn::Set(d, kP2), q = hn::Set(d, kQ), q2 = hn::Set(d, kQ2);
    const V sum = hn::Set(d, kP2 + kQ2), product = hn::Set(d, kP2 * kQ2);
    const V d1 = at(1), d2 = at(2), d3 = at(3), d4 = at(4);
    at(0) = hn::MulAdd(product, at(0), hn::NegMulAdd(sum, d2, d4));
    at(5) = hn::MulAdd(product, d1, hn::NegMulAdd(sum, d3, at(5)));
    const V even_p = hn::NegMulAdd(q2, d2, d4), odd_p = hn::NegMulAdd(q2, d1, d3);
    at(1) = hn::MulAdd(p, odd_p, even_p);
    at(2) = hn::NegMulAdd(p, odd_p, even_p);
    const V even_q = hn::NegMulAdd(p2, d2, d4), odd_q = hn::NegMulAdd(p2, d1, d3);
    at(3) = hn::MulAdd(q, odd_q, even_q);
    at(4) = hn::NegMulAdd(q, odd_q, even_q);
  }
}

// A^T of one axis: the first of x[0], x[step], ... become the outputs.
template <WinogradTile kTile, class D, class V>
HWY_INLINE void OutputAxis(D d, V* HWY_RESTRICT x, int step) {
  const auto at = [&](int i) HWY_ATTR -> V& { return x[i * step]; };
  if constexpr (kTile == WinogradTile{2, 1}) {
    const V sum = hn::Add(at(1), at(2)), difference = hn::Sub(at(1), at(2));
    at(0) = hn::Add(at(0), sum);
    at(1) = hn::Add(difference, at(3));
  } else if constexpr (kTile == WinogradTile{2, 2}) {
    at(0) = hn::Add(hn::Add(at(0), at(2)), at(1));
    at(1) = hn::Add(hn::Add(at(2), at(4)), at(3));
  } else {
    const V sum_p = hn::Add(at(1), at(2)), difference_p = hn::Sub(at(1), at(2));
    const V sum_q = hn::Add(at(3), at(4)), difference_q = hn::Sub(at(3), at(4));
    at(0) = hn::Add(hn::Add(at(0), sum_p), sum_q);
    at(1) = hn::MulAdd(hn::Set(d, kP), difference_p, hn::Mul(hn::Set(d, kQ), difference_q));
    at(2) = hn::MulAdd(hn::Set(d, kP2), sum_p, hn::Mul(hn::Set(d, kQ2), sum_q));
    at(3) =
        hn::MulAdd(hn::Set(d, kP3), difference_p, hn::MulAdd(hn::Set(d, kQ3), difference_q, at(5)));
  }
}

// G of one axis: the three of x[0], x[step], ... become the terms of that axis. Row i of G is 1, p,
// p^2 of the i-th point over the product of its distances to the other finite ones; infinity's is
// the last.
template <WinogradTile kTile, class D, class V>
HWY_INLINE void FilterAxis(D d, V* HWY_RESTRICT x, int step) {
  const auto at = [&](int i) HWY_ATTR -> V& { return x[i * step]; };
  const V g0 = at(0), g1 = at(1), g2 = at(2);
  // The rows of p and -p.
  const auto pair = [&](int i, double p, double scale) HWY_ATTR {
    const V even = hn::MulAdd(hn::Set(d, scale * p * p), g2, hn::Mul(hn::Set(d, scale), g0));
    const V odd = hn::Mul(hn::Set(d, scale * p), g1);
    at(i) = hn::Add(even, odd);
    at(i + 1) = hn::Sub(even, odd);
  };
  if constexpr (kTile == WinogradTile{2, 1}) {
    pair(1, 1, 0.5);
    at(3) = g2;
  } else if constexpr (kTile == WinogradTile{2, 2}) {
    at(1) = hn::Add(g0, g2);
    at(2) = g2;
    at(3) = g1;
  } else {
    constexpr double kPP = double{kP} * kP, kQQ = double{kQ} * kQ;
    pair(1, kP, 1 / (2 * kPP * (kPP - kQQ)));
    pair(3, kQ, 1 / (2 * kQQ * (kQQ - kPP)));
    at(0) = hn::Mul(hn::Set(d, 1 / (kPP * kQQ)), g0);
    at(5) = g2;
  }
}

// The channels [c, c + lanes), here and below.
template <WinogradTile kTile, class D>
HWY_INLINE void FilterChannels(D d, const WinogradFilter& filter, int64_t c) {
  constexpr int kFilters = kTile.axis_filters();
  const hn::Rebind<float, D> floats;
  hn::Vec<D> x[kFilters * kFilters];
#pragma GCC unroll 3
  for (int j = 0; j < kWinogradFilter; ++j) {
#pragma GCC unroll 3
    for (int i = 0; i < kWinogradFilter; ++i) {
      const float* tap = filter.taps + (i * kWinogradFilter + j) * filter.channels + c;
      x[i * kFilters + j] = hn::PromoteTo(d, hn::LoadU(floats, tap));
    }
    FilterAxis<kTile>(d, x + j, kFilters);
  }
#pragma GCC unroll 6
  for (int i = 0; i < kFilters; ++i) {
    FilterAxis<kTile>(d, x + i * kFilters, 1);
#pragma GCC unroll 6
    for (int j = 0; j < kFilters; ++j) {
      hn::StoreU(hn::DemoteTo(floats, x[i * kFilters + j]), floats,
                 filter.to + (i * kFilters + j) * filter.filter_step + c);
    }
  }
}

template <WinogradTile kTile, class D>
HWY_INLINE void InputChannels(D d, const WinogradInput& tile, int64_t c) {
  constexpr int kInputs = kTile.inputs();
  hn::Vec<D> x[kInputs * kInputs];
#pragma GCC unroll 36
  for (int i = 0; i < kInputs * kInputs; ++i) x[i] = hn::LoadU(d, tile.pixels[i] + c);
#pragma GCC unroll 6
  for (int i = 0; i < kInputs; ++i) InputAxis<kTile>(d, x + i, kInputs);
#pragma GCC unroll 6
  for (int i = 0; i < kInputs; ++i) {
    InputAxis<kTile>(d, x + i * kInputs, 1);
#pragma GCC unroll 6
    for (int j = 0; j < kInputs; ++j) {
      hn::StoreU(x[i * kInputs + j], d, tile.to + (i * kInputs + j) * tile.term_step + c);
    }
  }
}

template <WinogradTile kTile, class D>
HWY_INLINE void OutputChannels(D d, const WinogradOutput& tile, int64_t c) {
  constexpr int kInputs = kTile.inputs();
  hn::Vec<D> x[kInputs * kInputs];
#pragma GCC unroll 36
  for (int i = 0; i < kInputs * kInputs; ++i) {
    x[i] = hn::LoadU(d, tile.sums + i * tile.term_step + c);
  }
#pragma GCC unroll 6
  for (int i = 0; i < kInputs; ++i) OutputAxis<kTile>(d, x + i, kInputs);
  const auto bias = tile.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, tile.bias + c);
  const auto min = hn::Set(d, tile.min), max = hn::Set(d, tile.max);
#pragma GCC unroll 4
  for (int i = 0; i < kTile.outputs; ++i) {
    OutputAxis<kTile>(d, x + i * kInputs, 1);
#pragma GCC unroll 4
    for (int j = 0; j < kTile.outputs; ++j) {
      const auto y = hn::Add(x[i * kInputs + j], bias);
      hn::StoreU(StdMin(StdMax(y, min), max), d, tile.pixels[i * kTile.outputs + j] + c);
    }
  }
}

template <WinogradTile kTile>
void TransformInput(const WinogradInput& tile) {
  ForChannels<float>(tile.channels,
                     [&](auto d, int64_t c) HWY_ATTR { InputChannels<kTile>(d, tile, c); });
}

template <WinogradTile kTile>
void TransformOutput(const WinogradOutput& tile) {
  ForChannels<float>(tile.channels,
                     [&](auto d, int64_t c) HWY_ATTR { OutputChannels<kTile>(d, tile, c); });
}

template <WinogradTile kTile>
void TransformFilter(const WinogradFilter& filter) {
  ForChannels<double>(filter.channels,
                      [&](auto d, int64_t c) HWY_ATTR { FilterChannels<kTile>(d, filter, c); });
}

template <WinogradTile kTile>
constexpr WinogradTransforms kTransformsOf = {TransformInput<kTile>, TransformOutput<kTile>,
                                              TransformFilter<kTile>};

const WinogradTransforms* Transforms(const WinogradTile& tile) {
  if (tile.stride == 2) return &kTransformsOf<WinogradTile{2, 2}>;
  return tile.outputs == 2 ? &kTransformsOf<WinogradTile{2, 1}>
                           : &kTransformsOf<WinogradTile{4, 1}>;
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#if HWY_ONCE
namespace fuselite::kernels {

const WinogradTransforms* FindWinogradTransforms(const WinogradTile& tile, Isa isa) {
  static constexpr auto kTransforms = FUSELITE_SIMD_TABLE(Transforms);
  auto* const transforms = kTransforms.For(isa);
  return transforms == nullptr ? nullptr : transforms(tile);
}

}  // namespace fuselite::kernels
#endif  // HWY_ONCE
