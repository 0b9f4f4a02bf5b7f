#include "kernels/tail/hard_sums.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tail/hard_sums.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Which of the x have such a sum. Places of y behind the last one count, too: they are 0.
void VectorFindHardRows(const SumPlaces& places, int32_t limit, std::array<bool, 256>* hard) {
  const hn::CappedTag<int32_t, SumPlaces::kMost> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const auto lanes = static_cast<int>(hn::Lanes(d));
  const auto most = hn::Set(d, limit);
  for (int x = 0; x < places.x_count; ++x) {
    const auto of_x = hn::Set(du, places.x[x]);
    auto least = hn::Set(d, INT32_MAX), other = least;
    for (int y = 0; y < places.y_count; y += 2 * lanes) {
      const uint32_t* const at = places.y.data() + y;
      least = hn::Min(least, hn::BitCast(d, hn::Add(of_x, hn::Load(du, at))));
      other = hn::Min(other, hn::BitCast(d, hn::Add(of_x, hn::Load(du, at + lanes))));
    }
    (*hard)[x] = !hn::AllTrue(d, hn::Gt(hn::Min(least, other), most));
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#if HWY_ONCE
namespace fuselite::kernels {

void ForEachHardSum(const SumPlaces& places, int32_t limit, Isa isa,
                    FunctionRef<void(int x, int y)> use) {
  constexpr auto kFindHardRows = FUSELITE_SIMD_TABLE(VectorFindHardRows);
  std::array<bool, SumPlaces::kMost> hard;
  kFindHardRows.For(isa)(places, limit, &hard);
  for (int x = 0; x < places.x_count; ++x) {
    if (!hard[x]) continue;
    for (int y = 0; y < places.y_count; ++y) {
      if (static_cast<int32_t>(places.x[x] + places.y[y]) <= limit) use(x, y);
    }
  }
}

}  // namespace fuselite::kernels
#endif  // HWY_ONCE
