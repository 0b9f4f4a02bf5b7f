// Shapes that broadcast, and what broadcasting means.
#pragma once

#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {

// Shapes of up to 6 dimensions that broadcast: each dimension of either may be 1, leading ones may
// be missing.
struct ShapePair {
  Shape x, y, out;
};
inline ShapePair RandomShapes(Random& random) {
  ShapePair pair;
  const int rank = static_cast<int>(random.Int(1, 6));
  const int x_rank = static_cast<int>(random.Chance(0.7) ? rank : random.Int(0, rank));
  const int y_rank =
      x_rank < rank || random.Chance(0.5) ? rank : static_cast<int>(random.Int(0, rank));
  for (int d = 0; d < rank; ++d) {
    const int32_t size = static_cast<int32_t>(random.Int(1, d == rank - 1 ? 40 : 4));
    const int32_t x = random.Chance(0.2) ? 1 : size, y = random.Chance(0.4) ? 1 : size;
    const bool in_x = d >= rank - x_rank, in_y = d >= rank - y_rank;
    if (in_x) pair.x.push_back(x);
    if (in_y) pair.y.push_back(y);
    pair.out.push_back(std::max(in_x ? x : 1, in_y ? y : 1));
  }
  return pair;
}

// Straight from the definition: element `i` of the output's dense order.
inline float BroadcastElement(const TestTensor& tensor, const Shape& out, int64_t i) {
  const Shape& shape = tensor.info().shape;
  int64_t dense = 0, stride = 1;
  for (int d = 1; d <= shape.rank(); ++d) {
    const int64_t index = i % out.dim(-d);
    i /= out.dim(-d);
    if (shape.dim(-d) != 1) dense += index * stride;
    stride *= shape.dim(-d);
  }
  return tensor.at<float>(dense);
}

}  // namespace fuselite::kernels::testing
