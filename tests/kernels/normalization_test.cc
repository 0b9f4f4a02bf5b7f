// Operators that map rows to rows: SOFTMAX, LOG_SOFTMAX, L2_NORMALIZATION.
#include "kernels/softmax/softmax.h"
#include "tests/kernels/beside_reference.h"
#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {
namespace {

constexpr DataType kF32 = DataType::kFloat32;

std::vector<float> RunReference(OpTester& tester) {
  const Status inferred = tester.Infer();
  EXPECT_TRUE(inferred.ok()) << inferred.ToString();
  if (!inferred.ok()) return {};
  const auto outputs = tester.Run("reference", Isa::kScalar);
  EXPECT_TRUE(outputs.ok());
  return (*outputs)[0].values<float>();
}

TEST(NormalizationTest, SmallRows) {
  const TestTensor x = TestTensor::Of<float>(kF32, {2, 2}, {0, std::log(3.0f), 3, -4});
  OpTester softmax("SOFTMAX");
  softmax.params<SoftmaxParams>().beta = 1;
  softmax.Input(x);
  const std::vector<float> s = RunReference(softmax);
  EXPECT_FLOAT_EQ(s[0], 0.25f);
  EXPECT_FLOAT_EQ(s[1], 0.75f);
  OpTester log_softmax("LOG_SOFTMAX");
  log_softmax.Input(x);
  EXPECT_FLOAT_EQ(RunReference(log_softmax)[0], std::log(0.25f));
  OpTester l2("L2_NORMALIZATION");
  l2.Input(x);
  const std::vector<float> n = RunReference(l2);
  EXPECT_FLOAT_EQ(n[2], 0.6f);
  EXPECT_FLOAT_EQ(n[3], -0.8f);
  OpTester zeros("L2_NORMALIZATION");
  zeros.Input(TestTensor::Of<float>(kF32, {2}, {0, 0}));
  EXPECT_THAT(RunReference(zeros), ::testing::ElementsAre(0, 0));
}

// int8 rows of scale 0.05 and zero point 3; what LiteRT 2.3.0's reference kernels give.
std::vector<int> RunInt8(std::string_view name, DataType out, Quantization quantization,
                         float beta = 1) {
  OpTester tester(name);
  if (name == "SOFTMAX") tester.params<SoftmaxParams>().beta = beta;
  tester.Input(TestTensor::Of<int8_t>(DataType::kInt8, {1, 8}, {-128, -20, 0, 5, 100, 127, 126, 90},
                                      {{0.05f}, {3}}));
  tester.Output(out, std::move(quantization));
  const Status inferred = tester.Infer();
  EXPECT_TRUE(inferred.ok()) << inferred.ToString();
  const auto outputs = tester.Run("reference", Isa::kScalar);
  EXPECT_TRUE(outputs.ok());
  std::vector<int> result;
  for (int i = 0; i < 8; ++i) {
    result.push_back(out == DataType::kInt8 ? (*outputs)[0].at<int8_t>(i)
                                            : (*outputs)[0].at<int16_t>(i));
  }
  return result;
}

TEST(NormalizationTest, QuantizedRowsHaveTheBitsOfLiteRt) {
  using ::testing::ElementsAre;
  EXPECT_THAT(RunInt8("SOFTMAX", DataType::kInt8, {{1.0f / 256}, {-128}}),
              ElementsAre(-128, -128, -128, -128, -100, -20, -25, -111));
  EXPECT_THAT(RunInt8("SOFTMAX", DataType::kInt16, {{1.0f / 32768}, {0}}, 0.5f),
              ElementsAre(-32731, -32214, -31854, -31732, -21635, -10902, -11442, -24098));
  EXPECT_THAT(RunInt8("LOG_SOFTMAX", DataType::kInt8, {{1.0f / 16}, {127}}),
              ElementsAre(-91, -4, 12, 16, 92, 113, 112, 84));
  EXPECT_THAT(RunInt8("L2_NORMALIZATION", DataType::kInt8, {{1.0f / 128}, {0}}),
              ElementsAre(-66, -12, -2, 1, 49, 62, 62, 44));
}

// What masks of -100 leave is no denormal number, with which products take a hundred times as long.
TEST(NormalizationTest, SoftmaxGivesNormalNumbersOrZeros) {
  constexpr int32_t kWidth = 64;
  OpTester tester("SOFTMAX");
  tester.params<SoftmaxParams>().beta = 1;
  TestTensor x({.type = kF32, .shape = {3, kWidth}});
  for (int64_t i = 0; i < 3 * kWidth; ++i) x.at<float>(i) = -1.75f * static_cast<float>(i % kWidth);
  x.at<float>(kWidth + 1) = NAN;
  tester.Input(x);
  const std::vector<float> expected = RunReference(tester);
  for (const Isa isa : RunnableIsas()) {
    if (!isa.has_vectors()) continue;
    SCOPED_TRACE(IsaName(isa));
    const auto outputs = tester.Run("highway", isa);
    ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
    for (int64_t i = 0; i < 3 * kWidth; ++i) {
      const float y = (*outputs)[0].at<float>(i);
      if (i / kWidth == 1) {
        EXPECT_TRUE(std::isnan(y)) << i;
        continue;
      }
      EXPECT_TRUE(y == 0 || std::isnormal(y)) << i << ": " << y;
      EXPECT_NEAR(y, expected[i], 1e-6f * expected[i] + 1.2e-38f) << i;
    }
  }
}

TEST(NormalizationTest, SoftmaxOfInt16HasTheBitsOfLiteRt) {
  OpTester tester("SOFTMAX");
  tester.params<SoftmaxParams>().beta = 1;
  tester.Input(TestTensor::Of<int16_t>(DataType::kInt16, {2, 4},
                                       {100, 2000, -3000, 1500, -32768, 32767, 32000, 31000},
                                       {{0.0005f}, {0}}));
  tester.Output(DataType::kInt16, {{0x1p-15f}, {0}});
  ASSERT_TRUE(tester.Infer().ok());
  const auto outputs = tester.Run("reference", Isa::kScalar);
  ASSERT_TRUE(outputs.ok());
  EXPECT_THAT((*outputs)[0].values<int16_t>(),
              ::testing::ElementsAre(5638, 14578, 1197, 11354, 1, 15642, 10660, 6465));
}

TEST(NormalizationTest, QuantizedOutputsHaveTheirScale) {
  for (const char* name : {"SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION"}) {
    OpTester tester(name);
    if (name[0] == 'S') tester.params<SoftmaxParams>().beta = 1;
    tester.Input(TestTensor::Of<int8_t>(DataType::kInt8, {1}, {1}, {{1.0f}, {0}}));
    tester.Output(DataType::kInt8, {{0.5f}, {1}});
    EXPECT_EQ(tester.Infer().code(), StatusCode::kUnsupported) << name;
  }
}

// 1001 equal values: their sum is beyond what the 8-bit output can express, TFLite aborts there.
TEST(NormalizationTest, ManyEqualValuesHaveAProbabilityOfZero) {
  OpTester tester("SOFTMAX");
  tester.params<SoftmaxParams>().beta = 1;
  tester.Input(
      TestTensor::Of<int8_t>(DataType::kInt8, {1001}, std::vector<int8_t>(1001, 7), {{0.1f}, {0}}));
  tester.Output(DataType::kInt8, {{1.0f / 256}, {-128}});
  ASSERT_TRUE(tester.Infer().ok());
  for (const char* candidate : {"reference", "highway"}) {
    const auto outputs = tester.Run(candidate, RunnableIsas().back());
    if (!outputs.ok()) {
      EXPECT_EQ(outputs.status().code(), StatusCode::kUnsupported);  // no vector target
      continue;
    }
    EXPECT_THAT((*outputs)[0].values<int8_t>(), ::testing::Each(-128)) << candidate;
  }
}

TEST(NormalizationTest, LogSoftmaxOfRowsOfOne) {
  OpTester tester("LOG_SOFTMAX");
  tester.Input(TestTensor::Of<float>(kF32, {5, 1}, {3, -2e30f, 0, INFINITY, NAN}));
  ASSERT_TRUE(tester.Infer().ok());
  using ::testing::IsNan;
  for (const char* candidate : {"reference", "highway"}) {
    const auto outputs = tester.Run(candidate, RunnableIsas().back());
    if (!outputs.ok()) {
      EXPECT_EQ(outputs.status().code(), StatusCode::kUnsupported);  // no vector target
      continue;
    }
    EXPECT_THAT((*outputs)[0].values<float>(), ::testing::ElementsAre(0, 0, 0, IsNan(), IsNan()))
        << candidate;
  }
}

TEST(NormalizationTest, ScalarsAreRefused) {
  OpTester tester("SOFTMAX");
  tester.Input(TestTensor({.type = kF32, .shape = {}}));
  EXPECT_EQ(tester.Infer().code(), StatusCode::kUnsupported);
}

class NormalizationIsaTest : public ::testing::TestWithParam<Isa> {};

TEST_P(NormalizationIsaTest, SoftmaxOfInt16HasTheBitsOfTheReference) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester("SOFTMAX");
    tester.params<SoftmaxParams>().beta = random.Pick({1.0f, 0.3f});
    // From hardly any difference to such as a scale beyond 32 bits wraps around.
    const float scale = random.Pick({1e-6f, 1e-4f, 0.001f, 0.02f, 0.4f, 8.0f, 900.0f});
    TensorInfo info{
        .type = DataType::kInt16,
        .shape = {static_cast<int32_t>(random.Int(1, 4)),
                  static_cast<int32_t>(random.Pick({1, 2, 5, 8, 15, 16, 17, 33, 77, 196, 2500}))},
        .quantization = {{scale}, {0}}};
    info.row_pitch = RandomPitch(random, info.shape.dim(-1));
    TestTensor x(info, 2 * random.Int(0, 3));
    const double most = random.Pick({3.0, 1000.0, 32767.0}), middle = random.Pick({0.0, -32768.0});
    x.Fill(random, std::max(middle - most, -32768.0), middle + most);
    tester.Input(x);
    tester.Output(DataType::kInt16, {{0x1p-15f}, {0}});
    ASSERT_TRUE(tester.Infer().ok());
    PitchOutput(tester, random);
    const auto both = RunHighway(tester, GetParam(), seed, random.Int(0, 3));
    if (!both) continue;
    EXPECT_EQ(both->actual.values<int16_t>(), both->expected.values<int16_t>());
  }
}

