#include "kernels/detection/kept_boxes.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/detection/kept_boxes.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

bool Covers(const KeptBoxes& kept, const Box& box, float threshold) {
  const hn::CappedTag<float, 8> d;
  const auto lanes = static_cast<int32_t>(hn::Lanes(d));
  const auto zero = hn::Zero(d), most = hn::Set(d, threshold);
  const auto top = hn::Set(d, box.top), left = hn::Set(d, box.left);
  const auto bottom = hn::Set(d, box.bottom), right = hn::Set(d, box.right);
  const auto area = hn::Set(d, box.area());
  for (int32_t i = 0; i < kept.count(); i += lanes) {
    const auto count = static_cast<size_t>(std::min(lanes, kept.count() - i));
    const auto load = [&](KeptBoxes::Row row)
                          HWY_ATTR { return LoadUpTo(d, kept.row(row) + i, count); };
    const auto height =
        hn::Sub(hn::Min(bottom, load(KeptBoxes::kBottom)), hn::Max(top, load(KeptBoxes::kTop)));
    const auto width =
        hn::Sub(hn::Min(right, load(KeptBoxes::kRight)), hn::Max(left, load(KeptBoxes::kLeft)));
    const auto common = hn::Mul(hn::Max(height, zero), hn::Max(width, zero));
    const auto other = load(KeptBoxes::kArea);
    const auto part = hn::Div(common, hn::Sub(hn::Add(other, area), common));
    const auto are_areas = hn::And(hn::Gt(area, zero), hn::Gt(other, zero));
    const auto covers = hn::Gt(hn::IfThenElseZero(are_areas, part), most);
    if (!hn::AllFalse(d, hn::And(hn::FirstN(d, count), covers))) return true;
  }
  return false;
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

bool PlainCovers(const KeptBoxes& kept, const Box& box, float threshold) {
  const auto covers = [&](int32_t i) {
    const auto of = [&](KeptBoxes::Row row) { return kept.row(row)[i]; };
    const float bottom = std::min(box.bottom, of(KeptBoxes::kBottom));
    const float right = std::min(box.right, of(KeptBoxes::kRight));
    const float height = std::max(bottom - std::max(box.top, of(KeptBoxes::kTop)), 0.0f);
    const float width = std::max(right - std::max(box.left, of(KeptBoxes::kLeft)), 0.0f);
    const float common = height * width, other = of(KeptBoxes::kArea);
    const bool are_areas = box.area() > 0 && other > 0;
    return (are_areas ? common / (other + box.area() - common) : 0) > threshold;
  };
  for (int32_t i = 0; i < kept.count(); ++i) {
    if (covers(i)) return true;
  }
  return false;
}

CoversFunction* FindCovers(Isa isa) {
  constexpr auto kCovers = FUSELITE_SIMD_TABLE(Covers);
  return kCovers.For(isa);
}

}  // namespace fuselite::kernels
#endif
