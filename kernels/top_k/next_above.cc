#include "kernels/top_k/next_above.h"

#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/top_k/next_above.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
int64_t NextAboveVector(const T* row, int64_t from, int64_t size, T least) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto bound = hn::Set(d, least);
  const auto first_above = [&](auto x) HWY_ATTR {
    if constexpr (std::is_floating_point_v<T>) {
      return hn::FindFirstTrue(d, hn::Not(hn::Le(x, bound)));
    } else {
      return hn::FindFirstTrue(d, hn::Gt(x, bound));
    }
  };
  int64_t i = from;
  for (; i + lanes <= size; i += lanes) {
    const intptr_t at = first_above(hn::LoadU(d, row + i));
    if (at >= 0) return i + at;
  }
  if (i >= size) return size;
  // What is behind the row comes after whatever is found in it.
  const intptr_t at = first_above(LoadPartial(d, row + i, static_cast<size_t>(size - i)));
  return at < 0 || i + at >= size ? size : i + at;
}

constexpr NextAboveFunctions kNextAbove = {NextAboveVector<float>,   NextAboveVector<int8_t>,
                                           NextAboveVector<uint8_t>, NextAboveVector<int16_t>,
                                           NextAboveVector<int32_t>, NextAboveVector<int64_t>};

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

template <class T>
int64_t NextAbovePlain(const T* row, int64_t from, int64_t size, T least) {
  while (from < size && row[from] <= least) ++from;
  return from;
}

}  // namespace

const NextAboveFunctions& PlainNextAbove() {
  static constexpr NextAboveFunctions kPlain = {NextAbovePlain<float>,   NextAbovePlain<int8_t>,
                                                NextAbovePlain<uint8_t>, NextAbovePlain<int16_t>,
                                                NextAbovePlain<int32_t>, NextAbovePlain<int64_t>};
  return kPlain;
}

const NextAboveFunctions* FindNextAbove(Isa isa) {
  static constexpr auto kTable = FUSELITE_SIMD_TABLE(kNextAbove);
  return kTable.For(isa);
}

}  // namespace fuselite::kernels
#endif