TEST_P(NormalizationIsaTest, HighwayAgreesWithReference) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const char* name = random.Pick({"SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION"});
    OpTester tester(name);
    if (name[0] == 'S') tester.params<SoftmaxParams>().beta = random.Pick({1.0f, 0.5f});
    TensorInfo info{.type = kF32,
                    .shape = {static_cast<int32_t>(random.Pick({1, 2, 5, 16, 35, 70})),
                              static_cast<int32_t>(
                                  random.Pick({1, 2, 3, 4, 7, 12, 13, 15, 16, 48, 65, 1001}))}};
    info.row_pitch = RandomPitch(random, info.shape.dim(-1));
    TestTensor x(info, 4 * random.Int(0, 3));
    const float magnitude = random.Pick({1.0f, 20.0f, 200.0f});
    x.Fill(random, -magnitude, magnitude);
    tester.Input(x);
    ASSERT_TRUE(tester.Infer().ok());
    if (random.Chance(0.4)) {
      tester.op.tail.stages.push_back(TailStage::Unary(UnaryKind::kAffine, 0.5f, 1));
    }
    PitchOutput(tester, random);
    const auto both = RunHighway(tester, GetParam(), seed, random.Int(0, 3));
    if (!both) continue;
    const TestTensor& e = both->expected;
    ExpectNear(
        e, both->actual, [&](int64_t i) { return 1e-6f + 2e-6f * std::abs(e.at<float>(i)); }, name);
  }
}

