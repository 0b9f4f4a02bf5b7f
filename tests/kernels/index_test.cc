// GATHER, GATHER_ND, SCATTER_ND, EMBEDDING_LOOKUP, ARG_MAX, ARG_MIN, TOPK_V2, CUMSUM, ONE_HOT,
// WHERE, SHAPE, RANK, FILL, ZEROS_LIKE, RANGE.
#include <algorithm>

#include "kernels/arg_max/arg_max.h"
#include "kernels/cumsum/cumsum.h"
#include "kernels/gather/gather.h"
#include "kernels/generate/generate.h"
#include "tests/kernels/movement_tester.h"
#include "tests/kernels/quantized_cases.h"

namespace fuselite::kernels::testing {
namespace {

using ::testing::ElementsAre;

constexpr DataType kF32 = DataType::kFloat32, kI32 = DataType::kInt32, kI64 = DataType::kInt64,
                   kI8 = DataType::kInt8, kU8 = DataType::kUInt8;

std::vector<TestTensor> RunReference(OpTester& tester) {
  const Status inferred = tester.Infer();
  EXPECT_TRUE(inferred.ok()) << inferred.ToString();
  if (!inferred.ok()) return {};
  auto outputs = tester.Run("reference", Isa::kScalar);
  EXPECT_TRUE(outputs.ok()) << outputs.status().ToString();
  return outputs.ok() ? *std::move(outputs) : std::vector<TestTensor>();
}

template <class T>
std::vector<T> Values(OpTester& tester, size_t output = 0) {
  const std::vector<TestTensor> outputs = RunReference(tester);
  return output < outputs.size() ? outputs[output].values<T>() : std::vector<T>();
}

TestTensor Floats(const Shape& shape, const std::vector<float>& values) {
  return TestTensor::Of<float>(kF32, shape, values);
}

TEST(GatherTest, MatchesItsDefinition) {
  for (int i = 0; i < 80; ++i) {
    Random random(100 + i);
    SCOPED_TRACE(random.Trace());
    const int rank = static_cast<int>(random.Int(1, 4));
    const int axis = static_cast<int>(random.Int(0, rank - 1));
    const int batch = static_cast<int>(random.Int(0, axis));
    const Shape shape = RandomShape(random, rank, 5);
    Shape picks;
    for (int d = 0; d < batch; ++d) picks.push_back(shape[d]);
    for (int64_t d = random.Int(0, 2); d > 0; --d) {
      picks.push_back(static_cast<int32_t>(random.Int(1, 4)));
    }
    const auto tensor = RandomTensor(random, kWidths[i % 4], shape, false);
    TestTensor indices({.type = random.Chance(0.5) ? kI32 : kI64, .shape = picks});
    indices.Fill(random, 0, shape[axis] - 1);
    OpTester tester("GATHER");
    const bool from_back = picks.rank() > batch && random.Chance(0.3);
    tester.params<GatherParams>() = {random.Chance(0.5) ? axis : axis - rank,
                                     from_back ? batch - picks.rank() : batch};
    tester.Input(tensor).Input(indices);
    const int inner = picks.rank() - batch;
    ExpectMoved(
        tester, random,
        [&](int, const Index& o) {
          Index pick(o.begin(), o.begin() + batch);
          pick.insert(pick.end(), o.begin() + axis, o.begin() + axis + inner);
          const int64_t flat = Flatten(picks, pick);
          Index in(o.begin(), o.begin() + axis);
          in.push_back(indices.info().type == kI32 ? indices.at<int32_t>(flat)
                                                   : indices.at<int64_t>(flat));
          in.insert(in.end(), o.begin() + axis + inner, o.end());
          return ElementOf(tensor, Flatten(shape, in));
        },
        false);
  }
}

TEST(GatherTest, FailsOnIndicesOutOfRange) {
  for (const int32_t index : {-1, 3}) {
    OpTester tester("GATHER");
    tester.Input(Floats({3}, {1, 2, 3})).Input(Ints({index}));
    ASSERT_TRUE(tester.Infer().ok());
    EXPECT_EQ(tester.Run("reference", Isa::kScalar).status().code(), StatusCode::kInvalidArgument);
  }
}

// Whether a run accepts `index` where what it names has no element. `shape` is what it is taken of,
// or for SCATTER_ND of what the updates are written into.
bool Accepts(std::string_view name, const Shape& shape, int32_t axis, int32_t index) {
  OpTester tester(name);
  const TestTensor indices =
      TestTensor::Of<int32_t>(kI32, name.ends_with("_ND") ? Shape{1, 1} : Shape{1}, {index});
  const TestTensor values({.type = kF32, .shape = shape});
  if (name == "GATHER") tester.params<GatherParams>().axis = axis;
  if (name == "SCATTER_ND") {
    TensorInfo updates = values.info();
    updates.shape.set(0, 1);
    tester.Input(indices).Input(TestTensor(updates));
    tester.Constant(Ints({shape.dims().begin(), shape.dims().end()}));
  } else if (name == "EMBEDDING_LOOKUP") {
    tester.Input(indices).Input(values);
  } else {
    tester.Input(values).Input(indices);
  }
  const Status inferred = tester.Infer();
  EXPECT_TRUE(inferred.ok()) << name << ": " << inferred.ToString();
  return tester.Run("reference", Isa::kScalar).ok();
}

TEST(IndexTest, IsCheckedAlsoWhereItsSliceHasNoElement) {
  for (const char* name : {"GATHER", "GATHER_ND", "SCATTER_ND", "EMBEDDING_LOOKUP"}) {
    for (const int32_t index : {-1, 0, 2, 3}) {
      const bool inside = index >= 0 && index < 3;
      EXPECT_EQ(Accepts(name, {3, 0}, 0, index), inside) << name << " " << index;
      EXPECT_EQ(Accepts(name, {3, 1 << 30, 0}, 0, index), inside) << name << " " << index;
    }
  }
  for (const char* name : {"GATHER", "GATHER_ND"}) EXPECT_FALSE(Accepts(name, {0, 2}, 0, 0));
  EXPECT_FALSE(Accepts("SCATTER_ND", {0, 2}, 0, 0));
  // LiteRT asks for no more where there is no line to take slices from.
  EXPECT_TRUE(Accepts("GATHER", {0, 3}, 1, 3));
  EXPECT_FALSE(Accepts("GATHER", {0, 3}, 1, -1));
  EXPECT_TRUE(Accepts("EMBEDDING_LOOKUP", {0, 0}, 0, 3));
}

// A billion tuples of no coordinates have no element either, and take no time.
TEST(IndexTest, OfNoCoordinatesIsNotGoneOver) {
  const Shape many = {1 << 30, 0};
  OpTester gather("GATHER_ND"), scatter("SCATTER_ND");
  gather.Input(TestTensor({.type = kF32, .shape = {0}}));
  gather.Input(TestTensor({.type = kI32, .shape = many}));
  scatter.Input(TestTensor({.type = kI32, .shape = many}));
  scatter.Input(TestTensor({.type = kF32, .shape = many})).Constant(Ints({0}));
  for (OpTester* tester : {&gather, &scatter}) {
    ASSERT_TRUE(tester->Infer().ok());
    EXPECT_TRUE(tester->Run("reference", Isa::kScalar).ok());
  }
}

TEST(GatherTest, IndicesMayBeShort) {
  for (const char* name : {"GATHER", "GATHER_ND"}) {
    OpTester tester(name);
    tester.Input(Floats({3}, {5, 6, 7}));
    tester.Input(TestTensor::Of<int16_t>(DataType::kInt16, {2, 1}, {2, 0}));
    EXPECT_THAT(Values<float>(tester), ElementsAre(7, 5)) << name;
  }
}

TEST(GatherNdTest, Values) {
  const TestTensor in = Floats({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  OpTester full("GATHER_ND");
  full.Input(in).Input(TestTensor::Of<int32_t>(kI32, {2, 3}, {0, 1, 0, 1, 1, 1}));
  EXPECT_THAT(Values<float>(full), ElementsAre(2, 7));
  OpTester slices("GATHER_ND");
  slices.Input(in).Input(TestTensor::Of<int64_t>(kI64, {2, 1, 2}, {1, 0, 0, 1}));
  EXPECT_THAT(Values<float>(slices), ElementsAre(4, 5, 2, 3));
  EXPECT_EQ(slices.op.outputs[0].shape, (Shape{2, 1, 2}));
  OpTester wrong("GATHER_ND");
  wrong.Input(in).Input(TestTensor::Of<int32_t>(kI32, {1, 2}, {0, 2}));
  ASSERT_TRUE(wrong.Infer().ok());
  EXPECT_FALSE(wrong.Run("reference", Isa::kScalar).ok());
}

// Of any depth and slices of any size; the same as by indices that are known only at run time.
TEST(GatherNdTest, ConstantIndicesAreLocatedOnce) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const Shape shape = {static_cast<int32_t>(random.Int(1, 6)),
                         static_cast<int32_t>(random.Int(1, 6)),
                         static_cast<int32_t>(random.Int(1, 3))};
    const DataType type = random.Pick({kF32, kI64, kI8, DataType::kInt16});
    TestTensor in({.type = type, .shape = shape});
    in.Fill(random, -4, 4);
    const auto depth = static_cast<int32_t>(random.Int(1, 3));
    std::vector<int32_t> indices;
    for (int i = 0; i < 7; ++i) {
      for (int d = 0; d < depth; ++d) {
        indices.push_back(static_cast<int32_t>(random.Int(0, shape[d] - 1)));
      }
    }
    const bool outside = random.Chance(0.2);
    if (outside) indices[random.Int(0, 7 * depth - 1)] = random.Chance(0.5) ? -1 : 7;
    OpTester tester("GATHER_ND");
    tester.Input(in).Constant(TestTensor::Of<int32_t>(kI32, {7, depth}, indices));
    ASSERT_TRUE(tester.Infer().ok());
    const auto expected = tester.Run("reference", Isa::kScalar);
    const auto actual = tester.Run("known places", Isa::kScalar);
    ASSERT_EQ(expected.ok(), !outside);
    ASSERT_EQ(actual.ok(), !outside);
    if (outside) {
      EXPECT_EQ(actual.status().message(), expected.status().message());
      continue;
    }
    EXPECT_EQ(
        std::memcmp((*actual)[0].bytes(), (*expected)[0].bytes(), tester.op.outputs[0].bytes()), 0);
  }
  OpTester known_later("GATHER_ND");
  known_later.Input(Floats({3}, {5, 6, 7})).Input(TestTensor::Of<int32_t>(kI32, {1, 1}, {2}));
  ASSERT_TRUE(known_later.Infer().ok());
  EXPECT_EQ(known_later.Run("known places", Isa::kScalar).status().message(),
            "indices are known only at run time");
}

// Rows of relative positions: places that go up, down or stand still, and now and then one of no
// place.
TEST(GatherNdTest, CopiesRunsOfPlaces) {
  for (const Isa isa : RunnableIsas()) {
    for (uint64_t seed = 1; seed <= 200; ++seed) {
      Random random(seed);
      SCOPED_TRACE(random.Trace());
      constexpr int32_t kRows = 300;
      const auto width = static_cast<int32_t>(random.Int(1, 3));
      const DataType type = random.Pick({kF32, kI64, kI8, DataType::kInt16});
      TestTensor in({.type = type, .shape = {kRows, width}});
      in.Fill(random, -100, 100);
      std::vector<int32_t> indices;
      while (indices.size() < 500) {
        const auto step = static_cast<int32_t>(random.Int(-2, 2));
        auto place = static_cast<int32_t>(random.Int(0, kRows - 1));
        for (int64_t left = random.Int(1, 150); left > 0; --left) {
          indices.push_back(place);
          place = std::clamp(place + step, 0, kRows - 1);
        }
      }
      if (random.Chance(0.3)) indices[random.Int(0, 499)] = random.Pick({-1, -2, kRows});
      const auto tuples = static_cast<int32_t>(indices.size());
      OpTester tester("GATHER_ND");
      tester.Input(in).Constant(TestTensor::Of<int32_t>(kI32, {tuples, 1}, indices));
      ASSERT_TRUE(tester.Infer().ok());
      const auto expected = tester.Run("reference", Isa::kScalar);
      const auto actual = tester.Run("known places", isa, random.Int(1, 99), random.Int(0, 3));
      ASSERT_EQ(actual.ok(), expected.ok());
      if (!expected.ok()) continue;
      const size_t bytes = tester.op.outputs[0].bytes();
      EXPECT_EQ(std::memcmp((*actual)[0].bytes(), (*expected)[0].bytes(), bytes), 0);
    }
  }
}

TEST(ScatterNdTest, AddsWhatMeets) {
  OpTester tester("SCATTER_ND");
  tester.Input(TestTensor::Of<int32_t>(kI32, {3, 1}, {2, 0, 2}));
  tester.Input(Floats({3, 2}, {1, 2, 3, 4, 5, 6})).Constant(Ints({4, 2}));
  EXPECT_THAT(Values<float>(tester), ElementsAre(3, 4, 0, 0, 6, 8, 0, 0));
  OpTester wrong("SCATTER_ND");
  wrong.Input(TestTensor::Of<int32_t>(kI32, {1, 1}, {4}));
  wrong.Input(Floats({1}, {1})).Constant(Ints({4}));
  ASSERT_TRUE(wrong.Infer().ok());
  EXPECT_FALSE(wrong.Run("reference", Isa::kScalar).ok());
  OpTester shape("SCATTER_ND");
  shape.Input(TestTensor::Of<int32_t>(kI32, {1, 1}, {0}));
  shape.Input(Floats({1, 3}, {1, 2, 3})).Constant(Ints({4, 2}));
  EXPECT_EQ(shape.Infer().code(), StatusCode::kInvalidArgument);
}

TEST(EmbeddingLookupTest, Values) {
  OpTester plain("EMBEDDING_LOOKUP");
  plain.Input(Ints({2, 0})).Input(Floats({3, 2}, {0, 1, 2, 3, 4, 5}));
  EXPECT_THAT(Values<float>(plain), ElementsAre(4, 5, 0, 1));
  OpTester hybrid("EMBEDDING_LOOKUP");
  hybrid.Input(Ints({1, 0})).Output(kF32);
  hybrid.Input(TestTensor::Of<int8_t>(kI8, {2, 2}, {1, -2, 3, -4}, {{0.5f, 0.25f}, {0, 0}}));
  EXPECT_THAT(Values<float>(hybrid), ElementsAre(0.75f, -1, 0.5f, -1));
  OpTester wrong("EMBEDDING_LOOKUP");
  wrong.Input(Ints({3})).Input(Floats({3, 1}, {0, 1, 2}));
  ASSERT_TRUE(wrong.Infer().ok());
  EXPECT_FALSE(wrong.Run("reference", Isa::kScalar).ok());
}

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
  const int64_t size = random.Int(1, 300), k = random.Int(1, size);
  TestTensor x({.type = type, .shape = {1, static_cast<int32_t>(size)}}, 0);
  x.Fill(random, -20, 20);
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
}

TEST(TopKTest, EqualValuesKeepTheirOrder) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    ExpectLargest<float>(kF32, random);
    ExpectLargest<int8_t>(kI8, random);
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
