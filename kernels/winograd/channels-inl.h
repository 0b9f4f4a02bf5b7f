// The channels of a tile, as Winograd's transforms go through them.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_WINOGRAD_CHANNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_WINOGRAD_CHANNELS_INL_H_
#undef FUSELITE_KERNELS_WINOGRAD_CHANNELS_INL_H_
#else
#define FUSELITE_KERNELS_WINOGRAD_CHANNELS_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Whole vectors, the last one over channels of the one before: a channel does not depend on its
// lane. Fewer channels than a vector's take half of one, down to 16 bytes, and below that go one by
// one.
template <class D, class Body>
HWY_INLINE void ForChannelsBy(D d, int64_t channels, const Body& body) {
  using T = hn::TFromD<D>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (channels < lanes) {
    if constexpr (hn::MaxLanes(D()) * sizeof(T) > 16) {
      return ForChannelsBy(hn::Half<D>(), channels, body);
    }
    const hn::CappedTag<T, 1> one;
    for (int64_t c = 0; c < channels; ++c) body(one, c);
    return;
  }
  int64_t c = 0;
  for (; c + lanes <= channels; c += lanes) body(d, c);
  if (c < channels) body(d, channels - lanes);
}

template <class T, class Body>
HWY_INLINE void ForChannels(int64_t channels, const Body& body) {
  ForChannelsBy(hn::ScalableTag<T>(), channels, body);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif
