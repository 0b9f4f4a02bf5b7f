// What SOFTMAX and LOG_SOFTMAX of bytes have in common: the exponentials of rows and their sums.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_SOFTMAX_QUANTIZED_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_SOFTMAX_QUANTIZED_ROWS_INL_H_
#undef FUSELITE_KERNELS_SOFTMAX_QUANTIZED_ROWS_INL_H_
#else
#define FUSELITE_KERNELS_SOFTMAX_QUANTIZED_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "kernels/movement/matrix_transpose-inl.h"
#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"
#include "kernels/simd_math/row_bytes-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D32 = hn::ScalableTag<int32_t>;
using V32 = hn::Vec<D32>;

// round(v / 2^shift) of v >= 0, halves up; without overflow. Precondition: shift > 0.
HWY_INLINE V32 RoundingShift(V32 v, int shift) {
  const D32 d;
  const auto half = hn::And(hn::ShiftRightSame(v, shift - 1), hn::Set(d, 1));
  return hn::Add(hn::ShiftRightSame(v, shift), half);
}

// The exponentials of a row to `exps`, in whole vectors; their rounded sum. `table` goes up to
// exp(0) at its end. Single loads: a gather takes as long for each element, where there is one.
template <class T>
HWY_INLINE int64_t ExpRowOf(const int32_t* table, const T* in, int32_t largest, int32_t* exps,
                            size_t n) {
  const D32 d;
  const size_t lanes = hn::Lanes(d);
  const int32_t* from = table + 255 - largest;
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const int32_t a = from[in[i]], b = from[in[i + 1]], c = from[in[i + 2]], e = from[in[i + 3]];
    exps[i] = a;
    exps[i + 1] = b;
    exps[i + 2] = c;
    exps[i + 3] = e;
  }
  for (; i < n; ++i) exps[i] = from[in[i]];
  for (; i % lanes != 0; ++i) exps[i] = 0;
  if (n < 16) {
    // Loads of vectors would wait for these stores.
    int64_t total = 0;
    for (i = 0; i < n; ++i) total += (exps[i] >> 12) + (exps[i] >> 11 & 1);
    return total;
  }
  auto sum = hn::Zero(d);
  for (i = 0; i < n; i += lanes) sum = hn::Add(sum, RoundingShift(hn::Load(d, exps + i), 12));
  HWY_ALIGN int32_t sums[hn::MaxLanes(d)];
  hn::Store(sum, d, sums);
  int64_t total = 0;
  for (i = 0; i < lanes; ++i) total += sums[i];
  return total;
}

// Rows whose sums are taken on together.
constexpr int64_t kRowsTogether = 16;

// `n` bytes of T from each of f(i)'s vectors, lanes i on. `room`: how many may be written.
template <class T, class F>
HWY_INLINE void StoreRow(T* y, size_t n, size_t room, F f) {
  const D32 d;
  const hn::Rebind<T, D32> narrow;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < n; i += lanes) {
    const auto v = hn::DemoteTo(narrow, f(i));
    if (HWY_LIKELY(i + lanes <= room)) {
      hn::StoreU(v, narrow, y + i);
    } else {
      StorePartial(v, narrow, y + i, n - i);
    }
  }
}

// --- Rows of up to 16 elements: the rows are the lanes, one element of each at a time.
// Column c of kRowsTogether rows begins at c * kRowsTogether.

// A few rows alone are no faster with others beside them that are not there.
HWY_INLINE bool AreNarrow(int64_t n, int64_t rows) { return n <= kRowsTogether && rows > 4; }

using RowBytes = hn::FixedTag<uint8_t, kRowsTogether>;

// kRowsTogether vectors of as many bytes, the first of which are read: load(i) and store(i, v) are
// rows here and columns there.
template <class Load, class Store>
HWY_INLINE void TurnBytes(Load load, Store store) {
  hn::Vec<RowBytes> v[kRowsTogether];
#pragma GCC unroll 16
  for (int64_t i = 0; i < kRowsTogether; ++i) v[i] = load(i);
  TransposeBlocks(RowBytes(), v);
#pragma GCC unroll 16
  for (int64_t i = 0; i < kRowsTogether; ++i) store(i, v[i]);
}

