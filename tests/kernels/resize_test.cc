#include "kernels/resize/resize.h"

#include "tests/kernels/movement_tester.h"

namespace fuselite::kernels::testing {
namespace {

constexpr DataType kF32 = DataType::kFloat32;

template <class T>
std::vector<T> Resize(std::string_view name, DataType type, const std::vector<T>& in,
                      const Shape& shape, std::vector<int32_t> size, ResizeParams params) {
  OpTester tester(name);
  tester.params<ResizeParams>() = params;
  tester.Input(TestTensor::Of<T>(type, shape, in)).Constant(Ints(size));
  const Status inferred = tester.Infer();
  EXPECT_TRUE(inferred.ok()) << inferred.ToString();
  const auto outputs = tester.Run("reference", Isa::kScalar);
  EXPECT_TRUE(outputs.ok()) << outputs.status().ToString();
  return outputs.ok() ? (*outputs)[0].values<T>() : std::vector<T>();
}

TEST(ResizeBilinearTest, SamplesWhereItShould) {
  using ::testing::ElementsAre;
  const std::vector<float> in = {0, 10, 20, 40};
  const auto row = [&](int32_t width, ResizeParams params) {
    return Resize<float>("RESIZE_BILINEAR", kF32, in, {1, 1, 4, 1}, {1, width}, params);
  };
  EXPECT_THAT(row(8, {false, false}), ElementsAre(0, 5, 10, 15, 20, 30, 40, 40));
  EXPECT_THAT(row(7, {true, false}), ElementsAre(0, 5, 10, 15, 20, 30, 40));
  EXPECT_THAT(row(8, {false, true}), ElementsAre(0, 2.5f, 7.5f, 12.5f, 17.5f, 25, 35, 40));
  EXPECT_THAT(row(2, {false, false}), ElementsAre(0, 20));
  EXPECT_THAT(row(1, {true, false}), ElementsAre(0));
}

TEST(ResizeBilinearTest, RoundsIntegersAsTflite) {
  using ::testing::ElementsAre;
  // int8 rounds half away from zero.
  EXPECT_THAT(
      Resize<int8_t>("RESIZE_BILINEAR", DataType::kInt8, {-1, -2, 3, 4}, {1, 1, 4, 1}, {1, 8}, {}),
      ElementsAre(-1, -2, -2, 1, 3, 4, 4, 4));
  EXPECT_THAT(Resize<uint8_t>("RESIZE_BILINEAR", DataType::kUInt8, {1, 2, 3, 255}, {1, 1, 4, 1},
                              {1, 8}, {}),
              ElementsAre(1, 2, 2, 3, 3, 129, 255, 255));
}

TEST(ResizeNearestTest, PicksWhatItShould) {
  using ::testing::ElementsAre;
  const auto row = [&](int32_t width, ResizeParams params) {
    return Resize<uint8_t>("RESIZE_NEAREST_NEIGHBOR", DataType::kUInt8, {1, 2, 3, 4}, {1, 1, 4, 1},
                           {1, width}, params);
  };
  EXPECT_THAT(row(6, {false, false}), ElementsAre(1, 1, 2, 3, 3, 4));
  EXPECT_THAT(row(6, {true, false}), ElementsAre(1, 2, 2, 3, 3, 4));
  EXPECT_THAT(row(6, {false, true}), ElementsAre(1, 2, 2, 3, 4, 4));
  EXPECT_THAT(row(2, {false, true}), ElementsAre(2, 4));
}

TEST(ResizeTest, Refuses) {
  const auto code = [](const Shape& shape, std::vector<int32_t> size, ResizeParams params) {
    OpTester tester("RESIZE_BILINEAR");
    tester.params<ResizeParams>() = params;
    tester.Input(TestTensor({.type = kF32, .shape = shape})).Constant(Ints(size));
    return tester.Infer().code();
  };
  EXPECT_EQ(code({1, 2, 2, 1}, {3, 3}, {}), StatusCode::kOk);
  EXPECT_EQ(code({1, 2, 2, 1}, {0, 3}, {}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({1, 0, 2, 1}, {3, 3}, {}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({1, 2, 2}, {3, 3}, {}), StatusCode::kUnsupported);
  EXPECT_EQ(code({1, 2, 2, 1}, {3, 3}, {true, true}), StatusCode::kInvalidArgument);
}

TEST(ResizeNearestTest, MatchesItsDefinition) {
  for (int i = 0; i < 60; ++i) {
    Random random(100 + i);
    SCOPED_TRACE(random.Trace());
    const Shape shape = RandomShape(random, 4, 7);
    const auto out_h = static_cast<int32_t>(random.Int(1, 15));
    const auto out_w = static_cast<int32_t>(random.Int(1, 15));
    const ResizeParams params = {random.Chance(0.5), random.Chance(0.5)};
    const std::vector<int32_t> ys = NearestTaps(shape[1], out_h, params);
    const std::vector<int32_t> xs = NearestTaps(shape[2], out_w, params);
    const auto tensor = RandomTensor(random, kWidths[i % 4], shape);
    OpTester tester("RESIZE_NEAREST_NEIGHBOR");
    tester.params<ResizeParams>() = params;
    tester.Input(tensor).Constant(Ints({out_h, out_w}));
    ExpectMoved(tester, random, [&](int, const Index& o) {
      return ElementOf(tensor, Flatten(shape, {o[0], ys[o[1]], xs[o[2]], o[3]}));
    });
  }
}

template <class T>
void CompareHighway(DataType type, uint64_t seed, double low, double high) {
  Random random(seed);
  SCOPED_TRACE(random.Trace());
  TensorInfo info{.type = type, .shape = RandomShape(random, 4, 9)};
  info.shape.set(3, static_cast<int32_t>(random.Int(1, 70)));
  if (random.Chance(0.4)) info.row_pitch = info.shape[3] + random.Int(0, 5);
  TestTensor in(info, random.Int(0, 3) * sizeof(T));
  in.Fill(random, low, high);
  OpTester tester("RESIZE_BILINEAR");
  tester.params<ResizeParams>() =
      random.Pick<ResizeParams>({{false, false}, {true, false}, {false, true}});
  tester.Input(in).Constant(
      Ints({static_cast<int32_t>(random.Int(1, 20)), static_cast<int32_t>(random.Int(1, 20))}));
  ASSERT_TRUE(tester.Infer().ok());
  if (random.Chance(0.4)) {
    tester.op.outputs[0].row_pitch = info.shape[3] + random.Int(0, 5);
  }
  const auto expected = tester.Run("reference", Isa::kScalar);
  ASSERT_TRUE(expected.ok());
  for (const Isa isa : RunnableIsas()) {
    const auto actual = tester.Run("highway", isa, seed, random.Int(0, 3));
    if (!Includes(isa, Isa::kSsse3) && !Includes(isa, Isa::kNeon)) {
      EXPECT_EQ(actual.status().code(), StatusCode::kUnsupported);
      continue;
    }
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    ExpectSame<T>((*expected)[0], (*actual)[0], IsaName(isa));
  }
}

TEST(ResizeBilinearTest, HighwayHasTheReferencesBits) {
  for (uint64_t i = 0; i < 40; ++i) {
    CompareHighway<float>(kF32, 200 + i, -10, 10);
    CompareHighway<uint8_t>(DataType::kUInt8, 300 + i, 0, 255);
    CompareHighway<int8_t>(DataType::kInt8, 400 + i, -128, 127);
  }
}

}  // namespace
}  // namespace fuselite::kernels::testing
