#include "kernels/winograd/integer_algorithm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/winograd/integer_transforms.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/winograd/channels-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int kSide = WinogradTile{2, 1}.inputs();

// The matrices along one axis: x[0], x[step], ...
template <class V>
HWY_INLINE void InputAxis(V* HWY_RESTRICT x, int step) {
  const V d1 = x[step], d2 = x[2 * step];
  x[0] = hn::Sub(x[0], d2);
  x[step] = hn::Add(d1, d2);
  x[2 * step] = hn::Sub(d2, d1);
  x[3 * step] = hn::Sub(x[3 * step], d1);
}

template <class V>
HWY_INLINE void OutputAxis(V* HWY_RESTRICT x, int step) {
  const V sum = hn::Add(x[step], x[2 * step]), difference = hn::Sub(x[step], x[2 * step]);
  x[0] = hn::Add(x[0], sum);
  x[step] = hn::Add(difference, x[3 * step]);
}

template <class V>
HWY_INLINE void FilterAxis(V* HWY_RESTRICT x, int step) {
  const V g0 = x[0], g1 = x[step], g2 = x[2 * step];
  const V even = hn::Add(g0, g2);
  x[0] = hn::Add(g0, g0);
  x[step] = hn::Add(even, g1);
  x[2 * step] = hn::Sub(even, g1);
  x[3 * step] = hn::Add(g2, g2);
}

template <class D>
HWY_INLINE hn::Vec<D> Widened(D d, DataType type, const std::byte* values, int64_t at) {
  if (type == DataType::kInt16) {
    return hn::LoadU(d, reinterpret_cast<const int16_t*>(values) + at);
  }
  if (type == DataType::kInt8) {
    const hn::Rebind<int8_t, D> narrow;
    return hn::PromoteTo(d, hn::LoadU(narrow, reinterpret_cast<const int8_t*>(values) + at));
  }
  const hn::Rebind<uint8_t, D> narrow;
  return hn::PromoteTo(d, hn::LoadU(narrow, reinterpret_cast<const uint8_t*>(values) + at));
}

// Channels [c, c + lanes), here and below. A zero point is in four of the inputs of term (1, 1),
// and in all other terms as often added as subtracted.
template <class D>
HWY_INLINE void InputChannels(D d, const IntegerWinogradInput& tile, int64_t c) {
  hn::Vec<D> x[kIntegerTileTerms];
#pragma GCC unroll 16
  for (int i = 0; i < kIntegerTileTerms; ++i)
    x[i] = Widened(d, tile.values.type, tile.pixels[i], c);
#pragma GCC unroll 4
  for (int i = 0; i < kSide; ++i) InputAxis(x + i, kSide);
#pragma GCC unroll 4
  for (int i = 0; i < kSide; ++i) InputAxis(x + i * kSide, 1);
  const auto zero_points = static_cast<int16_t>(4 * tile.values.zero_point);
  x[kSide + 1] = hn::Sub(x[kSide + 1], hn::Set(d, zero_points));
#pragma GCC unroll 16
  for (int i = 0; i < kIntegerTileTerms; ++i) hn::StoreU(x[i], d, tile.to + i * tile.term_step + c);
}

template <class D>
HWY_INLINE void FilterChannels(D d, const IntegerWinogradFilter& filter, int64_t c) {
  const auto zero_point = hn::Set(d, filter.values.zero_point);
  hn::Vec<D> x[kIntegerTileTerms];
  for (int j = 0; j < kWinogradFilter; ++j) {
    for (int i = 0; i < kWinogradFilter; ++i) {
      const int64_t tap = (i * kWinogradFilter + j) * filter.channels + c;
      x[i * kSide + j] = hn::Sub(Widened(d, filter.values.type, filter.taps, tap), zero_point);
    }
    FilterAxis(x + j, kSide);
  }
  for (int i = 0; i < kSide; ++i) {
    FilterAxis(x + i * kSide, 1);
    for (int j = 0; j < kSide; ++j) {
      hn::StoreU(x[i * kSide + j], d, filter.to + (i * kSide + j) * filter.term_step + c);
    }
  }
}

template <class D>
HWY_INLINE void OutputChannels(D d, const IntegerWinogradOutput& tile, int64_t c) {
  hn::Vec<D> x[kIntegerTileTerms];
#pragma GCC unroll 16
  for (int i = 0; i < kIntegerTileTerms; ++i) {
    x[i] = hn::LoadU(d, tile.sums + i * tile.term_step + c);
  }
#pragma GCC unroll 4
  for (int i = 0; i < kSide; ++i) OutputAxis(x + i, kSide);
  const auto bias = tile.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, tile.bias + c);
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    OutputAxis(x + i * kSide, 1);
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      const auto sum = hn::ShiftRight<2>(x[i * kSide + j]);
      hn::StoreU(hn::Add(sum, bias), d, tile.pixels[i * 2 + j] + c);
    }
  }
}

void TransformInput(const IntegerWinogradInput& tile) {
  ForChannels<int16_t>(tile.channels,
                       [&](auto d, int64_t c) HWY_ATTR { InputChannels(d, tile, c); });
}

void TransformOutput(const IntegerWinogradOutput& tile) {
  ForChannels<int32_t>(tile.channels,
                       [&](auto d, int64_t c) HWY_ATTR { OutputChannels(d, tile, c); });
}

void TransformFilter(const IntegerWinogradFilter& filter) {
  ForChannels<int16_t>(filter.channels,
                       [&](auto d, int64_t c) HWY_ATTR { FilterChannels(d, filter, c); });
}

const IntegerWinogradTransforms* IntegerTransforms() {
  static constexpr IntegerWinogradTransforms kTransforms = {TransformInput, TransformOutput,
                                                            TransformFilter};
  return &kTransforms;
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#if HWY_ONCE
namespace fuselite::kernels {

const IntegerWinogradTransforms* FindIntegerWinogradTransforms(Isa isa) {
  static constexpr auto kTransforms = FUSELITE_SIMD_TABLE(IntegerTransforms);
  auto* const transforms = kTransforms.For(isa);
  return transforms == nullptr ? nullptr : transforms();
}

}  // namespace fuselite::kernels
#endif  // HWY_ONCE
