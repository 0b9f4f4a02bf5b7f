#include "kernels/depthwise_conv2d/block_s16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/depthwise_conv2d/block_s16.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/gemm/add_terms-inl.h"
#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Two vectors of sums for each pixel, two of weights and two of pixels: 20 of AVX-512's 32
// registers, 12 of 16. NEON keeps two sums for each.
#if HWY_TARGET == HWY_AVX3
constexpr int kMaxCount = 8;
#else
constexpr int kMaxCount = 4;
#endif

// Interleaving works within blocks of 128 bits: of each block's channels, `low` has the sums of the
// first half and `high` of the second. Stores them in order.
template <class D>
HWY_INLINE void StoreInterleaved(D d, hn::Vec<D> low, hn::Vec<D> high, const int32_t* bias,
                                 int32_t* out) {
  constexpr size_t kLanes = hn::MaxLanes(D());
  auto first = low, second = high;
  if constexpr (kLanes > 4) {
    first = hn::ConcatLowerLower(d, high, low);
    second = hn::ConcatUpperUpper(d, high, low);
  }
  if constexpr (kLanes == 16) {
    HWY_ALIGN static constexpr int32_t kOrder[16] = {0, 1, 2, 3, 8,  9,  10, 11,
                                                     4, 5, 6, 7, 12, 13, 14, 15};
    const auto order = hn::SetTableIndices(d, kOrder);
    first = hn::TableLookupLanes(first, order);
    second = hn::TableLookupLanes(second, order);
  }
  hn::StoreU(hn::Add(first, hn::LoadU(d, bias)), d, out);
  hn::StoreU(hn::Add(second, hn::LoadU(d, bias + kLanes)), d, out + kLanes);
}

// The channels [c, c + lanes) of all pixels.
template <class D16, Terms kTerms, int kCount>
HWY_INLINE void RunChannels(D16 d16, const DepthwiseBlockS16& b, int64_t c) {
  const hn::RepartitionToWide<D16> d;
  using V = hn::Vec<decltype(d)>;
  V low[kCount][2], high[kCount][2];
#pragma GCC unroll 8
  for (int j = 0; j < kCount; ++j) low[j][0] = low[j][1] = high[j][0] = high[j][1] = hn::Zero(d);
  const int16_t* HWY_RESTRICT filters = b.filters + c;
  for (int32_t t = 0; t < b.taps; t += 2, filters += 2 * b.channels) {
    const auto w0 = hn::LoadU(d16, filters), w1 = hn::LoadU(d16, filters + b.channels);
    const auto w_low = hn::InterleaveLower(d16, w0, w1), w_high = hn::InterleaveUpper(d16, w0, w1);
    const int16_t* const* first = b.pixels + b.offsets[t];
    const int16_t* const* second = b.pixels + b.offsets[t + 1];
#pragma GCC unroll 8
    for (int j = 0; j < kCount; ++j) {
      const auto x0 = hn::LoadU(d16, first[j * b.stride] + c);
      const auto x1 = hn::LoadU(d16, second[j * b.stride] + c);
      low[j][0] =
          AddTerms<kTerms>(d, hn::InterleaveLower(d16, x0, x1), w_low, low[j][0], low[j][1]);
      high[j][0] =
          AddTerms<kTerms>(d, hn::InterleaveUpper(d16, x0, x1), w_high, high[j][0], high[j][1]);
    }
  }
#pragma GCC unroll 8
  for (int j = 0; j < kCount; ++j) {
    StoreInterleaved(d, hn::RearrangeToOddPlusEven(low[j][0], low[j][1]),
                     hn::RearrangeToOddPlusEven(high[j][0], high[j][1]), b.bias + c,
                     b.out + j * b.channels + c);
  }
}

// Precondition: channels >= lanes. The last vector overlaps the one before.
template <class D16, Terms kTerms, int kCount>
HWY_NOINLINE void RunBlock(const DepthwiseBlockS16& b) {
  const D16 d16;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d16));
  int64_t c = 0;
  for (; c + lanes <= b.channels; c += lanes) RunChannels<D16, kTerms, kCount>(d16, b, c);
  if (c < b.channels) RunChannels<D16, kTerms, kCount>(d16, b, b.channels - lanes);
}

template <class D16, Terms kTerms>
void ForCount(const DepthwiseBlockS16& b, int count) {
  switch (count) {
    case 8: return RunBlock<D16, kTerms, kMaxCount>(b);
    case 4: return RunBlock<D16, kTerms, 4>(b);
    case 2: return RunBlock<D16, kTerms, 2>(b);
    default: return RunBlock<D16, kTerms, 1>(b);
  }
}

template <Terms kTerms>
void RunDepthwiseS16(const DepthwiseBlockS16& block, int count) {
  using Full = hn::ScalableTag<int16_t>;
  if (block.channels >= static_cast<int64_t>(hn::Lanes(Full()))) {
    ForCount<Full, kTerms>(block, count);
  } else if (block.channels >= 16 && hn::MaxLanes(Full()) >= 16) {
    ForCount<hn::CappedTag<int16_t, 16>, kTerms>(block, count);
  } else {
    ForCount<hn::CappedTag<int16_t, 8>, kTerms>(block, count);
  }
}

// In the order of Terms.
constexpr DepthwiseS16 kDepthwiseS16[] = {
    {.max_count = kMaxCount, .run = RunDepthwiseS16<Terms::kPairs>},
    {.max_count = kMaxCount, .run = RunDepthwiseS16<Terms::kDotPairs>}};

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

const DepthwiseS16* FindDepthwiseS16(Isa isa) {
  static constexpr auto kTable = FUSELITE_SIMD_TABLE(kDepthwiseS16);
  const auto* const all = kTable.For(isa);
  const Terms terms = isa.has_vnni() ? Terms::kDotPairs : Terms::kPairs;
  return all == nullptr ? nullptr : &(*all)[static_cast<int>(terms)];
}

}  // namespace fuselite::kernels
#endif
