// Matrices of words of one to eight bytes, transposed with vectors.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_MATRIX_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_MATRIX_TRANSPOSE_INL_H_
#undef FUSELITE_KERNELS_MATRIX_TRANSPOSE_INL_H_
#else
#define FUSELITE_KERNELS_MATRIX_TRANSPOSE_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "kernels/movement/copy_loops.h"
#include "kernels/movement/copy_words-inl.h"
#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Transposes the N x N elements of each block of 16 bytes among the N vectors of `v`: N zips of
// the first with the second half, as many times as N has bits.
template <class D, class V, size_t N>
HWY_INLINE void TransposeBlocks(D d, V (&v)[N]) {
#pragma GCC unroll 16
  for (size_t stage = 1; stage < N; stage *= 2) {
    V zipped[N];
#pragma GCC unroll 16
    for (size_t i = 0; i < N / 2; ++i) {
      zipped[2 * i] = hn::InterleaveLower(d, v[i], v[i + N / 2]);
      zipped[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + N / 2]);
    }
#pragma GCC unroll 16
    for (size_t i = 0; i < N; ++i) v[i] = zipped[i];
  }
}

// A vector whose block b of 16 bytes stands at in + b * pitch.
template <class D>
HWY_INLINE hn::Vec<D> LoadBlocks(D d, const std::byte* in, int64_t pitch) {
  using T = hn::TFromD<D>;
  if constexpr (hn::MaxLanes(D()) * sizeof(T) <= 16) {
    return hn::LoadU(d, As<T>(in));
  } else {
    const hn::Half<D> half;
    constexpr int64_t kBlocks = hn::MaxLanes(D()) * sizeof(T) / 32;
    return hn::Combine(d, LoadBlocks(half, in + kBlocks * pitch, pitch),
                       LoadBlocks(half, in, pitch));
  }
}

// A strip of N = 16 / sizeof(T) columns: in[y * in_pitch + x] -> out[x * out_pitch + y], y in
// [0, rows), rows at least the lanes of D. The last tile may overlap the one before.
template <class D>
HWY_INLINE void TransposeStrip(D d, const std::byte* in, int64_t in_pitch, std::byte* out,
                               int64_t out_pitch, int64_t rows) {
  using T = hn::TFromD<D>;
  constexpr int64_t kN = 16 / sizeof(T);
  constexpr int64_t kLanes = hn::MaxLanes(D());
  for (int64_t begin = 0; begin < rows; begin += kLanes) {
    const int64_t y = std::min(begin, rows - kLanes);
    hn::Vec<D> v[kN];
#pragma GCC unroll 16
    for (int64_t i = 0; i < kN; ++i) {
      v[i] = LoadBlocks(d, in + (y + i) * in_pitch, kN * in_pitch);
    }
    TransposeBlocks(d, v);
#pragma GCC unroll 16
    for (int64_t i = 0; i < kN; ++i) {
      hn::StoreU(v[i], d, As<T>(out + i * out_pitch) + y);
    }
  }
}

// `bytes` in [1, 16], followed by zeros.
HWY_INLINE hn::Vec<hn::CappedTag<uint64_t, 2>> LoadFew(const std::byte* in, int64_t bytes) {
  // Two words that may overlap; of the last one, what the first one has already is shifted out.
  const auto words = [&](auto word) HWY_ATTR {
    decltype(word) first, last;
    std::memcpy(&first, in, sizeof word);
    std::memcpy(&last, in + bytes - sizeof word, sizeof word);
    const int64_t fresh = 8 * (bytes - static_cast<int64_t>(sizeof word));
    return std::pair<uint64_t, uint64_t>(
        first, fresh == 0 ? 0 : uint64_t{last} >> (8 * sizeof word - fresh));
  };
  const hn::CappedTag<uint64_t, 2> d;
  if (bytes >= 8) {
    const auto [low, high] = words(uint64_t{});
    return hn::InterleaveLower(d, hn::Set(d, low), hn::Set(d, high));
  }
  const auto [low, high] = bytes >= 4   ? words(uint32_t{})
                           : bytes >= 2 ? words(uint16_t{})
                                        : words(uint8_t{});
  const int shift = bytes >= 4 ? 32 : bytes >= 2 ? 16 : 8;
  return hn::InterleaveLower(d, hn::Set(d, low | high << shift), hn::Zero(d));
}