// Rows of fewer bytes are moved one by one: turning all of 16 repays from half of them on.
HWY_INLINE bool RepaysTurning(int64_t n, size_t element) {
  return element == 1 && 2 * n >= kRowsTogether;
}

// How far each element is below its row's largest, as columns. Rows that are not there repeat the
// last one.
template <class T>
HWY_INLINE void LoadBelowLargest(const T* in, int64_t pitch, int64_t rows, int64_t n,
                                 uint8_t* below) {
  const hn::FixedTag<T, kRowsTogether> d;
  const RowBytes du;
  T* const columns = reinterpret_cast<T*>(below);
  if (RepaysTurning(n, sizeof(T))) {
    const int64_t end = (rows - 1) * pitch + n;
    const auto load = [&](int64_t i) HWY_ATTR {
      const int64_t at = std::min(i, rows - 1) * pitch;
      const auto* const x = reinterpret_cast<const uint8_t*>(in + at);
      return at + kRowsTogether <= end ? hn::LoadU(du, x) : LoadPartial(du, x, n);
    };
    TurnBytes(load,
              [&](int64_t c, auto v) HWY_ATTR { hn::Store(v, du, below + c * kRowsTogether); });
  } else {
    for (int64_t r = 0; r < kRowsTogether; ++r) {
      const T* x = in + std::min(r, rows - 1) * pitch;
      for (int64_t c = 0; c < n; ++c) columns[c * kRowsTogether + r] = x[c];
    }
  }
  auto largest = hn::Load(d, columns);
  for (int64_t c = 1; c < n; ++c) {
    largest = hn::Max(largest, hn::Load(d, columns + c * kRowsTogether));
  }
  for (int64_t c = 0; c < n; ++c) {
    const auto difference = hn::Sub(largest, hn::Load(d, columns + c * kRowsTogether));
    hn::Store(hn::BitCast(du, difference), du, below + c * kRowsTogether);
  }
}

// The exponentials of the differences `below`; `table` goes up to exp(0) at its end.
HWY_INLINE void ExpColumns(const int32_t* table, const uint8_t* below, int64_t n, int32_t* exps) {
  for (int64_t i = 0; i < n * kRowsTogether; ++i) exps[i] = table[255 - below[i]];
}

// The rounded sums of a vector of rows, the first of which has its first exponential at `exps`.
HWY_INLINE V32 SumOfColumns(const int32_t* exps, int64_t n) {
  const D32 d;
  auto sum = hn::Zero(d);
  for (int64_t c = 0; c < n; ++c) {
    sum = hn::Add(sum, RoundingShift(hn::Load(d, exps + c * kRowsTogether), 12));
  }
  return sum;
}

// The columns behind the n-th, which may hold anything, are read, too.
template <class T>
HWY_INLINE void StoreColumns(const T* columns, int64_t n, T* out, int64_t pitch, int64_t rows) {
  if (RepaysTurning(n, sizeof(T))) {
    const RowBytes du;
    // What is written behind a row is written again with the next ones.
    const int64_t whole = pitch == n ? rows * n - kRowsTogether : -1;
    const auto store = [&](int64_t r, auto v) HWY_ATTR {
      if (r >= rows) return;
      auto* const y = reinterpret_cast<uint8_t*>(out + r * pitch);
      r* pitch <= whole ? hn::StoreU(v, du, y) : StorePartial(v, du, y, n);
    };
    const auto* const bytes = reinterpret_cast<const uint8_t*>(columns);
    return TurnBytes([&](int64_t c) HWY_ATTR { return hn::Load(du, bytes + c * kRowsTogether); },
                     store);
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < n; ++c) out[r * pitch + c] = columns[c * kRowsTogether + r];
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
