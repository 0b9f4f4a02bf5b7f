#include "kernels/movement/copy_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/movement/copy_loops_highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "kernels/movement/copy_words-inl.h"
#include "kernels/movement/matrix_transpose-inl.h"
#include "kernels/movement/pixel_transpose-inl.h"
#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using ByteTag = hn::ScalableTag<uint8_t>;

// --- Runs of bytes. The loops take strides by value: what they write might be the caller's.

// Runs of at least one vector of D; the last vector of each may overlap the one before.
template <class D>
void CopyRowsBy(D d, const std::byte* in, std::byte* out, CopyDim rows, int64_t run_bytes) {
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
HWY_INLINE void CopyRowsByWords(const std::byte* in, std::byte* out, CopyDim rows,
                                int64_t run_bytes) {
  for (int64_t i = 0; i < rows.size; ++i, in += rows.in_stride, out += rows.out_stride) {
    MoveTwoWords<T>(in, out, run_bytes);
  }
}

// Runs of less than a T that follow each other in the output: what is written behind one is written
// again with the next. Precondition: rows are read upwards, at least a T apart.
template <class T>
HWY_INLINE void CopyShortRows(const std::byte* in, std::byte* out, CopyDim rows,
                              int64_t run_bytes) {
#pragma GCC unroll 4
  for (int64_t i = 1; i < rows.size; ++i, in += rows.in_stride, out += run_bytes) {
    std::memcpy(out, in, sizeof(T));
  }
  std::memcpy(out, in, run_bytes);
}

// Runs of at least two vectors, of which all but the first and the last are stored to whole lines.
void CopyLongRows(const std::byte* in, std::byte* out, const CopyDim& rows, int64_t run_bytes) {
  const ByteTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto copy = [&](int64_t at) HWY_ATTR {
    hn::StoreU(hn::LoadU(d, As<uint8_t>(in + at)), d, As<uint8_t>(out + at));
  };
  for (int64_t i = 0; i < rows.size; ++i, in += rows.in_stride, out += rows.out_stride) {
    copy(0);
    const auto behind = static_cast<int64_t>(reinterpret_cast<uintptr_t>(out) % kLineBytes);
    for (int64_t at = (kLineBytes - behind) % lanes; at < run_bytes - lanes; at += lanes) copy(at);
    copy(run_bytes - lanes);
  }
}

// Whether all runs begin with a line on both sides. Elsewhere each vector of 64 bytes would lie in
// two lines, but only every other one of 32: 784 runs of 232 bytes take 0.8 of the time with these.
bool FillsLines(const std::byte* in, const std::byte* out, const CopyDim& rows) {
  const auto address = reinterpret_cast<uintptr_t>(in) | reinterpret_cast<uintptr_t>(out);
  return (address | static_cast<uintptr_t>(rows.in_stride | rows.out_stride)) % kLineBytes == 0;
}

void CopyRows(const std::byte* in, std::byte* out, const CopyDim& rows, int64_t run_bytes) {
  // From here on the library's memcpy is as fast as a loop of vectors where both ends lie alike in
  // their lines, and takes up to twice as long where they do not (glibc 2.36, a Zen 4).
  constexpr int64_t kLargeRun = 2048;
  if (run_bytes >= kLargeRun) {
    const auto lies_alike = [](int64_t distance) { return distance % kLineBytes == 0; };
    const bool alike =
        lies_alike(out - in) && (rows.size == 1 || lies_alike(rows.out_stride - rows.in_stride));
    return alike ? ScalarCopyLoops().rows(in, out, rows, run_bytes)
                 : CopyLongRows(in, out, rows, run_bytes);
  }
  const ByteTag d;
  if (run_bytes >= static_cast<int64_t>(hn::Lanes(d)) && FillsLines(in, out, rows)) {
    return CopyRowsBy(d, in, out, rows, run_bytes);
  }
  if (run_bytes >= 32) return CopyRowsBy(hn::CappedTag<uint8_t, 32>(), in, out, rows, run_bytes);
  if (run_bytes >= 16) return CopyRowsBy(hn::CappedTag<uint8_t, 16>(), in, out, rows, run_bytes);
  if (run_bytes >= 8) return CopyRowsByWords<uint64_t>(in, out, rows, run_bytes);
  if (run_bytes >= 3 && rows.out_stride == run_bytes && rows.in_stride >= 8) {
    return run_bytes == 3 ? CopyShortRows<uint32_t>(in, out, rows, run_bytes)
                          : CopyShortRows<uint64_t>(in, out, rows, run_bytes);
  }
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

// --- Elements one by one.

// Every second element: parts of complex numbers, strides of two.
template <class T>
int64_t EverySecond(const std::byte* in, std::byte* out, int64_t count) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  // What lies behind the last element is not read.
  for (; i + lanes < count; i += lanes) {
    hn::Vec<decltype(d)> even, odd;
    hn::LoadInterleaved2(d, As<T>(in) + 2 * i, even, odd);
    hn::StoreU(even, d, As<T>(out) + i);
  }
  return i;
}

void CopyElements(const std::byte* in, std::byte* out, const CopyDim& dim, int element_bytes) {
  CopyDim rest = dim;
  if (dim.out_stride == element_bytes && dim.in_stride == 2 * element_bytes &&
      (element_bytes == 4 || element_bytes == 8)) {
    const int64_t done = element_bytes == 4 ? EverySecond<uint32_t>(in, out, dim.size)
                                            : EverySecond<uint64_t>(in, out, dim.size);
    in += done * dim.in_stride;
    out += done * dim.out_stride;
    rest.size -= done;
  }
  ScalarCopyLoops().elements(in, out, rest, element_bytes);
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
  if (element_bytes == kPixelBytes) {
    for (int64_t i = TransposePixels(in, out, x, y); i < x.size; ++i) {
      CopyRows(in + i * x.in_stride, out + i * x.out_stride, y, kPixelBytes);
    }
    return;
  }
  if (!WithLane(element_bytes,
                [&](auto e) HWY_ATTR { TransposeTyped<decltype(e)>(in, out, x, y); })) {
    ScalarCopyLoops().transpose(in, out, x, y, element_bytes);
  }
}

CopyLoops Loops() { return {CopyRows, ReverseRows, CopyElements, FillRows, Transpose}; }

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
