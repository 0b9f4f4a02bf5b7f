#include "kernels/pool/pool.h"

#include "tests/kernels/bfloat16_cases.h"
#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {
namespace {

using ::testing::ElementsAre;

constexpr DataType kF32 = DataType::kFloat32;

OpTester Pool(std::string_view name, TestTensor in, int filter, int stride, Padding padding) {
  OpTester tester(name);
  tester.params<PoolParams>() = {.padding = padding,
                                 .stride_w = stride,
                                 .stride_h = stride,
                                 .filter_width = filter,
                                 .filter_height = filter,
                                 .activation = Activation::kNone,
                                 .extra_padding = {}};
  tester.Output(in.info().type, in.info().quantization);
  tester.Input(std::move(in));
  return tester;
}

template <class T>
std::vector<T> RunReference(OpTester& tester) {
  const Status inferred = tester.Infer();
  EXPECT_TRUE(inferred.ok()) << inferred.ToString();
  if (!inferred.ok()) return {};
  const auto outputs = tester.Run("reference", Isa::kScalar);
  EXPECT_TRUE(outputs.ok());
  return (*outputs)[0].values<T>();
}

TestTensor Square() {
  return TestTensor::Of<float>(kF32, {1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST(PoolTest, PaddingIsLeftOut) {
  OpTester average = Pool("AVERAGE_POOL_2D", Square(), 2, 2, Padding::kSame);
  EXPECT_THAT(RunReference<float>(average), ElementsAre(3, 4.5f, 7.5f, 9));
  OpTester max = Pool("MAX_POOL_2D", Square(), 2, 2, Padding::kSame);
  EXPECT_THAT(RunReference<float>(max), ElementsAre(5, 6, 8, 9));
  OpTester valid = Pool("MAX_POOL_2D", Square(), 2, 1, Padding::kValid);
  EXPECT_THAT(RunReference<float>(valid), ElementsAre(5, 6, 8, 9));
  OpTester l2 = Pool("L2_POOL_2D", Square(), 2, 2, Padding::kSame);
  EXPECT_THAT(RunReference<float>(l2),
              ElementsAre(std::sqrt(46.0f / 4), std::sqrt(45.0f / 2), std::sqrt(113.0f / 2), 9));
}

TEST(PoolTest, ActivationAndTail) {
  OpTester tester = Pool("MAX_POOL_2D", Square(), 2, 1, Padding::kValid);
  tester.params<PoolParams>().activation = Activation::kRelu6;
  tester.op.tail.stages.push_back(TailStage::Unary(UnaryKind::kNeg));
  EXPECT_THAT(RunReference<float>(tester), ElementsAre(-5, -6, -6, -6));
}

// On every ISA, and by the reference: maxima to the bit, means within what another order of sums
// and the rounding leave.
TEST(PoolTest, ValuesOfBFloat16) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const bool max = random.Chance(0.5);
    const TestTensor in({.type = kF32,
                         .shape = {static_cast<int32_t>(random.Int(1, 2)), 7, 9,
                                   static_cast<int32_t>(random.Int(1, 150))}});
    in.Fill(random, -4, 4);
    OpTester tester = Pool(max ? "MAX_POOL_2D" : "AVERAGE_POOL_2D", in,
                           static_cast<int>(random.Int(2, 3)), static_cast<int>(random.Int(1, 2)),
                           random.Chance(0.5) ? Padding::kSame : Padding::kValid);
    tester.params<PoolParams>().activation = random.Pick({Activation::kNone, Activation::kRelu});
    ASSERT_TRUE(tester.Infer().ok());
    InBothTypes both{tester, tester};
    RoundInput(both, 0, random);
    if (max || random.Chance(0.5)) both.shorts.op.outputs[0].type = DataType::kBFloat16;
    const auto expected = both.floats.Run("reference", Isa::kScalar);
    ASSERT_TRUE(expected.ok());
    const auto reference = both.shorts.Run("reference", Isa::kScalar, seed, 1);
    ASSERT_TRUE(reference.ok()) << reference.status().ToString();
    ExpectStored((*expected)[0], (*reference)[0], false, "reference");
    for (const Isa isa : RunnableIsas()) {
      const auto actual = both.shorts.Run("highway", isa, seed, random.Int(0, 3));
      if (isa == Isa::kScalar) continue;
      ASSERT_TRUE(actual.ok()) << actual.status().ToString();
      if (max) {
        ExpectStored((*expected)[0], (*actual)[0], false, std::string(IsaName(isa)));
        continue;
      }
      for (int64_t i = 0; i < tester.op.outputs[0].elements(); ++i) {
        EXPECT_NEAR((*expected)[0].at<float>(i), FloatAt((*actual)[0], i), 4 * 0x1p-8);
      }
    }
    if (HasFailure()) return;
  }
}

TEST(PoolTest, BFloat16IsTakenWithoutATail) {
  OpTester tester = Pool("MAX_POOL_2D", Square(), 2, 1, Padding::kValid);
  tester.op.tail.stages.push_back(TailStage::Unary(UnaryKind::kNeg));
  ASSERT_TRUE(tester.Infer().ok());
  InBothTypes both{tester, tester};
  Random random(1);
  RoundInput(both, 0, random);
  both.shorts.op.outputs[0].type = DataType::kBFloat16;
  const auto refused = both.shorts.Run("highway", RunnableIsas().back());
  EXPECT_THAT(refused.status().message(), ::testing::HasSubstr("without a tail"));
  EXPECT_TRUE(both.shorts.Run("reference", Isa::kScalar).ok());
}

TEST(PoolTest, IntegersRoundHalvesAsTFLite) {
  const auto run = [](DataType type, auto values) {
    using T = typename decltype(values)::value_type;
    OpTester tester =
        Pool("AVERAGE_POOL_2D",
             TestTensor::Of<T>(type, {1, 1, 4, 1}, values, {.scales = {0.1f}, .zero_points = {0}}),
             1, 2, Padding::kSame);
    tester.params<PoolParams>().filter_width = 2;
    return RunReference<T>(tester);
  };
  EXPECT_THAT(run(DataType::kInt8, std::vector<int8_t>{1, 2, -1, -2}), ElementsAre(2, -2));
  EXPECT_THAT(run(DataType::kUInt8, std::vector<uint8_t>{1, 2, 4, 4}), ElementsAre(2, 4));
  EXPECT_THAT(run(DataType::kInt16, std::vector<int16_t>{1, 2, -1, 0}), ElementsAre(2, -1));
}

TEST(PoolTest, Refuses) {
  EXPECT_FALSE(Pool("MAX_POOL_2D", Square(), 2, 0, Padding::kSame).Infer().ok());
  EXPECT_FALSE(Pool("MAX_POOL_2D", Square(), 1 << 20, 1, Padding::kSame).Infer().ok());
  OpTester scales = Pool("MAX_POOL_2D",
                         TestTensor({.type = DataType::kInt8,
                                     .shape = {1, 2, 2, 1},
                                     .quantization = {.scales = {1}, .zero_points = {0}}}),
                         1, 1, Padding::kSame);
  scales.op.outputs[0].quantization.scales = {2};
  EXPECT_EQ(scales.Infer().code(), StatusCode::kUnsupported);
}

// As LiteRT has it, who overlooks there that the width is too small.
TEST(PoolTest, HasNoOutputsWhereNoWindowFits) {
  for (const char* name : {"AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"}) {
    OpTester tester = Pool(name, Square(), 9, 1, Padding::kValid);
    ASSERT_TRUE(tester.Infer().ok()) << name;
    EXPECT_EQ(tester.op.outputs[0].shape.elements(), 0) << name;
  }
}

// A window wider than the input by less than twice the stride fits nowhere, which is no error:
// there are rows of outputs without any.
TEST(PoolTest, RowsWithoutOutputs) {
  for (const DataType type :
       {DataType::kFloat32, DataType::kInt8, DataType::kUInt8, DataType::kInt16}) {
    for (const char* name : {"AVERAGE_POOL_2D", "MAX_POOL_2D"}) {
      SCOPED_TRACE(std::string(name) + " " + std::string(DataTypeName(type)));
      const Quantization quantization =
          type == DataType::kFloat32 ? Quantization() : Quantization{{0.5f}, {0}};
      const TestTensor x({.type = type, .shape = {1, 7, 2, 3}, .quantization = quantization});
      std::memset(x.bytes(), 0, x.info().bytes());
      OpTester tester = Pool(name, x, 4, 3, Padding::kValid);
      ASSERT_TRUE(tester.Infer().ok());
      EXPECT_EQ(tester.op.outputs[0].shape, Shape({1, 2, 0, 3}));
      for (const Candidate& candidate : tester.op.op->candidates) {
        for (const Isa isa : RunnableIsas()) {
          const auto outputs = tester.RunCandidate(candidate, isa);
          EXPECT_TRUE(outputs.ok() || outputs.status().code() == StatusCode::kUnsupported);
          const auto plan = candidate.Plan(tester.op, {.isa = isa});
          EXPECT_TRUE(!plan.ok() || plan->kernel().units(0) == 0);
        }
      }
    }
  }
}

class PoolIsaTest : public ::testing::TestWithParam<Isa> {};

template <class T>
void Compare(const TestTensor& expected, const Result<std::vector<TestTensor>>& actual, Isa isa) {
  if (!isa.has_vectors()) {
    EXPECT_EQ(actual.status().code(), StatusCode::kUnsupported);
    return;
  }
  ASSERT_TRUE(actual.ok()) << actual.status().ToString();
  ExpectSame<T>(expected, (*actual)[0], "pool");
}

// Sums of floats in another order, of values up to 120, which a tail may double.
constexpr float kMeanTolerance = 3e-4f;

// To the bit, but for means of floats.
TEST_P(PoolIsaTest, HighwayAgreesWithTheReference) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const DataType type =
        random.Pick({kF32, kF32, kF32, DataType::kInt8, DataType::kUInt8, DataType::kInt16});
    const char* name = random.Pick({"AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"});
    if (type != kF32 && name[0] == 'L') name = "MAX_POOL_2D";
    TensorInfo info{
        .type = type,
        .shape = {static_cast<int32_t>(random.Int(1, 2)), static_cast<int32_t>(random.Int(3, 9)),
                  static_cast<int32_t>(random.Int(3, 20)),
                  static_cast<int32_t>(random.Pick({1, 3, 8, 16, 17, 40, 130, 257}))}};
    if (type != kF32) info.quantization = {.scales = {0.1f}, .zero_points = {3}};
    info.row_pitch = RandomPitch(random, info.shape.dim(-1));
    TestTensor x(info, random.Int(0, 3) * (BitWidth(type) / 8));
    x.Fill(random, type == DataType::kUInt8 ? 0 : -100, 120);
    OpTester tester = Pool(name, x, 1, 1, random.Chance(0.5) ? Padding::kSame : Padding::kValid);
    auto& params = tester.params<PoolParams>();
    const bool large = random.Chance(0.3);
    params.filter_height = static_cast<int32_t>(large ? info.shape[1] : random.Int(1, 3));
    params.filter_width =
        static_cast<int32_t>(large ? random.Int(3, info.shape[2]) : random.Int(1, 3));
    if (random.Chance(0.15)) params.filter_width = info.shape[2];
    params.stride_h = static_cast<int32_t>(random.Int(1, 3));
    params.stride_w = static_cast<int32_t>(random.Int(1, 3));
    params.activation = random.Pick({Activation::kNone, Activation::kRelu6});
    ASSERT_TRUE(tester.Infer().ok());
    if (type == kF32 && random.Chance(0.3)) {
      tester.op.tail.stages.push_back(TailStage::Unary(UnaryKind::kAffine, 2, 1));
    }
    const auto expected = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(expected.ok());
    const auto actual = tester.Run("highway", GetParam(), seed, random.Int(0, 3));
    switch (type) {
      case DataType::kInt8: Compare<int8_t>((*expected)[0], actual, GetParam()); break;
      case DataType::kUInt8: Compare<uint8_t>((*expected)[0], actual, GetParam()); break;
      case DataType::kInt16: Compare<int16_t>((*expected)[0], actual, GetParam()); break;
      default:
        if (name[0] == 'M' || !actual.ok()) {
          Compare<float>((*expected)[0], actual, GetParam());
        } else {
          ExpectNear((*expected)[0], (*actual)[0], [](int64_t) { return kMeanTolerance; }, name);
        }
    }
  }
}

