// The columns of a matrix of bytes as rows.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/product/micro_kernel.h"

namespace fuselite::jit {

// The most lanes of a vector.
inline constexpr int kMaxLanes = 16;
// Lanes of neighbouring channels (ChannelOfLane).
inline constexpr size_t kQuad = 4;

// The rows of weights for a vector's lanes: where they lie, if their values are side by side, else
// copies.
class WeightRows {
 public:
  // Lanes without a channel (negative) have the row of one that has. `channels` are as many as
  // lanes, which come in fours of neighbouring channels (ChannelOfLane); `depth` values each.
  WeightRows(const kernels::RightMatrix& right, std::span<const int64_t> channels, int64_t depth);
  std::span<const uint8_t*> rows() { return std::span(rows_).first(count_); }

 private:
  // Copies four lanes from `lane` on.
  void CopyColumns(int64_t k_step, int64_t depth, size_t lane);

  size_t count_;
  std::array<const uint8_t*, kMaxLanes> rows_;
  std::vector<uint8_t> copies_;
};

}  // namespace fuselite::jit
