// ARG_MAX, ARG_MIN, TOPK_V2, CUMSUM, ONE_HOT, WHERE, SHAPE, RANK, FILL, ZEROS_LIKE, RANGE.
#include <algorithm>

#include "kernels/arg_max/arg_max.h"
#include "kernels/cumsum/cumsum.h"
#include "kernels/generate/generate.h"
#include "tests/kernels/quantized_cases.h"
#include "tests/kernels/reference_values.h"

namespace fuselite::kernels::testing {
namespace {

using ::testing::ElementsAre;

constexpr DataType kF32 = DataType::kFloat32, kI32 = DataType::kInt32, kI64 = DataType::kInt64,
                   kI8 = DataType::kInt8, kU8 = DataType::kUInt8;

TEST(ArgMaxTest, FirstOfEqualOnesAndNoNan) {
  const std::vector<float> in = {3, NAN, 1, 3, 5, 5};
  const auto run = [&](std::string_view name, int32_t axis) {
    OpTester tester(name);
    tester.params<ArgMaxParams>().output_type = kI32;
    tester.Input(Floats({2, 3}, in)).Constant(Scalar(axis));
    return Values<int32_t>(tester);
  };
  EXPECT_THAT(run("ARG_MAX", 1), ElementsAre(0, 1));
  EXPECT_THAT(run("ARG_MIN", -1), ElementsAre(2, 0));
  EXPECT_THAT(run("ARG_MAX", 0), ElementsAre(0, 1, 1));
  EXPECT_THAT(run("ARG_MIN", 0), ElementsAre(0, 1, 0));
  OpTester wide("ARG_MAX");
  wide.params<ArgMaxParams>().output_type = kI64;
  wide.Input(TestTensor::Of<int8_t>(kI8, {3}, {-3, -1, -2})).Constant(Scalar(0));
  EXPECT_THAT(Values<int64_t>(wide), ElementsAre(1));
}

// Many equal values, and NaNs and infinities among floats.
void CompareArgHighway(DataType type, uint64_t seed) {
  Random random(seed);
  SCOPED_TRACE(random.Trace());
  const int axis = static_cast<int>(random.Int(0, 2));
  Shape shape = {static_cast<int32_t>(random.Int(1, 9)), static_cast<int32_t>(random.Int(1, 40)),
                 static_cast<int32_t>(random.Int(1, 40))};
  if (random.Chance(0.3)) shape.set(axis, static_cast<int32_t>(random.Int(200, 600)));
  // Columns that do not fill a vector.
  if (axis < 2 && random.Chance(0.4)) shape.set(2, static_cast<int32_t>(random.Int(1, 17)));
  if (axis == 0 && random.Chance(0.7)) shape.set(1, 1);
  TestTensor in({.type = type, .shape = shape}, random.Int(0, 3) * (BitWidth(type) / 8));
  const int64_t spread = random.Pick<int64_t>({0, 3, 127});
  in.Fill(random, type == DataType::kUInt8 ? 0 : static_cast<double>(-spread), spread);
  for (int64_t i = 0; type == kF32 && i < shape.elements(); ++i) {
    if (random.Chance(0.5)) in.at<float>(i) = std::round(in.at<float>(i));
    if (random.Chance(0.4)) in.at<float>(i) = random.Pick<float>({NAN, INFINITY, -INFINITY});
  }
  OpTester tester(random.Chance(0.5) ? "ARG_MAX" : "ARG_MIN");
  const DataType index = random.Chance(0.5) ? kI32 : kI64;
  tester.params<ArgMaxParams>().output_type = index;
  tester.Input(in).Constant(Scalar(axis));
  ASSERT_TRUE(tester.Infer().ok());
  index == kI32 ? ExpectHighwayIsTheReference<int32_t>(tester, random)
                : ExpectHighwayIsTheReference<int64_t>(tester, random);
}

TEST(ArgMaxTest, HighwayMatchesTheReference) {
  for (uint64_t i = 0; i < 150; ++i) {
    for (const DataType type : {kF32, kI32, kI8, kU8, DataType::kBool}) {
      CompareArgHighway(type, 1000 + i);
    }
  }
}

// Rows of every length that makes keys of 16 bits, and beyond.
TEST(ArgMaxTest, RowsOfBytesMatchTheReference) {
  for (int32_t size = 1; size <= 260; ++size) {
    Random random(size);
    SCOPED_TRACE(random.Trace());
    const DataType type = random.Pick({kI8, kU8});
    TestTensor in({.type = type, .shape = {static_cast<int32_t>(random.Int(1, 80)), size}},
                  random.Int(0, 3));
    const int64_t spread = random.Pick<int64_t>({1, 127});
    in.Fill(random, type == kU8 ? 0 : static_cast<double>(-spread - 1), spread);
    OpTester tester(random.Chance(0.5) ? "ARG_MAX" : "ARG_MIN");
    tester.params<ArgMaxParams>().output_type = kI32;
    tester.Input(in).Constant(Scalar(1));
    ASSERT_TRUE(tester.Infer().ok());
    ExpectHighwayIsTheReference<int32_t>(tester, random);
  }
}

TEST(TopKTest, Sorts) {
  OpTester tester("TOPK_V2");
  tester.Input(Floats({2, 4}, {1, 4, NAN, 4, -1, -2, -3, -4})).Constant(Scalar(3));
  tester.Output().Output();
  EXPECT_THAT(Values<float>(tester), ElementsAre(4, 4, 1, -1, -2, -3));
  EXPECT_THAT(Values<int32_t>(tester, 1), ElementsAre(1, 3, 0, 0, 1, 2));
  OpTester wrong("TOPK_V2");
  wrong.Input(Floats({2}, {1, 2})).Constant(Scalar(3)).Output().Output();
  EXPECT_EQ(wrong.Infer().code(), StatusCode::kInvalidArgument);
}

// Few and many of a row, in which values repeat: what a stable sort gives, NaNs last.
template <class T>
void ExpectLargest(DataType type, Random& random) {
  const int64_t size = random.Int(1, 300);
  const int64_t k = random.Int(1, random.Chance(0.5) ? size : std::min<int64_t>(size, 6));
  TestTensor x({.type = type, .shape = {1, static_cast<int32_t>(size)}}, 8 * random.Int(0, 3));
  x.Fill(random, type == kU8 ? 0 : -20, 20);
  if constexpr (std::is_floating_point_v<T>) {
    const auto special = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, -NAN};
    for (int64_t i = 0; i < size; i += 3) x.at<T>(i) = random.Pick(special);
  }
  std::vector<int32_t> order(size);
  std::iota(order.begin(), order.end(), 0);
  const auto is_nan = [](T value) { return std::isnan(static_cast<double>(value)); };
  std::ranges::stable_sort(order, [&](int32_t a, int32_t b) {
    const T left = x.at<T>(a), right = x.at<T>(b);
    return left > right || (!is_nan(left) && is_nan(right));
  });
  OpTester tester("TOPK_V2");
  tester.Input(x).Constant(Scalar(static_cast<int32_t>(k))).Output().Output();
  const std::vector<int32_t> positions = Values<int32_t>(tester, 1);
  EXPECT_TRUE(std::ranges::equal(positions, std::span(order).first(k))) << size << ", " << k;
  for (Isa isa : RunnableIsas()) {
    if (!isa.has_vectors()) continue;
    const auto outputs = tester.Run("highway", isa, 1, random.Int(0, 3));
    ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
    EXPECT_EQ((*outputs)[1].template values<int32_t>(), positions) << IsaName(isa);
    for (int64_t i = 0; i < k; ++i) {
      const T value = (*outputs)[0].template at<T>(i), expected = x.at<T>(positions[i]);
      EXPECT_TRUE(value == expected || (is_nan(value) && is_nan(expected))) << IsaName(isa);
    }
  }
}

TEST(TopKTest, EqualValuesKeepTheirOrder) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    ExpectLargest<float>(kF32, random);
    ExpectLargest<int8_t>(kI8, random);
    ExpectLargest<uint8_t>(kU8, random);
    ExpectLargest<int16_t>(DataType::kInt16, random);
    ExpectLargest<int32_t>(kI32, random);
    ExpectLargest<int64_t>(DataType::kInt64, random);
  }
}

