// A block of queries of one head, as the vector code of attention takes it.
#pragma once

#include <cstdint>

namespace fuselite::kernels {

struct AttentionBlock {
  static constexpr int kMaxRows = 24;  // four tiles of six; 24 x 200 scores are 19 KiB

  const float* queries;
  int64_t query_pitch;
  const float* keys;    // [depth, keys]
  const float* values;  // [keys, values]
  int64_t rows;
  float scale;
  const float* masks[kMaxRows];  // of each row; null without a mask
  int mask_step;                 // 0: one value for the whole row
  float* scores;                 // room for [rows, keys]
  float* means;                  // the result, [rows, values]
};

}  // namespace fuselite::kernels
