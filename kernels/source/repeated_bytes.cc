#include "kernels/source/repeated_bytes.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/source/repeated_bytes.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"

#ifndef FUSELITE_KERNELS_SOURCE_REPEATED_BYTES_ONCE_
#define FUSELITE_KERNELS_SOURCE_REPEATED_BYTES_ONCE_
namespace fuselite::kernels {

inline void RepeatOneByOne(const uint8_t* from, int64_t n, int32_t times,
                           const RepeatedBytes::Order& /*order*/, uint8_t* to) {
  for (int64_t i = 0; i < n; ++i, to += times) std::memset(to, from[i], times);
}

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The last block may overlap the one before.
void RepeatByBlocks(const uint8_t* from, int64_t n, int32_t times,
                    const RepeatedBytes::Order& order, uint8_t* to) {
  constexpr int64_t kBlock = RepeatedBytes::kBlock;
  const hn::FixedTag<uint8_t, kBlock> d;
  if (times > RepeatedBytes::kMostLookedUp || n < kBlock) {
    return RepeatOneByOne(from, n, times, order, to);
  }
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t first = std::min(begin, n - kBlock);
    const auto bytes = hn::LoadU(d, from + first);
    uint8_t* const out = to + first * times;
    for (int64_t b = 0; b < times; ++b) {
      const auto places = hn::LoadU(d, order.data() + b * kBlock);
      hn::StoreU(hn::TableLookupBytes(bytes, places), d, out + b * kBlock);
    }
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

constexpr auto kRepeat = FUSELITE_SIMD_TABLE(RepeatByBlocks);

}  // namespace

RepeatedBytes::RepeatedBytes(int32_t times, Isa isa) : times_(times), function_(kRepeat.For(isa)) {
  if (function_ == nullptr) function_ = RepeatOneByOne;
  if (times > kMostLookedUp) return;
  for (int32_t b = 0; b < kBlock * times; ++b) order_[b] = static_cast<uint8_t>(b / times);
}

}  // namespace fuselite::kernels
#endif