// A window as large as the image. Its values are extremes alone, or with a few others that bring
// the quotient next to an integer.
OpTester LargeWindow(DataType type, int32_t size, int32_t channels, uint64_t seed, Random& random) {
  const bool wide = type == DataType::kInt16;
  const int32_t low = type == DataType::kUInt8 ? 0 : wide ? -32768 : -128;
  const int32_t high = type == DataType::kUInt8 ? 255 : wide ? 32767 : 127;
  TestTensor x({.type = type,
                .shape = {1, size, size, channels},
                .quantization = {.scales = {0.1f}, .zero_points = {0}}});
  const int64_t extreme = seed % 2 ? low : high;
  x.Fill(random, static_cast<double>(extreme), static_cast<double>(extreme));
  for (int64_t i = 0; seed > 2 && i < 20 * size; ++i) {
    const int64_t at = random.Int(0, x.info().elements() - 1);
    const int64_t value = random.Int(low, high);
    if (wide) {
      x.at<int16_t>(at) = static_cast<int16_t>(value);
    } else {
      x.at<uint8_t>(at) = static_cast<uint8_t>(value);
    }
  }
  return Pool("AVERAGE_POOL_2D", x, size, 1, Padding::kValid);
}

void CompareLargeWindow(OpTester tester, bool taken, Isa isa, uint64_t seed) {
  const Status inferred = tester.Infer();
  ASSERT_TRUE(inferred.ok()) << inferred.ToString();
  const auto expected = tester.Run("reference", Isa::kScalar);
  ASSERT_TRUE(expected.ok());
  const auto actual = tester.Run("highway", isa, seed);
  if (!taken) {
    EXPECT_EQ(actual.status().code(), StatusCode::kUnsupported);
  } else if (tester.op.inputs[0].type == DataType::kInt16) {
    Compare<int16_t>((*expected)[0], actual, isa);
  } else {
    Compare<uint8_t>((*expected)[0], actual, isa);
  }
}