// Rows are computed together, as lanes of vectors or in passes.
TEST_P(NormalizationIsaTest, SoftmaxOfARowHasTheSameBitsBesideAnyOthers) {
  for (const int32_t n : {1, 2, 3, 4, 7, 12, 13, 16, 21, 64, 197}) {
    SCOPED_TRACE(n);
    Random random(static_cast<uint64_t>(n));
    std::vector<float> values(67 * static_cast<size_t>(n));
    for (float& value : values) value = static_cast<float>(random.Int(-4000, 4000)) * 0x1p-9f;
    const std::vector<float> row(values.begin(), values.begin() + n);
    for (int copy = 1; copy < 67; ++copy) {
      if (copy % 5 != 0) std::ranges::copy(row, values.begin() + copy * n);
    }
    OpTester tester("SOFTMAX");
    tester.params<SoftmaxParams>().beta = 1;
    tester.Input(TestTensor::Of<float>(kF32, {67, n}, values));
    ASSERT_TRUE(tester.Infer().ok());
    const auto outputs = tester.Run("highway", GetParam());
    if (!outputs.ok()) continue;  // no vector target
    const std::vector<float> y = (*outputs)[0].values<float>();
    for (int copy = 1; copy < 67; ++copy) {
      if (copy % 5 == 0) continue;
      EXPECT_TRUE(std::equal(y.begin(), y.begin() + n, y.begin() + copy * n)) << "row " << copy;
    }
  }
}

