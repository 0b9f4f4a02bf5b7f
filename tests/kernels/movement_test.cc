// RESHAPE, SQUEEZE, EXPAND_DIMS, TRANSPOSE, CONCATENATION, PACK, SPLIT, SPLIT_V, UNPACK: against
// their definitions.
#include "tests/kernels/movement_tester.h"

#include "kernels/concatenation/concatenation.h"
#include "kernels/movement/placement.h"
#include "kernels/reshape/reshape.h"
#include "kernels/split/split.h"

namespace fuselite::kernels::testing {
namespace {

constexpr DataType kU8 = DataType::kUInt8;

TEST(ReshapeTest, Shapes) {
  const auto reshape = [](const Shape& from, std::vector<int32_t> to) {
    OpTester tester("RESHAPE");
    tester.Input(Iota(from)).Constant(Ints(to));
    return InferredShape(tester);
  };
  EXPECT_EQ(reshape({2, 3, 4}, {6, -1}), (Shape{6, 4}));
  EXPECT_EQ(reshape({2, 0}, {-1, 5}), (Shape{0, 5}));
  EXPECT_EQ(reshape({4, 0}, {2, 0, -1}), (Shape{2, 0, 2}));
  EXPECT_EQ(reshape({0, 3}, {0, -1}), (Shape{0, 3}));
  EXPECT_EQ(reshape({1}, {}), Shape());

  OpTester parameters("RESHAPE");
  parameters.params<ReshapeParams>().new_shape = {{4, -1}, 2};
  parameters.Input(Iota({2, 6}));
  EXPECT_EQ(InferredShape(parameters), (Shape{4, 3}));
  OpTester scalar("RESHAPE");
  scalar.params<ReshapeParams>().new_shape = {{0}, 1};
  scalar.Input(Iota({1, 1}));
  EXPECT_EQ(InferredShape(scalar), Shape());
}

TEST(ReshapeTest, Refuses) {
  const auto code = [](std::vector<int32_t> to) {
    OpTester tester("RESHAPE");
    tester.Input(Iota({2, 3})).Constant(Ints(to));
    return tester.Infer().code();
  };
  EXPECT_EQ(code({-1, -1}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({4, -1}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({5}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({-2, -3}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(std::vector<int32_t>(17, 1)), StatusCode::kUnsupported);
  OpTester dynamic("RESHAPE");
  dynamic.Input(Iota({2, 3})).Input(Ints({6}));
  EXPECT_EQ(dynamic.Infer().code(), StatusCode::kDynamicShape);
  OpTester strings("RESHAPE");
  strings.params<ReshapeParams>().new_shape = {{4}, 1};
  strings.Input(TestTensor({.type = DataType::kString, .shape = {2, 2}}));
  EXPECT_EQ(strings.Infer().code(), StatusCode::kUnsupported);
}

TEST(ReshapeTest, KeepsTheOrder) {
  for (int i = 0; i < kCases; ++i) {
    Random random(100 + i);
    SCOPED_TRACE(random.Trace());
    const Shape shape = RandomShape(random, static_cast<int>(random.Int(1, 4)), 6);
    const auto tensor = RandomTensor(random, kWidths[i % 4], shape);
    OpTester tester("RESHAPE");
    tester.Input(tensor).Constant(Ints({static_cast<int32_t>(shape.elements())}));
    const bool dense = tensor.info().row_pitch == 0;
    ExpectMoved(
        tester, random, [&](int, const Index& o) { return ElementOf(tensor, o[0]); }, dense);
  }
}

TEST(SqueezeTest, Shapes) {
  OpTester all("SQUEEZE");
  all.Input(Iota({1, 2, 1, 3}));
  EXPECT_EQ(InferredShape(all), (Shape{2, 3}));
  OpTester some("SQUEEZE");
  some.params<SqueezeParams>().squeeze_dims = {{-2}, 1};
  some.Input(Iota({1, 2, 1, 3}));
  EXPECT_EQ(InferredShape(some), (Shape{1, 2, 3}));
  OpTester wrong("SQUEEZE");
  wrong.params<SqueezeParams>().squeeze_dims = {{1}, 1};
  wrong.Input(Iota({1, 2, 1, 3}));
  EXPECT_EQ(wrong.Infer().code(), StatusCode::kInvalidArgument);
}

TEST(ExpandDimsTest, Shapes) {
  const auto expand = [](int32_t axis) {
    OpTester tester("EXPAND_DIMS");
    tester.Input(Iota({2, 3})).Constant(Scalar(axis));
    return InferredShape(tester);
  };
  EXPECT_EQ(expand(0), (Shape{1, 2, 3}));
  EXPECT_EQ(expand(-1), (Shape{2, 3, 1}));
  EXPECT_EQ(expand(1), (Shape{2, 1, 3}));
  OpTester wrong("EXPAND_DIMS");
  wrong.Input(Iota({2, 3})).Constant(Scalar(4));
  EXPECT_EQ(wrong.Infer().code(), StatusCode::kInvalidArgument);
}

TEST(TransposeTest, MatchesItsDefinition) {
  for (int i = 0; i < 4 * kCases; ++i) {
    Random random(200 + i);
    SCOPED_TRACE(random.Trace());
    const int rank = static_cast<int>(random.Int(1, 6));
    const Shape shape = RandomShape(random, rank, rank <= 3 ? 40 : 5);
    std::vector<int32_t> perm(rank);
    std::iota(perm.begin(), perm.end(), 0);
    for (int d = rank - 1; d > 0; --d) std::swap(perm[d], perm[random.Int(0, d)]);
    const auto tensor = RandomTensor(random, kWidths[i % 4], shape);
    OpTester tester("TRANSPOSE");
    tester.Input(tensor).Constant(Ints(perm));
    ExpectMoved(tester, random, [&](int, const Index& o) {
      Index in(rank);
      for (int d = 0; d < rank; ++d) in[perm[d]] = o[d];
      return ElementOf(tensor, Flatten(shape, in));
    });
  }
}

// What is moved together is narrower than a register, and written over its neighbour's place.
TEST(TransposeTest, PixelsOfFewBytes) {
  for (int32_t channels = 1; channels <= 9; ++channels) {
    Random random(250 + channels);
    SCOPED_TRACE(random.Trace());
    const Shape shape = {11, 17, channels};
    const auto tensor = RandomTensor(random, DataType::kUInt8, shape);
    OpTester tester("TRANSPOSE");
    tester.Input(tensor).Constant(Ints({1, 0, 2}));
    ExpectMoved(tester, random, [&](int, const Index& o) {
      return ElementOf(tensor, Flatten(shape, {o[1], o[0], o[2]}));
    });
  }
}

TEST(TransposeTest, Refuses) {
  const auto code = [](std::vector<int32_t> perm) {
    OpTester tester("TRANSPOSE");
    tester.Input(Iota({2, 3})).Constant(Ints(perm));
    return tester.Infer().code();
  };
  EXPECT_EQ(code({0}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({0, 0}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({0, 2}), StatusCode::kInvalidArgument);
}

TEST(ConcatenationTest, MatchesItsDefinition) {
  for (int i = 0; i < kCases; ++i) {
    Random random(300 + i);
    SCOPED_TRACE(random.Trace());
    const int rank = static_cast<int>(random.Int(1, 4));
    const int axis = static_cast<int>(random.Int(0, rank - 1));
    Shape shape = RandomShape(random, rank, 7);
    OpTester tester("CONCATENATION");
    tester.params<ConcatenationParams>().axis = random.Chance(0.5) ? axis : axis - rank;
    for (int64_t k = random.Int(1, 4); k > 0; --k) {
      shape.set(axis, static_cast<int32_t>(random.Int(0, 5)));
      tester.Input(RandomTensor(random, kWidths[i % 4], shape));
    }
    ExpectMoved(tester, random, [&](int, Index o) {
      size_t k = 0;
      while (o[axis] >= tester.inputs[k].info().shape[axis]) {
        o[axis] -= tester.inputs[k++].info().shape[axis];
      }
      return ElementOf(tester.inputs[k], Flatten(tester.inputs[k].info().shape, o));
    });
  }
}

TEST(ConcatenationTest, RequantizesUInt8) {
  OpTester tester("CONCATENATION");
  tester.params<ConcatenationParams>().axis = -1;
  const std::vector<uint8_t> values = {0, 100, 255};
  tester.Input(TestTensor::Of<uint8_t>(kU8, {1, 3}, values, {{0.5f}, {10}}));
  tester.Input(TestTensor::Of<uint8_t>(kU8, {1, 3}, values, {{1.0f}, {128}}));
  tester.Output(kU8, {{1.0f}, {128}});
  ASSERT_TRUE(tester.Infer().ok());
  const auto outputs = tester.Run("reference", Isa::kScalar);
  ASSERT_TRUE(outputs.ok());
  // 0.5 x - 5, rounded half away from zero, + 128.
  EXPECT_THAT((*outputs)[0].values<uint8_t>(), ::testing::ElementsAre(123, 173, 251, 0, 100, 255));
  EXPECT_FALSE(FindPlacement(tester.op).ok());
}

TEST(ConcatenationTest, HighwayRequantizesAsTheReference) {
  for (int i = 0; i < kCases; ++i) {
    Random random(700 + i);
    SCOPED_TRACE(random.Trace());
    const int axis = static_cast<int>(random.Int(0, 2));
    Shape shape = RandomShape(random, 3, 20);
    OpTester tester("CONCATENATION");
    tester.params<ConcatenationParams>().axis = axis;
    const Quantization quantizations[] = {{{0.5f}, {10}}, {{1.0f}, {128}}, {{0.3f}, {255}}};
    for (const Quantization& q : quantizations) {
      shape.set(axis, static_cast<int32_t>(random.Int(1, 90)));
      TestTensor in({.type = kU8, .shape = shape, .quantization = q}, random.Int(0, 3));
      in.Fill(random, 0, 255);
      tester.Input(in);
    }
    tester.Output(kU8, quantizations[random.Int(0, 2)]);
    ASSERT_TRUE(tester.Infer().ok());
    const auto expected = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(expected.ok());
    for (const Isa isa : RunnableIsas()) {
      const auto actual = tester.Run("highway", isa, 700 + i, random.Int(0, 3));
      if (actual.status().code() == StatusCode::kUnsupported) continue;
      ASSERT_TRUE(actual.ok()) << actual.status().ToString();
      ExpectSame<uint8_t>((*expected)[0], (*actual)[0], IsaName(isa));
    }
  }
}

TEST(ConcatenationTest, Refuses) {
  OpTester shapes("CONCATENATION");
  shapes.Input(Iota({2, 3})).Input(Iota({2, 4}));
  EXPECT_EQ(shapes.Infer().code(), StatusCode::kInvalidArgument);
  OpTester axis("CONCATENATION");
  axis.params<ConcatenationParams>().axis = 2;
  axis.Input(Iota({2, 3}));
  EXPECT_EQ(axis.Infer().code(), StatusCode::kInvalidArgument);
  OpTester int8("CONCATENATION");
  int8.Input(TestTensor::Of<int8_t>(DataType::kInt8, {1}, {1}, {{0.5f}, {0}}));
  int8.Output(DataType::kInt8, {{0.25f}, {0}});
  EXPECT_EQ(int8.Infer().code(), StatusCode::kInvalidArgument);
}

TEST(PackTest, MatchesItsDefinition) {
  for (int i = 0; i < kCases; ++i) {
    Random random(400 + i);
    SCOPED_TRACE(random.Trace());
    const int rank = static_cast<int>(random.Int(0, 4));
    const int axis = static_cast<int>(random.Int(0, rank));
    const Shape shape = RandomShape(random, rank, 6);
    const auto count = static_cast<int32_t>(random.Int(1, 4));
    OpTester tester("PACK");
    tester.params<PackParams>() = {count, random.Chance(0.5) ? axis : axis - rank - 1};
    for (int k = 0; k < count; ++k) tester.Input(RandomTensor(random, kWidths[i % 4], shape));
    ExpectMoved(tester, random, [&](int, Index o) {
      const int64_t k = o[axis];
      o.erase(o.begin() + axis);
      return ElementOf(tester.inputs[k], Flatten(shape, o));
    });
  }
}

TEST(SplitTest, MatchesItsDefinition) {
  for (int i = 0; i < kCases; ++i) {
    Random random(500 + i);
    SCOPED_TRACE(random.Trace());
    const int rank = static_cast<int>(random.Int(1, 4));
    const int axis = static_cast<int>(random.Int(0, rank - 1));
    const int32_t parts = static_cast<int32_t>(random.Int(1, 4));
    Shape shape = RandomShape(random, rank, 6);
    shape.set(axis, shape[axis] * parts);
    const auto tensor = RandomTensor(random, kWidths[i % 4], shape);
    OpTester tester("SPLIT");
    tester.params<SplitParams>().num_splits = parts;
    tester.Constant(Scalar(random.Chance(0.5) ? axis : axis - rank)).Input(tensor);
    for (int k = 0; k < parts; ++k) tester.Output();
    ExpectMoved(tester, random, [&](int part, Index o) {
      o[axis] += part * (shape[axis] / parts);
      return ElementOf(tensor, Flatten(shape, o));
    });
  }
}

TEST(SplitVTest, MatchesItsDefinition) {
  for (int i = 0; i < kCases; ++i) {
    Random random(600 + i);
    SCOPED_TRACE(random.Trace());
    const int rank = static_cast<int>(random.Int(1, 4));
    const int axis = static_cast<int>(random.Int(0, rank - 1));
    const int parts = static_cast<int>(random.Int(1, 4));
    std::vector<int32_t> sizes, starts;
    int32_t total = 0;
    for (int k = 0; k < parts; ++k) {
      starts.push_back(total);
      sizes.push_back(static_cast<int32_t>(random.Int(0, 5)));
      total += sizes.back();
    }
    Shape shape = RandomShape(random, rank, 6);
    shape.set(axis, total);
    if (random.Chance(0.5)) sizes[random.Int(0, parts - 1)] = -1;
    const auto tensor = RandomTensor(random, kWidths[i % 4], shape);
    OpTester tester("SPLIT_V");
    tester.params<SplitParams>().num_splits = parts;
    tester.Input(tensor).Constant(Ints(sizes)).Constant(Scalar(axis));
    for (int k = 0; k < parts; ++k) tester.Output();
    ExpectMoved(tester, random, [&](int part, Index o) {
      o[axis] += starts[part];
      return ElementOf(tensor, Flatten(shape, o));
    });
  }
}

TEST(SplitVTest, Refuses) {
  const auto code = [](std::vector<int32_t> sizes) {
    OpTester tester("SPLIT_V");
    tester.params<SplitParams>().num_splits = 2;
    tester.Input(Iota({5})).Constant(Ints(sizes)).Constant(Scalar(0)).Output().Output();
    return tester.Infer().code();
  };
  EXPECT_EQ(code({2, 3}), StatusCode::kOk);
  EXPECT_EQ(code({2, 2}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({6, -1}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({-1, -1}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({5}), StatusCode::kInvalidArgument);
}

TEST(UnpackTest, MatchesItsDefinition) {
  for (int i = 0; i < kCases; ++i) {
    Random random(700 + i);
    SCOPED_TRACE(random.Trace());
    const int rank = static_cast<int>(random.Int(1, 4));
    const int axis = static_cast<int>(random.Int(0, rank - 1));
    const Shape shape = RandomShape(random, rank, 5);
    const auto tensor = RandomTensor(random, kWidths[i % 3], shape);
    OpTester tester("UNPACK");
    tester.params<UnpackParams>() = {shape[axis], random.Chance(0.5) ? axis : axis - rank};
    tester.Input(tensor);
    for (int k = 0; k < shape[axis]; ++k) tester.Output();
    ExpectMoved(tester, random, [&](int part, Index o) {
      o.insert(o.begin() + axis, part);
      return ElementOf(tensor, Flatten(shape, o));
    });
  }
}

}  // namespace
}  // namespace fuselite::kernels::testing
