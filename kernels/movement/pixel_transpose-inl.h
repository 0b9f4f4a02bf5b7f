// Matrices of pixels of three bytes, transposed with vectors.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_PIXEL_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_PIXEL_TRANSPOSE_INL_H_
#undef FUSELITE_KERNELS_PIXEL_TRANSPOSE_INL_H_
#else
#define FUSELITE_KERNELS_PIXEL_TRANSPOSE_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "kernels/movement/copy_loops.h"
#include "kernels/movement/matrix_transpose-inl.h"
#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr int64_t kPixelBytes = 3, kPixelsTogether = 4;

// The bytes that `order` names, within each block of 16.
template <class D>
HWY_INLINE hn::Vec<D> ShuffleBytes(D d, hn::Vec<D> v, const uint8_t* order) {
  const hn::Repartition<uint8_t, D> bytes;
  return hn::TableLookupBytes(v, hn::BitCast(d, hn::LoadDup128(bytes, order)));
}
// Four pixels of three bytes at the start of each block of 16 bytes, each with a byte behind it,
// and the other way round with a word behind them.
template <class D>
HWY_INLINE hn::Vec<D> SpreadPixels(D d, hn::Vec<D> v) {
  alignas(16) static constexpr uint8_t kOrder[16] = {0, 1, 2, 2, 3, 4,  5,  5,
                                                     6, 7, 8, 8, 9, 10, 11, 11};
  return ShuffleBytes(d, v, kOrder);
}
template <class D>
HWY_INLINE hn::Vec<D> GatherPixels(D d, hn::Vec<D> v) {
  alignas(16) static constexpr uint8_t kOrder[16] = {0,  1,  2,  4,  5,  6,  8,  9,
                                                     10, 12, 13, 14, 15, 15, 15, 15};
  return ShuffleBytes(d, v, kOrder);
}

// Stores the first twelve bytes of each block without gaps.
template <class D>
HWY_INLINE void StoreTwelves(D d, hn::Vec<D> v, std::byte* out) {
  constexpr size_t kBlocks = hn::MaxLanes(D()) / 4;
  if constexpr (kBlocks == 1) {
    StorePartial(v, d, As<uint32_t>(out), 3);
  } else {
    alignas(64) static constexpr int32_t kWords[16] = {0,  1,  2,  4,  5,  6,  8,  9,
                                                       10, 12, 13, 14, 15, 15, 15, 15};
    alignas(64) static constexpr int32_t kWordsOfTwo[8] = {0, 1, 2, 4, 5, 6, 7, 7};
    const auto order = hn::SetTableIndices(d, kBlocks == 2 ? kWordsOfTwo : kWords);
    StorePartial(hn::TableLookupLanes(v, order), d, As<uint32_t>(out), 3 * kBlocks);
  }
}

// The pixels of four columns at `in`, as many rows as D has words, which become pieces of rows at
// `out`. Precondition: four bytes may be read behind each row's twelve.
template <class D>
HWY_INLINE void TransposePixelTile(D d, const std::byte* in, int64_t in_pitch, std::byte* out,
                                   int64_t out_pitch) {
  hn::Vec<D> v[kPixelsTogether];
#pragma GCC unroll 4
  for (int64_t i = 0; i < kPixelsTogether; ++i) {
    v[i] = SpreadPixels(d, LoadBlocks(d, in + i * in_pitch, kPixelsTogether * in_pitch));
  }
  TransposeBlocks(d, v);
#pragma GCC unroll 4
  for (int64_t i = 0; i < kPixelsTogether; ++i) {
    StoreTwelves(d, GatherPixels(d, v[i]), out + i * out_pitch);
  }
}

// in[y * y.in_stride + 3 x] -> out[x * x.out_stride + 3 y], three bytes each, for the first columns
// x, whose number it returns. The last tiles may overlap those before. Two columns or more, behind
// which nothing may be read, are left over.
HWY_INLINE int64_t TransposePixels(const std::byte* in, std::byte* out, const CopyDim& x,
                                   const CopyDim& y) {
  const hn::ScalableTag<uint32_t> whole;
  const hn::CappedTag<uint32_t, 4> block;
  const int64_t tiled = x.size - 2 < kPixelsTogether || y.size < kPixelsTogether ? 0 : x.size - 2;
  const auto strip = [&](auto d, int64_t column) HWY_ATTR {
    const auto rows = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t begin = 0; begin < y.size; begin += rows) {
      const int64_t row = std::min(begin, y.size - rows);
      TransposePixelTile(d, in + row * y.in_stride + column * kPixelBytes, y.in_stride,
                         out + row * kPixelBytes + column * x.out_stride, x.out_stride);
    }
  };
  for (int64_t begin = 0; begin < tiled; begin += kPixelsTogether) {
    const int64_t column = std::min(begin, tiled - kPixelsTogether);
    y.size >= static_cast<int64_t>(hn::Lanes(whole)) ? strip(whole, column) : strip(block, column);
  }
  return tiled;
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // include guard