// Its exponents are positive, of which the vectors' exponentials are not made.
TEST_P(NormalizationIsaTest, SoftmaxOfANegativeBetaIsLeftToTheReference) {
  OpTester tester("SOFTMAX");
  tester.params<SoftmaxParams>().beta = -1;
  tester.Input(TestTensor::Of<float>(kF32, {1, 2}, {0, std::log(3.0f)}));
  EXPECT_FALSE(tester.Infer().ok() && tester.Run("highway", GetParam()).ok());
  const std::vector<float> s = RunReference(tester);
  EXPECT_FLOAT_EQ(s[0], 0.75f);
  EXPECT_FLOAT_EQ(s[1], 0.25f);
}

TEST_P(NormalizationIsaTest, QuantizedSoftmaxHasTheBitsOfTheReference) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const DataType in = random.Pick({DataType::kInt8, DataType::kUInt8});
    const DataType out = random.Chance(0.5) ? DataType::kInt16 : in;
    OpTester tester("SOFTMAX");
    tester.params<SoftmaxParams>().beta = random.Pick({1.0f, 0.5f});
    TensorInfo info{.type = in,
                    .shape = {static_cast<int32_t>(random.Pick({1, 2, 5, 16, 17, 40})),
                              static_cast<int32_t>(
                                  random.Pick({1, 2, 7, 15, 16, 47, 48, 64, 65, 128, 197, 1001}))},
                    .quantization = {{random.Pick({0.001f, 0.02f, 0.1f, 0.15f, 0.7f})}, {3}}};
    info.row_pitch = RandomPitch(random, info.shape.dim(-1));
    TestTensor x(info, random.Int(0, 3));
    const int64_t lowest = in == DataType::kInt8 ? -128 : 0;
    const int64_t low = lowest + random.Pick({0, 0, 200});
    x.Fill(random, static_cast<double>(low), static_cast<double>(lowest + 255));
    tester.Input(x);
    tester.Output(out, {{1.0f / 256}, {in == DataType::kInt8 ? -128 : 0}});
    ASSERT_TRUE(tester.Infer().ok());
    PitchOutput(tester, random);
    const auto both = RunHighway(tester, GetParam(), seed, random.Int(0, 3));
    if (!both) continue;
    if (out == DataType::kInt16) {
      ExpectSame<int16_t>(both->expected, both->actual, "softmax");
    } else {
      ExpectSame<int8_t>(both->expected, both->actual, "softmax");
    }
  }
}

