#include "kernels/copy_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/copy_loops_highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using ByteTag = hn::ScalableTag<uint8_t>;

template <class T>
HWY_INLINE T* As(std::byte* p) {
  return reinterpret_cast<T*>(p);
}
template <class T>
HWY_INLINE const T* As(const std::byte* p) {
  return reinterpret_cast<const T*>(p);
}

// --- Runs of bytes.

// Moves `bytes` in [sizeof(T), 2 * sizeof(T)] as two words that may overlap.
template <class T>
HWY_INLINE void MoveTwoWords(const std::byte* in, std::byte* out, int64_t bytes) {
  T first, last;
  std::memcpy(&first, in, sizeof(T));
  std::memcpy(&last, in + bytes - sizeof(T), sizeof(T));
  std::memcpy(out, &first, sizeof(T));
  std::memcpy(out + bytes - sizeof(T), &last, sizeof(T));
}

// Up to 16 bytes.
HWY_INLINE void MoveFew(const std::byte* in, std::byte* out, int64_t bytes) {
  if (bytes >= 8) return MoveTwoWords<uint64_t>(in, out, bytes);
  if (bytes >= 4) return MoveTwoWords<uint32_t>(in, out, bytes);
  if (bytes >= 2) return MoveTwoWords<uint16_t>(in, out, bytes);
  if (bytes == 1) *out = *in;
}

// Runs of at least one vector of D; the last vector of each may overlap the one before.
template <class D>
void CopyRowsBy(D d, const std::byte* in, std::byte* out, const CopyDim& rows, int64_t run_bytes) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < rows.size; ++i, in += rows.in_stride, out += rows.out_stride) {
    for (int64_t at = 0; at < run_bytes - lanes; at += lanes) {
      hn::StoreU(hn::LoadU(d, As<uint8_t>(in + at)), d, As<uint8_t>(out + at));
    }
    const int64_t last = run_bytes - lanes;
    hn::StoreU(hn::LoadU(d, As<uint8_t>(in + last)), d, As<uint8_t>(out + last));
  }
}

template <class T>
HWY_INLINE void CopyRowsByWords(const std::byte* in, std::byte* out, const CopyDim& rows,
                                int64_t run_bytes) {
  for (int64_t i = 0; i < rows.size; ++i, in += rows.in_stride, out += rows.out_stride) {
    MoveTwoWords<T>(in, out, run_bytes);
  }
}

void CopyRows(const std::byte* in, std::byte* out, const CopyDim& rows, int64_t run_bytes) {
  // From here on the library's memcpy is faster than a loop of vectors.
  constexpr int64_t kLargeRun = 2048;
  if (run_bytes >= kLargeRun) return ScalarCopyLoops().rows(in, out, rows, run_bytes);
  const ByteTag d;
  if (run_bytes >= static_cast<int64_t>(hn::Lanes(d)))
    return CopyRowsBy(d, in, out, rows, run_bytes);
  if (run_bytes >= 32) return CopyRowsBy(hn::CappedTag<uint8_t, 32>(), in, out, rows, run_bytes);
  if (run_bytes >= 16) return CopyRowsBy(hn::CappedTag<uint8_t, 16>(), in, out, rows, run_bytes);
  if (run_bytes >= 8) return CopyRowsByWords<uint64_t>(in, out, rows, run_bytes);
  if (run_bytes >= 4) return CopyRowsByWords<uint32_t>(in, out, rows, run_bytes);
  if (run_bytes >= 2) return CopyRowsByWords<uint16_t>(in, out, rows, run_bytes);
  ScalarCopyLoops().elements(in, out, rows, 1);
}

// --- Rows of one element each.

// Rows of at least a vector of D; the last one may overlap the one before.
template <class D>
void FillBy(D d, const std::byte* in, std::byte* out, const CopyDim& rows, int64_t count) {
  using T = hn::TFromD<D>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t row = 0; row < rows.size; ++row, in += rows.in_stride, out += rows.out_stride) {
    T value;
    std::memcpy(&value, in, sizeof value);
    const auto v = hn::Set(d, value);
    for (int64_t i = 0; i < count - lanes; i += lanes) hn::StoreU(v, d, As<T>(out) + i);
    hn::StoreU(v, d, As<T>(out) + count - lanes);
  }
}