// Transposes at most N x N elements.
template <class T>
void TransposeEdge(const std::byte* in, int64_t in_pitch, std::byte* out, int64_t out_pitch,
                   int64_t rows, int64_t columns) {
  constexpr size_t kN = 16 / sizeof(T);
  const hn::CappedTag<T, kN> d;
  alignas(16) T lanes[kN];
  hn::Vec<decltype(d)> v[kN];
#pragma GCC unroll 16
  for (size_t y = 0; y < kN; ++y) {
    v[y] = hn::Zero(d);
    if (static_cast<int64_t>(y) >= rows) continue;
    v[y] = hn::BitCast(d, LoadFew(in + y * in_pitch, columns * sizeof(T)));
  }
  TransposeBlocks(d, v);
#pragma GCC unroll 16
  for (size_t x = 0; x < kN; ++x) {
    if (static_cast<int64_t>(x) >= columns) return;
    hn::Store(v[x], d, lanes);
    MoveFew(reinterpret_cast<const std::byte*>(lanes), out + x * out_pitch, rows * sizeof(T));
  }
}

// Any size, by strips where there are N columns and N rows, and at the edges otherwise.
template <class T>
void TransposeTiled(const std::byte* in, std::byte* out, const CopyDim& x, const CopyDim& y) {
  constexpr int64_t kN = 16 / sizeof(T);
  const hn::ScalableTag<T> whole;
  const hn::CappedTag<T, 32 / sizeof(T)> half;
  const hn::CappedTag<T, kN> block;
  for (int64_t begin = 0; begin < x.size; begin += kN) {
    const int64_t column = x.size < kN ? 0 : std::min(begin, x.size - kN);
    const std::byte* const from = in + column * sizeof(T);
    std::byte* const to = out + column * x.out_stride;
    const auto strip = [&](auto d) HWY_ATTR {
      TransposeStrip(d, from, y.in_stride, to, x.out_stride, y.size);
    };
    if (x.size < kN || y.size < kN) {
      for (int64_t row = 0; row < y.size; row += kN) {
        TransposeEdge<T>(from + row * y.in_stride, y.in_stride, to + row * sizeof(T), x.out_stride,
                         std::min(kN, y.size - row), std::min(kN, x.size));
      }
    } else if (y.size >= static_cast<int64_t>(hn::Lanes(whole))) {
      strip(whole);
    } else if (y.size >= static_cast<int64_t>(hn::Lanes(half))) {
      strip(half);
    } else {
      strip(block);
    }
  }
}

// Two to four rows become the elements of `columns` tuples, and the other way round; columns at
// least the lanes of D. The last vectors may overlap those before.
template <class D>
void Interleave(D d, const std::byte* in, int64_t pitch, std::byte* out, int64_t columns,
                int64_t rows) {
  using T = hn::TFromD<D>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t begin = 0; begin < columns; begin += lanes) {
    const int64_t x = std::min(begin, columns - lanes);
    const auto row = [&](int64_t y) HWY_ATTR { return hn::LoadU(d, As<T>(in + y * pitch) + x); };
    T* const to = As<T>(out) + x * rows;
    if (rows == 2) {
      hn::StoreInterleaved2(row(0), row(1), d, to);
    } else if (rows == 3) {
      hn::StoreInterleaved3(row(0), row(1), row(2), d, to);
    } else {
      hn::StoreInterleaved4(row(0), row(1), row(2), row(3), d, to);
    }
  }
}

template <class D>
void Deinterleave(D d, const std::byte* in, std::byte* out, int64_t pitch, int64_t columns,
                  int64_t rows) {
  using T = hn::TFromD<D>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t begin = 0; begin < columns; begin += lanes) {
    const int64_t x = std::min(begin, columns - lanes);
    const auto row = [&](int64_t y) HWY_ATTR { return As<T>(out + y * pitch) + x; };
    const T* const from = As<T>(in) + x * rows;
    hn::Vec<D> a, b, c, e;
    if (rows == 2) {
      hn::LoadInterleaved2(d, from, a, b);
    } else if (rows == 3) {
      hn::LoadInterleaved3(d, from, a, b, c);
      hn::StoreU(c, d, row(2));
    } else {
      hn::LoadInterleaved4(d, from, a, b, c, e);
      hn::StoreU(c, d, row(2));
      hn::StoreU(e, d, row(3));
    }
    hn::StoreU(a, d, row(0));
    hn::StoreU(b, d, row(1));
  }
}

