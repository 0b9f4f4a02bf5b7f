// Which matrices of two operands meet where their batch dimensions broadcast.
#pragma once

#include <cstdint>

namespace fuselite::kernels {

struct MatrixBatches {
  // Outermost first, and how far apart in matrices the operands' entries along each dimension are:
  // 0 where one is broadcast.
  static constexpr int kMaxRank = 3;
  int rank = 0;
  int32_t dims[kMaxRank] = {};
  int64_t x_strides[kMaxRank] = {}, y_strides[kMaxRank] = {};

  // The matrices of the output.
  int64_t count() const {
    int64_t count = 1;
    for (int i = 0; i < rank; ++i) count *= dims[i];
    return count;
  }
  // Which matrix of each operand makes up matrix `batch` of the output.
  struct Pair {
    int64_t x = 0, y = 0;
  };
  Pair PairOf(int64_t batch) const {
    Pair pair;
    for (int i = rank - 1; i >= 0; --i) {
      pair.x += batch % dims[i] * x_strides[i];
      pair.y += batch % dims[i] * y_strides[i];
      batch /= dims[i];
    }
    return pair;
  }
};

}  // namespace fuselite::kernels
