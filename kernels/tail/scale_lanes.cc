#include "kernels/tail/scale_lanes.h"

#include <algorithm>

#include "kernels/tail/scale_query.h"

namespace fuselite::kernels {

LaneSearch::LaneSearch(std::span<const FloatScaleQuery> queries, Isa isa) : queries_(queries) {
  for (size_t i = 0; i < queries.size(); ++i) {
    const FloatScaleQuery& q = queries[i];
    lanes_.scale[i] = q.scale.value();
    lanes_.first_part[i] = FirstPart(q.scale);
    lanes_.least[i] = static_cast<double>(q.least);
    lanes_.largest[i] = static_cast<double>(q.largest);
  }
  for (size_t i = queries.size(); i < kStepLanes; ++i) {
    lanes_.scale[i] = lanes_.first_part[i] = lanes_.least[i] = lanes_.largest[i] = 0;
  }
  const FloatScaleQuery& q = queries[0];
  const auto offset = static_cast<float>(OffsetOf(q));
  PlaceLanes(q.max - q.zero_point, q.zero_point - q.min, offset, isa, &lanes_, &nearest_);
  auto above = static_cast<int>(*std::ranges::max_element(lanes_.above));
  auto below = static_cast<int>(*std::ranges::max_element(lanes_.below));
  if (q.addend_has_sign) {
    above = std::max(above, below);
    below = 0;
  }
  const auto count = static_cast<int>(queries.size());
  if (above > 0) BoundsOfLanes(nearest_, count, above_.emplace(above, offset, isa), isa, &upper_);
  if (below > 0) BoundsOfLanes(nearest_, count, below_.emplace(below, -offset, isa), isa, &lower_);
  PairsOfLanes(lanes_, nearest_, count, above_ ? &upper_ : nullptr, below_ ? &lower_ : nullptr,
               offset, q.addend_has_sign, isa, &pairs_);
}

bool LaneSearch::certain(int i) const {
  return lanes_.has_steps(i) && (!above_ || upper_.certain(i)) && (!below_ || lower_.certain(i));
}

bool WithAddend(float scale, int32_t offset, int32_t shift, AddendRange range, FloatScale* pair) {
  const double zero = offset - double{scale} * shift;
  const auto addend = static_cast<float>(zero + range.middle());
  const double exact = double{addend} - zero;
  if (exact - range.low < Inexact(scale) || range.high - exact < Inexact(scale)) return false;
  // Field by field: who copies what was just written so waits for it to leave the store buffer.
  pair->scale = scale;
  pair->addend = addend;
  pair->shift = shift;
  pair->down = FloatScale::kNoneDown;
  pair->up = FloatScale::kNoneUp;
  return true;
}

}  // namespace fuselite::kernels