// Sums and quotients at the ends of their ranges: windows around the 256 taps that 16 bits hold,
// the 511 whose sums of int16 floats hold, and the 65535 that bytes may have.
TEST_P(PoolIsaTest, LargeIntegerWindows) {
  for (const DataType type : {DataType::kInt8, DataType::kUInt8, DataType::kInt16}) {
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      Random random(seed);
      SCOPED_TRACE(random.Trace());
      for (const int32_t size : {15, 16, 17, 22, 23, 40}) {
        for (const int32_t channels : {3, 37}) {
          CompareLargeWindow(LargeWindow(type, size, channels, seed, random), true, GetParam(),
                             seed);
        }
      }
      CompareLargeWindow(LargeWindow(type, 255, 3, seed, random), true, GetParam(), seed);
      if (type == DataType::kInt16) continue;
      CompareLargeWindow(LargeWindow(type, 256, 3, seed, random), false, GetParam(), seed);
    }
  }
}

// What the random windows above are compared by.
TEST_P(PoolIsaTest, JoinsColumnsWhereWindowsOverlap) {
  const auto name_of = [&](DataType type, int filter, int stride) -> std::string {
    const TestTensor x({.type = type,
                        .shape = {1, 12, 13, 40},
                        .quantization = {.scales = {0.1f}, .zero_points = {0}}});
    OpTester tester = Pool("AVERAGE_POOL_2D", x, filter, stride, Padding::kSame);
    EXPECT_TRUE(tester.Infer().ok());
    const auto plan = tester.op.op->candidates[0].Plan(tester.op, {.isa = GetParam()});
    return plan.ok() ? std::string(plan->kernel().name()) : plan.status().ToString();
  };
  if (!GetParam().has_vectors()) GTEST_SKIP() << "there are no vectors";
  for (const DataType type :
       {DataType::kFloat32, DataType::kInt8, DataType::kUInt8, DataType::kInt16}) {
    EXPECT_THAT(name_of(type, 3, 1), ::testing::HasSubstr("columns"));
    EXPECT_THAT(name_of(type, 7, 2), ::testing::HasSubstr("columns"));
    EXPECT_THAT(name_of(type, 2, 2), ::testing::Not(::testing::HasSubstr("columns")));
  }
}

// More taps than a mean of integers may have, in windows that overlap.
TEST_P(PoolIsaTest, LargeMaxima) {
  for (const DataType type : {DataType::kFloat32, DataType::kInt8}) {
    Random random(1);
    TestTensor x({.type = type,
                  .shape = {1, 300, 310, 2},
                  .quantization = {.scales = {0.1f}, .zero_points = {0}}});
    x.Fill(random, -100, 120);
    OpTester tester = Pool("MAX_POOL_2D", x, 290, 1, Padding::kSame);
    tester.params<PoolParams>().filter_width = 300;
    tester.params<PoolParams>().stride_h = 100;
    tester.params<PoolParams>().stride_w = 60;
    ASSERT_TRUE(tester.Infer().ok());
    const auto expected = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(expected.ok());
    const auto actual = tester.Run("highway", GetParam());
    if (type == DataType::kInt8) {
      Compare<int8_t>((*expected)[0], actual, GetParam());
    } else {
      Compare<float>((*expected)[0], actual, GetParam());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, PoolIsaTest, ::testing::ValuesIn(RunnableIsas()),
                         [](const auto& info) { return std::string(IsaName(info.param)); });

}  // namespace
}  // namespace fuselite::kernels::testing
