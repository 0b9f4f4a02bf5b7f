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
#include <limits>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D32 = hn::ScalableTag<int32_t>;
using V32 = hn::Vec<D32>;

// The largest of 16 bytes, by folding them onto each other.
template <class T>
HWY_INLINE T MaxOfBytes(hn::Vec<hn::FixedTag<T, 16>> v) {
  const hn::FixedTag<T, 16> d;
  v = hn::Max(v, hn::CombineShiftRightBytes<8>(d, v, v));
  v = hn::Max(v, hn::CombineShiftRightBytes<4>(d, v, v));
  v = hn::Max(v, hn::CombineShiftRightBytes<2>(d, v, v));
  return hn::GetLane(hn::Max(v, hn::CombineShiftRightBytes<1>(d, v, v)));
}

// The last vector overlaps the one before.
template <class T>
HWY_INLINE int32_t RowMaxOf(const T* in, size_t n) {
  const hn::ScalableTag<T> d;
  const hn::FixedTag<T, 16> small;
  if (n < 16) {
    // Without branches: which value is larger cannot be foretold.
    int32_t largest = in[0];
    for (size_t i = 1; i < n; ++i) largest = HWY_MAX(largest, static_cast<int32_t>(in[i]));
    return largest;
  }
  auto largest = hn::LoadU(small, in + n - 16);
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  if (n >= lanes) {
    auto most = hn::LoadU(d, in);
    for (i = lanes; i + lanes <= n; i += lanes) most = hn::Max(most, hn::LoadU(d, in + i));
    HWY_ALIGN T all[hn::MaxLanes(d)];
    hn::Store(most, d, all);
    for (size_t k = 0; k < lanes; k += 16) largest = hn::Max(largest, hn::Load(small, all + k));
  }
  for (; i + 16 <= n; i += 16) largest = hn::Max(largest, hn::LoadU(small, in + i));
  return MaxOfBytes<T>(largest);
}

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

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