// Rows shorter than a vector of 16 bytes that follow each other: what is written behind one is
// written again with the next, but for the last ones, which are left to the caller. Gives how many
// are done.
template <class T>
HWY_INLINE int64_t FillShortRows(const std::byte* in, std::byte* out, const CopyDim& rows,
                                 int64_t count) {
  const hn::CappedTag<T, 16 / sizeof(T)> d;
  const int64_t row_bytes = count * static_cast<int64_t>(sizeof(T));
  if (rows.out_stride != row_bytes) return 0;
  const int64_t done = std::max<int64_t>(0, rows.size - (16 + row_bytes - 1) / row_bytes + 1);
  for (int64_t row = 0; row < done; ++row, in += rows.in_stride, out += row_bytes) {
    T value;
    std::memcpy(&value, in, sizeof value);
    hn::StoreU(hn::Set(d, value), d, As<T>(out));
  }
  return done;
}

template <class T>
void FillTyped(const std::byte* in, std::byte* out, CopyDim rows, int64_t count) {
  const hn::ScalableTag<T> whole;
  const hn::CappedTag<T, 16 / sizeof(T)> block;
  if (count >= static_cast<int64_t>(hn::Lanes(whole))) return FillBy(whole, in, out, rows, count);
  if (count >= static_cast<int64_t>(hn::Lanes(block))) return FillBy(block, in, out, rows, count);
  const int64_t done = FillShortRows<T>(in, out, rows, count);
  in += done * rows.in_stride;
  out += done * rows.out_stride;
  rows.size -= done;
  const hn::CappedTag<T, HWY_MAX(4 / sizeof(T), 1)> word;
  if (count >= static_cast<int64_t>(hn::Lanes(word))) return FillBy(word, in, out, rows, count);
  ScalarCopyLoops().fill(in, out, rows, count, sizeof(T));
}

// --- Elements in reverse.

// 16 bytes at a time are turned by a table, wider lanes by Highway.
template <class D>
HWY_INLINE hn::Vec<D> Reversed(D d, hn::Vec<D> v) {
  using T = hn::TFromD<D>;
  if constexpr (sizeof(T) == 1) {
    alignas(16) static constexpr uint8_t kOrder[16] = {15, 14, 13, 12, 11, 10, 9, 8,
                                                       7,  6,  5,  4,  3,  2,  1, 0};
    return hn::ReverseBlocks(d, hn::TableLookupBytes(v, hn::LoadDup128(d, kOrder)));
  } else {
    return hn::Reverse(d, v);
  }
}

// Rows of at least a vector of D; the last one may overlap the one before.
template <class D>
void ReverseBy(D d, const std::byte* in, std::byte* out, const CopyDim& rows, int64_t count) {
  using T = hn::TFromD<D>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t row = 0; row < rows.size; ++row, in += rows.in_stride, out += rows.out_stride) {
    const T* const last = As<T>(in);
    for (int64_t i = 0;; i = std::min(i + lanes, count - lanes)) {
      hn::StoreU(Reversed(d, hn::LoadU(d, last - i - lanes + 1)), d, As<T>(out) + i);
      if (i + lanes == count) break;
    }
  }
}

// Rows of up to 16 bytes that follow each other: as many whole ones as 16 bytes hold are turned at
// a time, over whose end the next ones are written. `first`: the first row's first element.
template <class T>
void ReverseShortRows(const std::byte* first, std::byte* out, int64_t rows, int64_t count) {
  const hn::FixedTag<uint8_t, 16> d;
  const int64_t row_bytes = count * static_cast<int64_t>(sizeof(T));
  const int64_t together = 16 / row_bytes * row_bytes;
  HWY_ALIGN uint8_t order[16] = {};
  for (int64_t i = 0; i < together; ++i) {
    const int64_t element = i % row_bytes / sizeof(T);
    order[i] = static_cast<uint8_t>(i / row_bytes * row_bytes + (count - 1 - element) * sizeof(T) +
                                    i % sizeof(T));
  }
  const auto turned = hn::Load(d, order);
  const int64_t bytes = rows * row_bytes;
  int64_t i = 0;
  for (; i + 16 <= bytes; i += together) {
    hn::StoreU(hn::TableLookupBytes(hn::LoadU(d, As<uint8_t>(first + i)), turned), d,
               As<uint8_t>(out + i));
  }
  ScalarCopyLoops().reverse(first + i + row_bytes - sizeof(T), out + i,
                            {(bytes - i) / row_bytes, row_bytes, row_bytes}, count, sizeof(T));
}

