// Operands and parameters for cases that are made to fit.
#pragma once

#include <cstring>

#include "tests/fuzz/random_operation.h"
#include "tests/kernels/op_tester.h"

namespace fuselite::fuzz {

using kernels::testing::OpTester;
using kernels::testing::Random;
using kernels::testing::TestTensor;

inline int32_t Dim(Random& random, int32_t low, int32_t high) {
  return static_cast<int32_t>(random.Int(low, high));
}

// One to some of each dimension, around the width of vectors in the last.
inline Shape SmallShape(Random& random, int rank) {
  Shape shape;
  for (int d = 0; d < rank; ++d) shape.push_back(Dim(random, 1, d + 1 == rank ? 19 : 4));
  return shape;
}

inline TestTensor Floats(Random& random, const Shape& shape, float magnitude) {
  TestTensor tensor({.type = DataType::kFloat32, .shape = shape}, 4 * random.Int(0, 3));
  tensor.Fill(random, -magnitude, magnitude);
  return tensor;
}

// int8 or uint8 with one small scale.
inline TestTensor Bytes(Random& random, DataType type, const Shape& shape) {
  TestTensor tensor(
      {.type = type, .shape = shape, .quantization = {.scales = {0.002f}, .zero_points = {0}}});
  const bool is_signed = type == DataType::kInt8;
  tensor.Fill(random, is_signed ? -127 : 0, is_signed ? 127 : 255);
  return tensor;
}

// What a tensor of any type may hold (DrawValues).
inline TestTensor Any(Random& random, DataType type, const Shape& shape) {
  TestTensor tensor({.type = type, .shape = shape},
                    static_cast<size_t>(BitWidth(type)) / 8 * random.Int(0, 3));
  const std::vector<std::byte> values = DrawValues(tensor.info(), random);
  if (!values.empty()) std::memcpy(tensor.bytes(), values.data(), values.size());
  return tensor;
}

// int32 from [low, high].
inline TestTensor Numbers(Random& random, const Shape& shape, int32_t low, int32_t high) {
  TestTensor tensor({.type = DataType::kInt32, .shape = shape});
  tensor.Fill(random, low, high);
  return tensor;
}

// Sets a parameter that has no struct in a header, by its name in the schema.
template <class T>
void SetParameter(OpTester& tester, std::string_view name, const T& value) {
  for (const kernels::Field& field : tester.op.op->fields) {
    if (field.name != name) continue;
    std::memcpy(static_cast<std::byte*>(tester.op.params.data()) + field.offset, &value,
                sizeof value);
    return;
  }
  ADD_FAILURE() << tester.op.op->name << " has no parameter " << name;
}

}  // namespace fuselite::fuzz
