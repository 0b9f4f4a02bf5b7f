// Random attention.
#pragma once

#include <limits>

#include "kernels/attention/attention.h"
#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {

// Within [-magnitude, magnitude].
inline TestTensor RandomFloats(Random& random, Shape shape, float magnitude) {
  TestTensor tensor({.type = DataType::kFloat32, .shape = shape}, 4 * random.Int(0, 3));
  tensor.Fill(random, -magnitude, magnitude);
  return tensor;
}

// A mask as decoders have it: query m sees the keys up to first + m.
inline TestTensor CausalMask(Random& random, Shape shape, int32_t first) {
  TestTensor mask({.type = DataType::kFloat32, .shape = shape});
  const float hidden = random.Pick({-1e9f, -INFINITY, std::numeric_limits<float>::lowest()});
  for (int64_t i = 0; i < mask.info().elements(); ++i) {
    const int64_t key = i % shape.dim(-1), query = i / shape.dim(-1) % shape.dim(-2);
    mask.at<float>(i) = key <= first + query ? 0.0f : hidden;
  }
  return mask;
}

// Heads outside of rows, keys by rows or columns, masks of every shape.
inline OpTester RandomAttention(Random& random) {
  const auto dim = [&](int low, int high) { return static_cast<int32_t>(random.Int(low, high)); };
  const int32_t n = dim(1, 2), h = dim(1, 3), queries = dim(1, 60), keys = dim(1, 70);
  const int32_t depth = dim(1, 40), values = dim(1, 70);
  OpTester tester("FUSELITE_ATTENTION");
  auto& params = tester.params<AttentionParams>();
  params.scale = random.Pick({1.0f, 0.125f});
  params.keys_by_rows = random.Chance(0.5);
  tester.Input(RandomFloats(random, {n, h, queries, depth}, 1));
  tester.Input(RandomFloats(
      random, params.keys_by_rows ? Shape{n, h, keys, depth} : Shape{n, h, depth, keys}, 1));
  tester.Input(RandomFloats(random, {n, h, keys, values}, 2));
  for (int masks = random.Int(0, 2); masks > 0; --masks) {
    const Shape mask = random.Pick({Shape{n, h, queries, keys}, Shape{n, 1, 1, keys},
                                    Shape{queries, keys}, Shape{n, h, 1, 1}});
    tester.Input(RandomFloats(random, mask, 3));
  }
  return tester;
}

}  // namespace fuselite::kernels::testing