template <class T>
void ReverseTyped(const std::byte* in, std::byte* out, const CopyDim& rows, int64_t count) {
  const int64_t row_bytes = count * static_cast<int64_t>(sizeof(T));
  if (row_bytes <= 16 && rows.size > 1 && rows.in_stride == row_bytes &&
      rows.out_stride == row_bytes) {
    return ReverseShortRows<T>(in - row_bytes + sizeof(T), out, rows.size, count);
  }
  const hn::ScalableTag<T> whole;
  const hn::CappedTag<T, 16 / sizeof(T)> block;
  if (count >= static_cast<int64_t>(hn::Lanes(whole))) {
    ReverseBy(whole, in, out, rows, count);
  } else if (count >= static_cast<int64_t>(hn::Lanes(block))) {
    ReverseBy(block, in, out, rows, count);
  } else {
    ScalarCopyLoops().reverse(in, out, rows, count, sizeof(T));
  }
}

// --- Matrices.

constexpr int64_t kLineBytes = 64;  // of a cache

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

// At most N x N elements.
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

// Two to four rows become the elements of `columns` tuples, and the other way round. Both give how
// many columns they have done.
template <class T>
HWY_INLINE int64_t Interleave(const std::byte* in, int64_t pitch, std::byte* out, int64_t columns,
                              int64_t rows) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto row = [&](int64_t y) HWY_ATTR { return As<T>(in + y * pitch); };
  int64_t x = 0;
  for (; x + lanes <= columns; x += lanes) {
    T* const to = As<T>(out) + x * rows;
    const auto a = hn::LoadU(d, row(0) + x);
    const auto b = hn::LoadU(d, row(1) + x);
    if (rows == 2) {
      hn::StoreInterleaved2(a, b, d, to);
      continue;
    }
    const auto c = hn::LoadU(d, row(2) + x);
    if (rows == 3) {
      hn::StoreInterleaved3(a, b, c, d, to);
    } else {
      hn::StoreInterleaved4(a, b, c, hn::LoadU(d, row(3) + x), d, to);
    }
  }
  return x;
}

template <class T>
HWY_INLINE int64_t Deinterleave(const std::byte* in, std::byte* out, int64_t pitch, int64_t columns,
                                int64_t rows) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto row = [&](int64_t y) HWY_ATTR { return As<T>(out + y * pitch); };
  int64_t x = 0;
  for (; x + lanes <= columns; x += lanes) {
    const T* const from = As<T>(in) + x * rows;
    hn::Vec<decltype(d)> a, b, c, e;
    if (rows == 2) {
      hn::LoadInterleaved2(d, from, a, b);
    } else if (rows == 3) {
      hn::LoadInterleaved3(d, from, a, b, c);
      hn::StoreU(c, d, row(2) + x);
    } else {
      hn::LoadInterleaved4(d, from, a, b, c, e);
      hn::StoreU(c, d, row(2) + x);
      hn::StoreU(e, d, row(3) + x);
    }
    hn::StoreU(a, d, row(0) + x);
    hn::StoreU(b, d, row(1) + x);
  }
  return x;
}

// Whether rows so far apart fall into so few sets of a first-level cache (32 KiB in 8 ways) that
// strips of a few columns would find a row's line gone whenever they come back to it.
HWY_INLINE bool DriveEachOtherOut(const CopyDim& y) {
  constexpr int64_t kWay = 4096, kWays = 8;
  const int64_t apart = std::clamp<int64_t>(y.in_stride & -y.in_stride, kLineBytes, kWay);
  return y.size > kWays * (kWay / apart);
}