// Where sums are so large that all become the least value, and around the longest rows whose sums
// stay below 2^31.
TEST_P(NormalizationIsaTest, QuantizedSoftmaxOfEqualElementsHasTheBitsOfTheReference) {
  if (!GetParam().has_vectors()) GTEST_SKIP() << "the reference alone";
  for (const DataType type : {DataType::kInt8, DataType::kUInt8}) {
    for (const int32_t n : {255, 256, 511, 512, 513, 1023, 1024, 4095, 4096, 4097, 8192}) {
      SCOPED_TRACE(n);
      OpTester tester("SOFTMAX");
      tester.params<SoftmaxParams>().beta = 1;
      TestTensor x({.type = type, .shape = {3, n}, .quantization = {{0.1f}, {3}}});
      tester.Input(x);
      tester.Output(type, {{1.0f / 256}, {type == DataType::kInt8 ? -128 : 0}});
      ASSERT_TRUE(tester.Infer().ok());
      const auto expected = tester.Run("reference", Isa::kScalar);
      const auto actual = tester.Run("highway", GetParam());
      ASSERT_TRUE(expected.ok() && actual.ok());
      ExpectSame<int8_t>((*expected)[0], (*actual)[0], "softmax");
    }
  }
}

TEST_P(NormalizationIsaTest, QuantizedLogSoftmaxHasTheBitsOfTheReference) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const DataType type = random.Pick({DataType::kInt8, DataType::kUInt8});
    const int32_t low = type == DataType::kInt8 ? -128 : 0;
    OpTester tester("LOG_SOFTMAX");
    TensorInfo info{.type = type,
                    .shape = {static_cast<int32_t>(random.Pick({1, 2, 5, 16, 17, 40})),
                              static_cast<int32_t>(random.Pick({1, 2, 7, 15, 16, 65, 197, 1001}))},
                    .quantization = {{random.Pick({0.001f, 0.02f, 0.1f, 0.7f})}, {3}}};
    info.row_pitch = RandomPitch(random, info.shape.dim(-1));
    TestTensor x(info, random.Int(0, 3));
    x.Fill(random, low + random.Pick({0, 0, 200}), low + 255);
    tester.Input(x);
    tester.Output(type, {{1.0f / 16}, {low + 255}});
    ASSERT_TRUE(tester.Infer().ok());
    PitchOutput(tester, random);
    const auto expected = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(expected.ok());
    const auto actual = tester.Run("highway", GetParam(), seed, random.Int(0, 3));
    const bool vectors = GetParam().has_vectors();
    ASSERT_EQ(actual.ok(), vectors) << actual.status().ToString();
    if (vectors) ExpectSame<int8_t>((*expected)[0], (*actual)[0], "log_softmax");
  }
}

TEST_P(NormalizationIsaTest, QuantizedL2NormalizationHasTheBitsOfTheReference) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const DataType type = random.Pick({DataType::kInt8, DataType::kUInt8});
    const int32_t low = type == DataType::kInt8 ? -128 : 0;
    OpTester tester("L2_NORMALIZATION");
    TensorInfo info{.type = type,
                    .shape = {static_cast<int32_t>(random.Pick({1, 5})),
                              static_cast<int32_t>(random.Pick({1, 2, 7, 16, 33, 197, 32768}))},
                    .quantization = {{0.02f}, {low + random.Pick({0, 3, 128, 255})}}};
    info.row_pitch = RandomPitch(random, info.shape.dim(-1));
    TestTensor x(info, random.Int(0, 3));
    const int32_t zero_point = info.quantization.zero_point();
    const bool narrow = random.Chance(0.3);  // around the zero point: the inverse root is large
    x.Fill(random, narrow ? std::max(low, zero_point - 1) : low,
           narrow ? std::min(low + 255, zero_point + 1) : low + 255);
    tester.Input(x);
    tester.Output(type, {{1.0f / 128}, {type == DataType::kInt8 ? 0 : 128}});
    ASSERT_TRUE(tester.Infer().ok());
    PitchOutput(tester, random);
    const auto expected = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(expected.ok());
    const auto actual = tester.Run("highway", GetParam(), seed, random.Int(0, 3));
    const bool vectors = GetParam().has_vectors();
    ASSERT_EQ(actual.ok(), vectors) << actual.status().ToString();
    if (vectors) ExpectSame<int8_t>((*expected)[0], (*actual)[0], "l2_normalization");
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, NormalizationIsaTest, ::testing::ValuesIn(RunnableIsas()),
                         [](const auto& info) { return std::string(IsaName(info.param)); });

}  // namespace
}  // namespace fuselite::kernels::testing
