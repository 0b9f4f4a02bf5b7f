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
    const auto tensor = RandomTensor(random, kWidths[i % 3], shape);
    OpTester tester("RESIZE_NEAREST_NEIGHBOR");
    tester.params<ResizeParams>() = params;
    tester.Input(tensor).Constant(Ints({out_h, out_w}));
    ExpectMoved(tester, random, [&](int, const Index& o) {
      return ElementOf(tensor, Flatten(shape, {o[0], ys[o[1]], xs[o[2]], o[3]}));
    });
  }
}

// A random resize; `scales` picks sizes that give weights of few bits, as models have them. Some
// images have few long rows, which are cut into pieces.
OpTester RandomResize(Random& random, DataType type, double low, double high, bool scales) {
  const bool is_long = random.Chance(0.15);
  TensorInfo info{.type = type, .shape = RandomShape(random, 4, is_long ? 2 : 9)};
  info.shape.set(3, static_cast<int32_t>(random.Int(1, 70)));
  if (is_long) info.shape.set(2, static_cast<int32_t>(random.Int(400, 1200)));
  info.row_pitch = RandomPitch(random, info.shape[3]);
  TestTensor in(info, random.Int(0, 3) * (BitWidth(type) / 8));
  in.Fill(random, low, high);
  OpTester tester("RESIZE_BILINEAR");
  auto& params = tester.params<ResizeParams>();
  params = random.Pick<ResizeParams>({{false, false}, {true, false}, {false, true}});
  const auto size = [&](int32_t from, int most) {
    const bool long_side = from > 100;
    if (!scales) return static_cast<int32_t>(random.Int(1, long_side ? 2 * from : 20));
    const auto scale = static_cast<int32_t>(1 << random.Int(0, long_side ? 1 : most));
    return params.align_corners ? (from - 1) * scale + 1 : from * scale;
  };
  tester.Input(in).Constant(Ints({size(info.shape[1], 3), size(info.shape[2], 6)}));
  EXPECT_TRUE(tester.Infer().ok());
  PitchOutput(tester, random);
  return tester;
}

// How many of the ISAs' kernels were compared.
template <class T>
int CompareWithReference(std::string_view candidate, const OpTester& tester, Random& random) {
  const auto expected = tester.Run("reference", Isa::kScalar);
  EXPECT_TRUE(expected.ok());
  int compared = 0;
  for (const Isa isa : RunnableIsas()) {
    const auto actual = tester.Run(candidate, isa, random.Int(0, 1000), random.Int(0, 3));
    if (!isa.has_vectors()) {
      EXPECT_EQ(actual.status().code(), StatusCode::kUnsupported);
    }
    if (actual.status().code() == StatusCode::kUnsupported) continue;
    EXPECT_TRUE(actual.ok()) << actual.status().ToString();
    if (!actual.ok()) return compared;
    ExpectSame<T>((*expected)[0], (*actual)[0], IsaName(isa));
    ++compared;
  }
  return compared;
}

TEST(ResizeBilinearTest, HighwayHasTheReferencesBits) {
  for (uint64_t i = 0; i < 60; ++i) {
    Random random(200 + i);
    SCOPED_TRACE(random.Trace());
    const OpTester floats = RandomResize(random, kF32, -10, 10, i % 4 == 0);
    CompareWithReference<float>("highway", floats, random);
    const OpTester bytes = RandomResize(random, DataType::kUInt8, 0, 255, i % 4 == 0);
    CompareWithReference<uint8_t>("highway", bytes, random);
  }
}

TEST(ResizeBilinearTest, SeparableHasTheReferencesBits) {
  int compared = 0;
  for (uint64_t i = 0; i < 60; ++i) {
    Random random(400 + i);
    SCOPED_TRACE(random.Trace());
    const OpTester bytes = RandomResize(random, DataType::kUInt8, 0, 255, i % 4 != 0);
    compared += CompareWithReference<uint8_t>("separable", bytes, random);
    const OpTester ints = RandomResize(random, DataType::kInt8, -128, 127, i % 2 == 0);
    compared += CompareWithReference<int8_t>("separable", ints, random);
    // Small values meet the middles between two results.
    const double most = i % 3 == 0 ? 3 : 32767;
    const OpTester shorts = RandomResize(random, DataType::kInt16, -most - 1, most, i % 2 == 0);
    compared += CompareWithReference<int16_t>("separable", shorts, random);
  }
  // All of int8 and int16, and most of uint8.
  const auto isas =
      std::ranges::count_if(RunnableIsas(), [](Isa isa) { return isa.has_vectors(); });
  EXPECT_GT(compared, 150 * isas);
}

// An image of 4 x 4 pixels made `scale` times as large, half-pixel centers.
template <class T>
void ExpectSeparable(const TestTensor& in, int32_t scale) {
  OpTester tester("RESIZE_BILINEAR");
  tester.params<ResizeParams>().half_pixel_centers = true;
  tester.Input(in).Constant(Ints({4 * scale, 4 * scale}));
  ASSERT_TRUE(tester.Infer().ok());
  Random random(scale);
  SCOPED_TRACE(random.Trace());
  EXPECT_GT(CompareWithReference<T>("separable", tester, random), 0);
}

// The extremes of every sum: halves of either sign, the smallest and largest values, weights
// outside of [0, 1] at the edges of half-pixel sampling.
TEST(ResizeBilinearTest, SeparableAtTheExtremes) {
  for (const DataType type : {DataType::kInt8, DataType::kUInt8}) {
    const int low = type == DataType::kInt8 ? -128 : 0;
    for (const int32_t scale : {2, 16, 32, 64}) {
      TestTensor in({.type = type, .shape = {1, 4, 4, 2}});
      for (int i = 0; i < 32; ++i)
        in.at<uint8_t>(i) = static_cast<uint8_t>(low + (i % 5 < 2 ? 0 : 255));
      ExpectSeparable<uint8_t>(in, scale);
    }
  }
}

TEST(ResizeBilinearTest, SeparableAtTheExtremesOfInt16) {
  for (const int32_t scale : {2, 16, 32, 64}) {
    TestTensor in({.type = DataType::kInt16, .shape = {1, 4, 4, 2}});
    for (int i = 0; i < 32; ++i) in.at<int16_t>(i) = i % 5 < 2 ? INT16_MIN : INT16_MAX - i % 2;
    ExpectSeparable<int16_t>(in, scale);
  }
}

}  // namespace
}  // namespace fuselite::kernels::testing
