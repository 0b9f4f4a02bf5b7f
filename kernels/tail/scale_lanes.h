// The search for the scales of a vector, side by side.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "kernels/tail/scale_steps.h"

namespace fuselite::kernels {

// Finds the pairs of scales side by side that need no moved sum and not another scale than the
// nearest float.
class LaneSearch {
 public:
  LaneSearch(std::span<const FloatScaleQuery> queries, Isa isa);

  // That of query i.
  std::optional<FloatScale> Pair(int i) const;

 private:
  void Add(int i);

  std::span<const FloatScaleQuery> queries_;
  const FloatScaleQuery& q_;
  const Isa isa_;
  ScaleLanes lanes_;
  std::array<int32_t, kStepLanes> shifts_{};
  std::array<bool, kStepLanes> taken_{};  // which lanes are
  int narrow_ = 0;                        // of them
  int above_ = 0, below_ = 0;             // the most steps of a lane
  LaneBounds upper_, lower_;
};

}  // namespace fuselite::kernels