TEST(CumsumTest, Directions) {
  const auto run = [](int32_t axis, CumsumParams params) {
    OpTester tester("CUMSUM");
    tester.params<CumsumParams>() = params;
    tester.Input(TestTensor::Of<int32_t>(kI32, {2, 3}, {1, 2, 3, 4, 5, 6})).Constant(Scalar(axis));
    return Values<int32_t>(tester);
  };
  EXPECT_THAT(run(1, {false, false}), ElementsAre(1, 3, 6, 4, 9, 15));
  EXPECT_THAT(run(-1, {true, false}), ElementsAre(0, 1, 3, 0, 4, 9));
  EXPECT_THAT(run(1, {false, true}), ElementsAre(6, 5, 3, 15, 11, 6));
  EXPECT_THAT(run(0, {true, true}), ElementsAre(4, 5, 6, 0, 0, 0));
}

// Lines around the blocks, along the innermost and other axes; sums in the same order, to the bit.
TEST(CumsumTest, HighwayHasTheReferencesBits) {
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const DataType type = random.Pick({DataType::kFloat32, kI32, DataType::kInt64});
    const auto size = [&] { return static_cast<int32_t>(random.Pick({1, 2, 3, 7, 17, 40})); };
    const Shape shape = {size(), size(), static_cast<int32_t>(random.Pick({1, 5, 8, 30, 300}))};
    TestTensor x({.type = type, .shape = shape}, random.Int(0, 1) * BitWidth(type) / 8);
    x.Fill(random, -100, 100);
    OpTester tester("CUMSUM");
    tester.params<CumsumParams>() = {random.Chance(0.5), random.Chance(0.5)};
    tester.Input(x).Constant(Scalar(static_cast<int32_t>(random.Int(-3, 2))));
    ASSERT_TRUE(tester.Infer().ok());
    const auto expected = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(expected.ok());
    for (const Isa isa : RunnableIsas()) {
      const auto actual = tester.Run("highway", isa, seed);
      if (!actual.ok()) continue;  // below the vector levels
      if (type == DataType::kInt64) {
        ExpectSame<int64_t>((*expected)[0], (*actual)[0], "cumsum");
      } else {
        ExpectSame<int32_t>((*expected)[0], (*actual)[0], "cumsum");
      }
    }
  }
}

