// Small cases worked out by hand: what the reference gives.
#pragma once

#include <vector>

#include "tests/kernels/movement_tester.h"

namespace fuselite::kernels::testing {

// What the reference computes; nothing, with a failure of the test, where it refuses.
inline std::vector<TestTensor> RunReference(OpTester& tester) {
  const Status inferred = tester.Infer();
  EXPECT_TRUE(inferred.ok()) << inferred.ToString();
  if (!inferred.ok()) return {};
  auto outputs = tester.Run("reference", Isa::kScalar, 3, 1);
  EXPECT_TRUE(outputs.ok()) << outputs.status().ToString();
  return outputs.ok() ? *std::move(outputs) : std::vector<TestTensor>();
}

template <class T>
std::vector<T> Values(OpTester& tester, size_t output = 0) {
  const std::vector<TestTensor> outputs = RunReference(tester);
  return output < outputs.size() ? outputs[output].values<T>() : std::vector<T>();
}

inline TestTensor Floats(const Shape& shape, const std::vector<float>& values) {
  return TestTensor::Of<float>(DataType::kFloat32, shape, values);
}

}  // namespace fuselite::kernels::testing
