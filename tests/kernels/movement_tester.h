// Checks data movement against its definition: where each output element comes from.
#pragma once

#include <functional>
#include <numeric>
#include <vector>

#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {

using Index = std::vector<int64_t>;

// The dense position of `index` in `shape`, and back.
inline int64_t Flatten(const Shape& shape, const Index& index) {
  int64_t flat = 0;
  for (int d = 0; d < shape.rank(); ++d) flat = flat * shape[d] + index[d];
  return flat;
}
inline Index Unflatten(const Shape& shape, int64_t flat) {
  Index index(shape.rank());
  for (int d = shape.rank() - 1; d >= 0; --d) {
    index[d] = flat % shape[d];
    flat /= shape[d];
  }
  return index;
}

// Cases of a random test.
inline constexpr int kCases = 60;

// int32: 0, 1, 2 ...
inline TestTensor Iota(const Shape& shape) {
  std::vector<int32_t> values(shape.elements());
  std::iota(values.begin(), values.end(), 0);
  return TestTensor::Of<int32_t>(DataType::kInt32, shape, values);
}

inline Shape InferredShape(OpTester& tester) {
  const Status inferred = tester.Infer();
  EXPECT_TRUE(inferred.ok()) << inferred.ToString();
  return tester.op.outputs[0].shape;
}

inline Shape RandomShape(Random& random, int rank, int max_dim) {
  Shape shape;
  for (int d = 0; d < rank; ++d) shape.push_back(static_cast<int32_t>(random.Int(1, max_dim)));
  return shape;
}

inline TestTensor Ints(const std::vector<int32_t>& values) {
  return TestTensor::Of<int32_t>(DataType::kInt32, {static_cast<int32_t>(values.size())}, values);
}
inline TestTensor Scalar(int32_t value) {
  return TestTensor::Of<int32_t>(DataType::kInt32, {}, {value});
}

// A tensor whose bytes all differ as far as bytes can, sometimes misaligned and with pitched rows.
inline TestTensor RandomTensor(Random& random, DataType type, const Shape& shape,
                               bool may_pitch = true) {
  TensorInfo info{.type = type, .shape = shape};
  if (may_pitch && shape.rank() > 0 && random.Chance(0.3)) {
    info.row_pitch = shape.dim(-1) + random.Int(1, 5);
  }
  TestTensor tensor(info, random.Int(0, 3) * static_cast<size_t>(BitWidth(type) / 8));
  const size_t element = BitWidth(type) / 8;
  for (int64_t i = 0; i < info.elements(); ++i) {
    std::byte* at =
        tensor.bytes() + element * (i / tensor.width() * info.pitch() + i % tensor.width());
    for (size_t b = 0; b < element; ++b) at[b] = static_cast<std::byte>(random.Int(0, 255));
  }
  return tensor;
}

inline const std::byte* ElementOf(const TestTensor& tensor, int64_t flat) {
  const int64_t position = flat / tensor.width() * tensor.info().pitch() + flat % tensor.width();
  return tensor.bytes() + position * (BitWidth(tensor.info().type) / 8);
}

// Gives the address of the element that output `output` must hold at `index`.
using SourceOf = std::function<const std::byte*(int output, const Index& index)>;

// Runs every candidate at every level, with pitched output rows half of the time, and compares
// every byte.
inline void ExpectMoved(OpTester& tester, Random& random, const SourceOf& source,
                        bool may_pitch = true) {
  const Status inferred = tester.Infer();
  ASSERT_TRUE(inferred.ok()) << inferred.ToString();
  for (TensorInfo& out : tester.op.outputs) {
    if (may_pitch && out.shape.rank() > 0 && random.Chance(0.5)) {
      out.row_pitch = out.shape.dim(-1) + random.Int(0, 4);
    }
  }
  const auto compare = [&](std::string_view candidate, Isa isa) {
    const auto outputs =
        tester.Run(candidate, isa, random.Int(1, 1 << 30), static_cast<size_t>(random.Int(0, 3)));
    ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
    for (size_t o = 0; o < outputs->size(); ++o) {
      const TestTensor& out = (*outputs)[o];
      const size_t element = BitWidth(out.info().type) / 8;
      for (int64_t i = 0; i < out.info().elements(); ++i) {
        const std::byte* expected = source(static_cast<int>(o), Unflatten(out.info().shape, i));
        ASSERT_EQ(std::memcmp(expected, ElementOf(out, i), element), 0)
            << candidate << " " << IsaName(isa) << " output " << o << " " << out.info().shape
            << " element " << i;
      }
    }
  };
  compare("reference", Isa::kScalar);
  if (tester.op.op->candidates[0].name != "highway") return;
  for (const Isa isa : RunnableIsas()) {
    if (isa != Isa::kScalar) compare("highway", isa);
  }
}

constexpr DataType kWidths[] = {DataType::kUInt8, DataType::kInt16, DataType::kFloat32,
                                DataType::kInt64};

}  // namespace fuselite::kernels::testing