TEST(OneHotTest, Axes) {
  const auto run = [](int32_t axis) {
    OpTester tester("ONE_HOT");
    tester.params<OneHotParams>().axis = axis;
    tester.Input(Ints({2, -1})).Constant(Scalar(3)).Input(Floats({}, {5})).Input(Floats({}, {1}));
    return Values<float>(tester);
  };
  EXPECT_THAT(run(-1), ElementsAre(1, 1, 5, 1, 1, 1));
  EXPECT_THAT(run(0), ElementsAre(1, 1, 1, 1, 5, 1));
}

TEST(WhereTest, Coordinates) {
  OpTester tester("WHERE");
  tester.Constant(TestTensor::Of<uint8_t>(DataType::kBool, {2, 3}, {0, 1, 0, 1, 0, 1}));
  EXPECT_THAT(Values<int64_t>(tester), ElementsAre(0, 1, 1, 0, 1, 2));
  EXPECT_EQ(tester.op.outputs[0].shape, (Shape{3, 2}));
  OpTester dynamic("WHERE");
  dynamic.Input(TestTensor::Of<uint8_t>(DataType::kBool, {2}, {0, 1}));
  EXPECT_EQ(dynamic.Infer().code(), StatusCode::kDynamicShape);
}

// The coordinates of the true elements, one after the other.
std::vector<int64_t> Places(const Shape& shape, const std::vector<uint8_t>& truth) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i < shape.elements(); ++i) {
    if (truth[i] == 0) continue;
    for (int d = 0; d < shape.rank(); ++d) {
      places.push_back(i / shape.elements(d + 1, shape.rank()) % shape[d]);
    }
  }
  return places;
}

