// GATHER, GATHER_ND, SCATTER_ND, EMBEDDING_LOOKUP.
#include "kernels/gather/gather.h"

#include <algorithm>

#include "tests/kernels/quantized_cases.h"
#include "tests/kernels/reference_values.h"

namespace fuselite::kernels::testing {
namespace {

using ::testing::ElementsAre;

constexpr DataType kF32 = DataType::kFloat32, kI32 = DataType::kInt32, kI64 = DataType::kInt64,
                   kI8 = DataType::kInt8, kU8 = DataType::kUInt8;

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

// Constant indices of any depth, of slices of any size, give the same as indices that are known
// only at run time.
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

}  // namespace
}  // namespace fuselite::kernels::testing