// The same by lines of as many rows, which are read once, to where they lie side by side. The last
// rows and columns may overlap those before.
template <class T>
void TransposeLines(const std::byte* in, std::byte* out, const CopyDim& x, const CopyDim& y) {
  alignas(kLineBytes) std::byte lines[64 * kLineBytes];
  const int64_t rows = std::min<int64_t>(64, y.size);
  const int64_t columns = std::min<int64_t>(kLineBytes / sizeof(T), x.size);
  for (int64_t begin = 0; begin < y.size; begin += rows) {
    const int64_t row = std::min(begin, y.size - rows);
    for (int64_t first = 0; first < x.size; first += columns) {
      const int64_t column = std::min(first, x.size - columns);
      const std::byte* from = in + row * y.in_stride + column * sizeof(T);
      for (int64_t r = 0; r < rows; ++r, from += y.in_stride) {
        if (columns * sizeof(T) == kLineBytes) {
          std::memcpy(lines + r * kLineBytes, from, kLineBytes);
        } else {
          std::memcpy(lines + r * kLineBytes, from, columns * sizeof(T));
        }
      }
      TransposeTiled<T>(lines, out + row * sizeof(T) + column * x.out_stride,
                        {columns, x.in_stride, x.out_stride}, {rows, kLineBytes, y.out_stride});
    }
  }
}

template <class T>
void TransposeTyped(const std::byte* in, std::byte* out, CopyDim x, CopyDim y) {
  if (y.size >= 2 && y.size <= 4 && x.out_stride == y.size * static_cast<int64_t>(sizeof(T))) {
    const int64_t done = Interleave<T>(in, y.in_stride, out, x.size, y.size);
    in += done * sizeof(T);
    out += done * x.out_stride;
    x.size -= done;
  } else if (x.size >= 2 && x.size <= 4 &&
             y.in_stride == x.size * static_cast<int64_t>(sizeof(T))) {
    const int64_t done = Deinterleave<T>(in, out, x.out_stride, y.size, x.size);
    in += done * y.in_stride;
    out += done * sizeof(T);
    y.size -= done;
  }
  DriveEachOtherOut(y) ? TransposeLines<T>(in, out, x, y) : TransposeTiled<T>(in, out, x, y);
}

// Calls `function` with a value of the element's width; the scalar loops take those of 16 bytes.
template <class Function>
bool WithLane(int bytes, Function function) {
  switch (bytes) {
    case 1: function(uint8_t{}); return true;
    case 2: function(uint16_t{}); return true;
    case 4: function(uint32_t{}); return true;
    case 8: function(uint64_t{}); return true;
    default: return false;
  }
}

void FillRows(const std::byte* in, std::byte* out, const CopyDim& rows, int64_t count,
              int element_bytes) {
  if (!WithLane(element_bytes,
                [&](auto e) HWY_ATTR { FillTyped<decltype(e)>(in, out, rows, count); })) {
    ScalarCopyLoops().fill(in, out, rows, count, element_bytes);
  }
}

void ReverseRows(const std::byte* in, std::byte* out, const CopyDim& rows, int64_t count,
                 int element_bytes) {
  if (!WithLane(element_bytes,
                [&](auto e) HWY_ATTR { ReverseTyped<decltype(e)>(in, out, rows, count); })) {
    ScalarCopyLoops().reverse(in, out, rows, count, element_bytes);
  }
}

void Transpose(const std::byte* in, std::byte* out, const CopyDim& x, const CopyDim& y,
               int element_bytes) {
  if (!WithLane(element_bytes,
                [&](auto e) HWY_ATTR { TransposeTyped<decltype(e)>(in, out, x, y); })) {
    ScalarCopyLoops().transpose(in, out, x, y, element_bytes);
  }
}

CopyLoops Loops() {
  return {CopyRows, ReverseRows, ScalarCopyLoops().elements, FillRows, Transpose};
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

constexpr auto kLoops = FUSELITE_SIMD_TABLE(Loops);

}  // namespace

CopyLoops CopyLoopsFor(Isa isa) {
  auto* const loops = kLoops.For(isa);
  return loops == nullptr ? ScalarCopyLoops() : loops();
}

bool HasVectorCopyLoops(Isa isa) { return kLoops.For(isa) != nullptr; }

}  // namespace fuselite::kernels
#endif
