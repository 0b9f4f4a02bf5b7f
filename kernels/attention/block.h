// A block of queries of one head, as the vector code of attention takes it.
#pragma once

#include <cstdint>

namespace fuselite::kernels {

struct AttentionBlock {
  // Whole tiles of the matrix product on every target; 28 x 200 scores are 22 KiB.
  static constexpr int kMaxRows = 28;

  int64_t rows;
  float scale;
  const float* masks[kMaxRows];  // of each row; null without a mask
  int mask_step;                 // 0: one value for the whole row
  float* scores;                 // [rows, keys]
};

}  // namespace fuselite::kernels