// Many true elements and few, rows of one element and of more than the kernel looks at together.
TEST(WhereTest, CoordinatesOfAnyRank) {
  for (int seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    std::vector<int32_t> sizes(random.Int(1, 5));
    for (int32_t& size : sizes)
      size = static_cast<int32_t>(random.Chance(0.3) ? 1 : random.Int(2, 4));
    if (random.Chance(0.3)) sizes[random.Int(0, std::ssize(sizes) - 1)] = 300;
    const Shape shape{std::span<const int32_t>(sizes)};
    const double often = random.Pick({0.002, 0.1, 0.5, 1.0});
    std::vector<uint8_t> truth(shape.elements());
    for (uint8_t& value : truth) value = random.Chance(often) ? 1 : 0;
    OpTester tester("WHERE");
    tester.Constant(TestTensor::Of<uint8_t>(DataType::kBool, shape, truth));
    EXPECT_EQ(Values<int64_t>(tester), Places(shape, truth)) << shape;
  }
}

TEST(ShapeTest, ShapeAndRank) {
  OpTester shape("SHAPE");
  shape.params<ShapeParams>().out_type = kI64;
  shape.Input(TestTensor({.type = kU8, .shape = {4, 0, 7}}));
  EXPECT_THAT(Values<int64_t>(shape), ElementsAre(4, 0, 7));
  OpTester rank("RANK");
  rank.Input(TestTensor({.type = kU8, .shape = {4, 1, 7}}));
  EXPECT_THAT(Values<int32_t>(rank), ElementsAre(3));
}

TEST(FillTest, FillsAndZeros) {
  OpTester fill("FILL");
  fill.Constant(Ints({2, 2})).Input(TestTensor::Of<int8_t>(kI8, {}, {-7}));
  EXPECT_THAT(Values<int8_t>(fill), ElementsAre(-7, -7, -7, -7));
  OpTester zeros("ZEROS_LIKE");
  zeros.Input(Floats({3}, {1, 2, 3}));
  EXPECT_THAT(Values<float>(zeros), ElementsAre(0, 0, 0));
}

TEST(RangeTest, Values) {
  OpTester down("RANGE");
  down.Constant(Scalar(5)).Constant(Scalar(-2)).Constant(Scalar(-3));
  EXPECT_THAT(Values<int32_t>(down), ElementsAre(5, 2, -1));
  OpTester real("RANGE");
  real.Constant(Floats({}, {0})).Constant(Floats({}, {1})).Constant(Floats({}, {0.3f}));
  float sum = 0.3f;
  sum += 0.3f;
  EXPECT_THAT(Values<float>(real), ElementsAre(0, 0.3f, sum, sum + 0.3f));
  OpTester empty("RANGE");
  empty.Constant(Scalar(1)).Constant(Scalar(1)).Constant(Scalar(1));
  EXPECT_THAT(Values<int32_t>(empty), ElementsAre());
  for (const int32_t count : {15, 16, 17, 33}) {
    OpTester many("RANGE");
    many.Constant(Scalar(-7)).Constant(Scalar(-7 + 3 * count)).Constant(Scalar(3));
    std::vector<int32_t> expected;
    for (int32_t i = 0; i < count; ++i) expected.push_back(-7 + 3 * i);
    EXPECT_EQ(Values<int32_t>(many), expected);
  }
  OpTester wrong("RANGE");
  wrong.Constant(Scalar(0)).Constant(Scalar(5)).Constant(Scalar(-1));
  EXPECT_EQ(wrong.Infer().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace fuselite::kernels::testing