// Calls `function` with the tag of the widest vector that `count` elements fill, if they fill one
// of 16 bytes.
template <class T, class Function>
HWY_INLINE bool WithVectorWithin(int64_t count, Function function) {
  const hn::ScalableTag<T> whole;
  const hn::CappedTag<T, 32 / sizeof(T)> half;
  const hn::CappedTag<T, 16 / sizeof(T)> block;
  const auto fills = [count](auto d)
                         HWY_ATTR { return count >= static_cast<int64_t>(hn::Lanes(d)); };
  if (fills(whole)) return function(whole), true;
  if (fills(half)) return function(half), true;
  if (fills(block)) return function(block), true;
  return false;
}

// Two to four rows, or as many columns, with what they become without gaps; false where it is none.
template <class T>
HWY_INLINE bool TransposeTuples(const std::byte* in, std::byte* out, const CopyDim& x,
                                const CopyDim& y) {
  const auto are_tuples = [](int64_t count, int64_t stride) {
    return count >= 2 && count <= 4 && stride == count * static_cast<int64_t>(sizeof(T));
  };
  if (are_tuples(y.size, x.out_stride)) {
    return WithVectorWithin<T>(
        x.size, [&](auto d) HWY_ATTR { Interleave(d, in, y.in_stride, out, x.size, y.size); });
  }
  return are_tuples(x.size, y.in_stride) && WithVectorWithin<T>(y.size, [&](auto d) HWY_ATTR {
           Deinterleave(d, in, out, x.out_stride, y.size, x.size);
         });
}

// Whether rows of `x` fall into so few sets of a first-level cache (32 KiB in 8 ways) that strips
// of 16 bytes would find a row's line gone when they come back to it.
HWY_INLINE bool DriveEachOtherOut(const CopyDim& y, int64_t row_bytes) {
  constexpr int64_t kWay = 4096, kWays = 8, kStrip = 16;
  const int64_t stride = std::abs(y.in_stride);
  if (row_bytes < 2 * kStrip || stride < kLineBytes) return false;
  return y.size > kWays * (kWay / std::clamp<int64_t>(stride & -stride, kLineBytes, kWay));
}

// As TransposeTiled(), by lines of as many rows, which are read once, to where they lie side by
// side. The last rows and columns may overlap those before.
template <class T>
void TransposeLines(const std::byte* in, std::byte* out, const CopyDim& x, const CopyDim& y) {
  alignas(kLineBytes) std::byte lines[64 * kLineBytes];
  const int64_t rows = std::min<int64_t>(64, y.size);
  const int64_t columns = std::min<int64_t>(kLineBytes / sizeof(T), x.size);
  const int64_t bytes = columns * sizeof(T);  // half of a line at least
  for (int64_t begin = 0; begin < y.size; begin += rows) {
    const int64_t row = std::min(begin, y.size - rows);
    for (int64_t first = 0; first < x.size; first += columns) {
      const int64_t column = std::min(first, x.size - columns);
      const std::byte* from = in + row * y.in_stride + column * sizeof(T);
      for (int64_t r = 0; r < rows; ++r, from += y.in_stride) {
        MoveTwoWords<std::array<std::byte, kLineBytes / 2>>(from, lines + r * kLineBytes, bytes);
      }
      TransposeTiled<T>(lines, out + row * sizeof(T) + column * x.out_stride,
                        {columns, x.in_stride, x.out_stride}, {rows, kLineBytes, y.out_stride});
    }
  }
}

template <class T>
void TransposeTyped(const std::byte* in, std::byte* out, const CopyDim& x, const CopyDim& y) {
  if (TransposeTuples<T>(in, out, x, y)) return;
  const bool by_lines = DriveEachOtherOut(y, x.size * sizeof(T));
  by_lines ? TransposeLines<T>(in, out, x, y) : TransposeTiled<T>(in, out, x, y);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // include guard
