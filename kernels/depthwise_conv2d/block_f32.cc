#include "kernels/depthwise_conv2d/block_f32.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/depthwise_conv2d/block_f32.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/std_max-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Eight sums, five weights and a pixel fit into 16 registers.
constexpr int kMaxCount = 8;

// The channels [c, c + lanes) of all pixels. Each pixel is loaded once per row and goes into every
// sum that it is under. kFilterW and kStride are 0 where they are only known at run time;
// otherwise the dilation is 1.
template <class D, int kCount, int kFilterW, int kStride>
HWY_INLINE void RunChannels(D d, const DepthwiseBlockF32& b, int64_t c) {
  using V = hn::Vec<D>;
  V sums[kCount];
#pragma GCC unroll 8
  for (int j = 0; j < kCount; ++j) sums[j] = hn::Zero(d);
  const float* HWY_RESTRICT filters = b.filters + c;
  const float* const* HWY_RESTRICT pixels = b.pixels;
  for (int32_t ky = 0; ky < b.filter_h; ++ky, pixels += b.span) {
    if constexpr (kFilterW != 0) {
      V weights[kFilterW];
#pragma GCC unroll 8
      for (int kx = 0; kx < kFilterW; ++kx, filters += b.channels) {
        weights[kx] = hn::LoadU(d, filters);
      }
      constexpr int kSpan = (kCount - 1) * kStride + kFilterW;
#pragma GCC unroll 32
      for (int i = 0; i < kSpan; ++i) {
        const V x = hn::LoadU(d, pixels[i] + c);
#pragma GCC unroll 8
        for (int j = 0; j < kCount; ++j) {
          const int kx = i - j * kStride;
          if (kx >= 0 && kx < kFilterW) sums[j] = hn::MulAdd(x, weights[kx], sums[j]);
        }
      }
    } else {
      for (int32_t kx = 0; kx < b.filter_w; ++kx, filters += b.channels) {
        const V weights = hn::LoadU(d, filters);
#pragma GCC unroll 8
        for (int j = 0; j < kCount; ++j) {
          const V x = hn::LoadU(d, pixels[j * b.stride + kx * b.dilation] + c);
          sums[j] = hn::MulAdd(x, weights, sums[j]);
        }
      }
    }
  }
  const V bias = b.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, b.bias + c);
  const V min = hn::Set(d, b.min), max = hn::Set(d, b.max);
#pragma GCC unroll 8
  for (int j = 0; j < kCount; ++j) {
    hn::StoreU(StdMin(StdMax(hn::Add(sums[j], bias), min), max), d, b.out + j * b.out_pitch + c);
  }
}

// Precondition: channels >= lanes. The last vector overlaps the one before: a channel's sum does
// not depend on its lane.
template <class D, int kCount, int kFilterW, int kStride>
HWY_NOINLINE void RunBlock(const DepthwiseBlockF32& b) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + lanes <= b.channels; c += lanes) RunChannels<D, kCount, kFilterW, kStride>(d, b, c);
  if (c < b.channels) RunChannels<D, kCount, kFilterW, kStride>(d, b, b.channels - lanes);
}

using RunBlockFunction = void(const DepthwiseBlockF32&);

template <class D, int kFilterW, int kStride>
RunBlockFunction* ForCount(int count) {
  switch (count) {
    case 8: return RunBlock<D, 8, kFilterW, kStride>;
    case 4: return RunBlock<D, 4, kFilterW, kStride>;
    case 2: return RunBlock<D, 2, kFilterW, kStride>;
    default: return RunBlock<D, 1, kFilterW, kStride>;
  }
}

template <class D>
RunBlockFunction* ForWindow(const DepthwiseBlockF32& b, int count) {
  if (b.dilation == 1 && b.filter_w == 3 && b.stride == 1) return ForCount<D, 3, 1>(count);
  if (b.dilation == 1 && b.filter_w == 3 && b.stride == 2) return ForCount<D, 3, 2>(count);
  if (b.dilation == 1 && b.filter_w == 5 && b.stride == 1) return ForCount<D, 5, 1>(count);
  if (b.dilation == 1 && b.filter_w == 5 && b.stride == 2) return ForCount<D, 5, 2>(count);
  return ForCount<D, 0, 0>(count);
}

void RunDepthwiseF32(const DepthwiseBlockF32& block, int count) {
  using Full = hn::ScalableTag<float>;
  RunBlockFunction* run;
  if (block.channels >= static_cast<int64_t>(hn::Lanes(Full()))) {
    run = ForWindow<Full>(block, count);
  } else if (block.channels >= 8 && hn::MaxLanes(Full()) >= 8) {
    run = ForCount<hn::CappedTag<float, 8>, 0, 0>(count);
  } else if (block.channels >= 4) {
    run = ForCount<hn::CappedTag<float, 4>, 0, 0>(count);
  } else {
    run = ForCount<hn::CappedTag<float, 1>, 0, 0>(count);
  }
  run(block);
}

constexpr DepthwiseF32 kDepthwiseF32 = {.max_count = kMaxCount, .run = RunDepthwiseF32};

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

const DepthwiseF32* FindDepthwiseF32(Isa isa) {
  static constexpr auto kTable = FUSELITE_SIMD_TABLE(kDepthwiseF32);
  return kTable.For(isa);
}

}  // namespace fuselite::kernels
#endif
