// Operators that few models have: small cases worked out by hand, and what they refuse.
// tests/python/test_operators.py compares the same with LiteRT on random parameters.
#include <algorithm>
#include <complex>
#include <limits>

#include "kernels/audio/audio.h"
#include "kernels/convert/numeric_verify.h"
#include "kernels/numbers/quantization.h"
#include "kernels/numbers/short_floats.h"
#include "kernels/recurrent/svdf.h"
#include "kernels/reduce_window/reduce_window.h"
#include "runtime/tflite/abi.h"
#include "tests/kernels/reference_values.h"

namespace fuselite::kernels::testing {
namespace {

using ::testing::ElementsAre;

constexpr DataType kF32 = DataType::kFloat32, kI32 = DataType::kInt32, kI64 = DataType::kInt64,
                   kI8 = DataType::kInt8, kI16 = DataType::kInt16, kU8 = DataType::kUInt8;

TestTensor Int(int32_t value) { return TestTensor::Of<int32_t>(kI32, {}, {value}); }
TestTensor Longs(const std::vector<int64_t>& values) {
  return TestTensor::Of<int64_t>(kI64, {static_cast<int32_t>(values.size())}, values);
}

StatusCode RunCode(OpTester& tester) {
  EXPECT_TRUE(tester.Infer().ok());
  return tester.Run("reference", Isa::kScalar).status().code();
}

TEST(BitwiseTest, ShiftsStayWithinTheType) {
  OpTester right("RIGHT_SHIFT");
  right.Input(TestTensor::Of<int8_t>(kI8, {4}, {-128, -5, 100, 100}));
  right.Input(TestTensor::Of<int8_t>(kI8, {4}, {9, 1, -3, 2}));
  EXPECT_THAT(Values<int8_t>(right), ElementsAre(-1, -3, 100, 25));
  OpTester left("STABLEHLO_SHIFT_LEFT");
  left.Input(TestTensor::Of<int16_t>(kI16, {4}, {1, -1, 1, 1}));
  left.Input(TestTensor::Of<int16_t>(kI16, {4}, {15, 4, 16, -1}));
  EXPECT_THAT(Values<int16_t>(left), ElementsAre(-32768, -16, 0, 0));
  OpTester exclusive("BITWISE_XOR");
  exclusive.Input(TestTensor::Of<uint8_t>(kU8, {2, 1}, {5, 255}));
  exclusive.Input(TestTensor::Of<uint8_t>(kU8, {2}, {1, 4}));
  EXPECT_THAT(Values<uint8_t>(exclusive), ElementsAre(4, 1, 254, 251));
}

TEST(StablehloTest, IntegersWrapAroundAndShapesAreEqual) {
  OpTester sum("STABLEHLO_ADD");
  sum.Input(TestTensor::Of<int8_t>(kI8, {2}, {127, 1}))
      .Input(TestTensor::Of<int8_t>(kI8, {2}, {1, 2}));
  EXPECT_THAT(Values<int8_t>(sum), ElementsAre(-128, 3));
  OpTester other("STABLEHLO_MULTIPLY");
  other.Input(Ints({1, 2})).Input(Ints({3}));
  EXPECT_EQ(other.Infer().code(), StatusCode::kInvalidArgument);
}

TEST(ComplexPartsTest, Values) {
  using Complex = std::complex<float>;
  const auto x = TestTensor::Of<Complex>(DataType::kComplex64, {2}, {{3, -4}, {0, 1}});
  OpTester real("REAL"), imaginary("IMAG"), magnitude("COMPLEX_ABS");
  EXPECT_THAT(Values<float>(real.Input(x)), ElementsAre(3, 0));
  EXPECT_THAT(Values<float>(imaginary.Input(x)), ElementsAre(-4, 1));
  EXPECT_THAT(Values<float>(magnitude.Input(x)), ElementsAre(5, 1));
}

TEST(ComplexPartsTest, VectorsHaveTheMagnitudesOfTheReference) {
  using Complex = std::complex<float>;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Random random(1);
  for (int32_t count = 1; count <= 70; ++count) {
    const auto draw = [&] {
      return random.Chance(0.2) ? random.Pick({NAN, kInfinity, -kInfinity, 0.0f, 1e-45f, 3e38f})
                                : std::ldexp(random.Float(-1, 1), random.Int(-140, 127));
    };
    std::vector<Complex> x(count);
    for (Complex& number : x) number = {draw(), draw()};
    OpTester tester("COMPLEX_ABS");
    tester.Input(TestTensor::Of<Complex>(DataType::kComplex64, {count}, x));
    const std::vector<float> expected = Values<float>(tester);
    for (Isa isa : RunnableIsas()) {
      if (!isa.has_vectors()) continue;
      const auto outputs = tester.Run("highway", isa, 1, random.Int(0, 3));
      ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
      for (int32_t i = 0; i < count; ++i) {
        const float actual = (*outputs)[0].at<float>(i);
        EXPECT_TRUE(actual == expected[i] || (std::isnan(actual) && std::isnan(expected[i])))
            << IsaName(isa) << " " << x[i] << ": " << actual << ", expected " << expected[i];
      }
    }
  }
}

TEST(AddNTest, AddsAllInTheirOrder) {
  OpTester tester("ADD_N");
  tester.Input(Floats({1}, {1e8F})).Input(Floats({1}, {1})).Input(Floats({1}, {-1e8F}));
  EXPECT_THAT(Values<float>(tester), ElementsAre(0));
}

TEST(AddNTest, SumsOfFloatsAreFinite) {
  constexpr float kMost = std::numeric_limits<float>::max();
  OpTester tester("ADD_N");
  for (int i = 0; i < 2; ++i) tester.Input(Floats({3}, {3e38F, -INFINITY, NAN}));
  EXPECT_THAT(Values<float>(tester), ElementsAre(kMost, -kMost, ::testing::IsNan()));
}

TEST(Atan2Test, TheFirstInputIsY) {
  OpTester tester("ATAN2");
  tester.Input(Floats({2}, {1, 0})).Input(Floats({2}, {0, -1}));
  EXPECT_THAT(Values<float>(tester), ElementsAre(std::atan2(1.0F, 0.0F), std::atan2(0.0F, -1.0F)));
}

TEST(DynamicUpdateSliceTest, StartIsMovedSoThatTheUpdateFits) {
  OpTester tester("DYNAMIC_UPDATE_SLICE");
  tester.Input(Floats({2, 3}, {0, 1, 2, 3, 4, 5})).Input(Floats({1, 2}, {8, 9}));
  tester.Input(Ints({7, -1}));
  EXPECT_THAT(Values<float>(tester), ElementsAre(0, 1, 2, 8, 9, 5));
}

// Several pieces of copies; updates that are one piece of the operand, and others.
TEST(DynamicUpdateSliceTest, AllAroundTheUpdateIsKept) {
  const Shape shape{2, 50, 4, 150};
  std::vector<float> kept(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < kept.size(); ++i) kept[i] = static_cast<float>(i);
  for (const Shape& part :
       {Shape{1, 7, 4, 150}, Shape{1, 50, 4, 150}, Shape{2, 50, 4, 150}, Shape{1, 1, 2, 150},
        Shape{1, 7, 2, 150}, Shape{2, 7, 4, 150}, Shape{1, 1, 1, 9}, Shape{0, 50, 4, 150},
        Shape{1, 0, 4, 150}, Shape{1, 7, 4, 0}}) {
    SCOPED_TRACE(part.ToString());
    const std::vector<int32_t> start = {1, 20, 2, 30};
    OpTester tester("DYNAMIC_UPDATE_SLICE");
    tester.Input(Floats(shape, kept));
    tester.Input(Floats(part, std::vector<float>(static_cast<size_t>(part.elements()), -1)));
    tester.Input(Ints(start));
    const std::vector<float> actual = Values<float>(tester);
    ASSERT_EQ(actual.size(), kept.size());
    const auto kernel = tester.op.op->candidates[0].Build(tester.op, PlanContext());
    ASSERT_TRUE(kernel.ok()) << kernel.status().ToString();
    EXPECT_GE((*kernel)->grain(0), 1);  // also where there are no rows, or none with elements
    for (size_t i = 0; i < kept.size(); ++i) {
      bool inside = true;
      int64_t rest = static_cast<int64_t>(i);
      for (int d = 3; d >= 0; --d) {
        const int64_t at = rest % shape[d] - std::min(start[d], shape[d] - part[d]);
        inside = inside && at >= 0 && at < part[d];
        rest /= shape[d];
      }
      ASSERT_EQ(actual[i], inside ? -1 : kept[i]) << i;
    }
  }
}

// The rows of an update that is a part of wider ones; one piece of the operand, and several.
TEST(DynamicUpdateSliceTest, PitchedRowsOfTheUpdate) {
  for (const int32_t rows : {1, 2}) {
    TestTensor update({.type = DataType::kFloat32, .shape = {rows, 3, 2}, .row_pitch = 5});
    for (int64_t i = 0; i < update.info().elements(); ++i) update.at<float>(i) = -1 - float(i);
    std::vector<float> kept(2 * 4 * 2);
    std::iota(kept.begin(), kept.end(), 0.0f);
    OpTester tester("DYNAMIC_UPDATE_SLICE");
    tester.Input(Floats({2, 4, 2}, kept)).Input(update).Input(Ints({0, 1, 0}));
    const std::vector<float> actual = Values<float>(tester);
    for (int64_t i = 0; i < update.info().elements(); ++i) {
      kept[i / 6 * 8 + 2 + i % 6] = -1 - float(i);
    }
    EXPECT_EQ(actual, kept) << rows;
  }
}

TEST(DynamicUpdateSliceTest, InPlaceTheUpdateAloneIsWritten) {
  OpTester tester("DYNAMIC_UPDATE_SLICE");
  tester.Input(Ints({1, 2, 3, 4})).Input(Ints({9})).Input(Longs({2}));
  ASSERT_TRUE(tester.Infer().ok());
  const auto kernel = tester.op.op->candidates[0].Build(tester.op, PlanContext());
  ASSERT_TRUE(kernel.ok()) << kernel.status().ToString();
  ASSERT_EQ((*kernel)->in_place_input(), 0);
  ASSERT_TRUE(tester.RunKernel(**kernel, {tester.inputs[0]}, 1).ok());
  EXPECT_THAT(tester.inputs[0].values<int32_t>(), ElementsAre(1, 2, 9, 4));
}

TEST(BitcastTest, WidthsMakeAndTakeADimension) {
  OpTester narrow("BITCAST");
  narrow.Input(Ints({0x01020304})).Output(kU8);
  EXPECT_THAT(Values<uint8_t>(narrow), ElementsAre(4, 3, 2, 1));
  EXPECT_EQ(narrow.op.outputs[0].shape, (Shape{1, 4}));
  OpTester wide("BITCAST");
  wide.Input(TestTensor::Of<int16_t>(kI16, {3, 1}, {1, 2, 3})).Output(kI32);
  EXPECT_EQ(wide.Infer().code(), StatusCode::kInvalidArgument);
}

TEST(BroadcastArgsTest, FailsWhereDimensionsDiffer) {
  OpTester tester("BROADCAST_ARGS");
  tester.Input(Ints({3, 1})).Input(Ints({4, 1, 5}));
  EXPECT_THAT(Values<int32_t>(tester), ElementsAre(4, 3, 5));
  OpTester wrong("BROADCAST_ARGS");
  wrong.Input(Ints({3})).Input(Ints({2}));
  EXPECT_EQ(RunCode(wrong), StatusCode::kInvalidArgument);
}

TEST(DilateTest, PutsTheValueBetween) {
  OpTester tester("DILATE");
  tester.Input(Floats({2, 2}, {1, 2, 3, 4})).Constant(Ints({2, 3})).Input(Floats({}, {7}));
  EXPECT_THAT(Values<float>(tester), ElementsAre(1, 7, 7, 2, 7, 7, 7, 7, 3, 7, 7, 4));
}

TEST(SegmentTest, Values) {
  const TestTensor data = Ints({5, 1, 7, 2});
  OpTester sum("SEGMENT_SUM");
  sum.Input(data).Constant(Ints({0, 0, 1, 2}));
  EXPECT_THAT(Values<int32_t>(sum), ElementsAre(6, 7, 2));
  OpTester gap("SEGMENT_SUM");
  gap.Input(data).Constant(Ints({0, 2, 2, 2}));
  EXPECT_EQ(gap.Infer().code(), StatusCode::kInvalidArgument);
  OpTester largest("UNSORTED_SEGMENT_MAX");
  largest.Input(data).Input(Ints({2, -1, 0, 2})).Constant(Int(3));
  EXPECT_THAT(Values<int32_t>(largest), ElementsAre(7, std::numeric_limits<int32_t>::min(), 5));
  OpTester beyond("UNSORTED_SEGMENT_SUM");
  beyond.Input(data).Input(Ints({0, 1, 2, 3})).Constant(Int(3));
  EXPECT_EQ(RunCode(beyond), StatusCode::kInvalidArgument);
}

TEST(SparseToDenseTest, TheLastOfTwoCounts) {
  const auto tester = [](const std::vector<int32_t>& indices) {
    OpTester result("SPARSE_TO_DENSE");
    result.Input(TestTensor::Of<int32_t>(kI32, {2, 2}, indices)).Constant(Ints({2, 2}));
    result.Input(Floats({2}, {5, 6})).Constant(Floats({}, {-1}));
    return result;
  };
  OpTester same = tester({1, 0, 1, 0}), beyond = tester({0, 0, 0, 2});
  EXPECT_THAT(Values<float>(same), ElementsAre(-1, -1, 6, -1));
  EXPECT_EQ(RunCode(beyond), StatusCode::kInvalidArgument);
}

TEST(MatrixDiagTest, WideAndHighMatrices) {
  OpTester made("MATRIX_DIAG");
  made.Input(Ints({1, 2}));
  EXPECT_THAT(Values<int32_t>(made), ElementsAre(1, 0, 0, 2));
  OpTester wide("MATRIX_SET_DIAG");
  wide.Input(Floats({2, 3}, {0, 1, 2, 3, 4, 5})).Input(Floats({2}, {8, 9}));
  EXPECT_THAT(Values<float>(wide), ElementsAre(8, 1, 2, 3, 9, 5));
  OpTester high("MATRIX_SET_DIAG");
  high.Input(Floats({3, 1}, {0, 1, 2})).Input(Floats({1}, {8}));
  EXPECT_THAT(Values<float>(high), ElementsAre(8, 1, 2));
}

TEST(ReduceWindowTest, StridesAndDilations) {
  OpTester tester("REDUCE_WINDOW");
  tester.params<ReduceWindowParams>() = {WindowFunction::kAdd};
  tester.Input(Floats({1, 6}, {1, 2, 3, 4, 5, 6})).Input(Floats({}, {100}));
  tester.Constant(Longs({1, 2})).Constant(Longs({1, 2})).Constant(Longs({1, 3}));
  EXPECT_THAT(Values<float>(tester), ElementsAre(105, 109));
}

TEST(NonMaxSuppressionTest, OverlappingBoxesGo) {
  OpTester tester("NON_MAX_SUPPRESSION_V4");
  tester.Input(Floats({3, 4}, {0, 0, 1, 1, 0, 0.1F, 1, 1.1F, 2, 2, 3, 3}));
  tester.Input(Floats({3}, {0.5F, 0.9F, 0.7F})).Constant(Int(3));
  tester.Input(Floats({}, {0.5F})).Input(Floats({}, {0})).Output().Output();
  EXPECT_THAT(Values<int32_t>(tester), ElementsAre(1, 2, 0));
  EXPECT_THAT(Values<int32_t>(tester, 1), ElementsAre(2));
}

TEST(HashtableLookupTest, MissingKeysGiveZeros) {
  OpTester tester("HASHTABLE_LOOKUP");
  tester.Input(Ints({4, 5})).Constant(Ints({1, 4})).Input(Floats({2, 2}, {1, 2, 3, 4}));
  tester.Output().Output();
  EXPECT_THAT(Values<float>(tester), ElementsAre(3, 4, 0, 0));
  EXPECT_THAT(Values<uint8_t>(tester, 1), ElementsAre(1, 0));
}

// Times and a state of int8: the new entries are 10 and 200, kept as 13 and, behind a clamp to 127,
// 130 - 256; the sums 2 * 17 + 3 * 10 and 37 - 129.
TEST(SvdfTest, AStateOfBytesHasAZeroPoint) {
  const auto bytes = [](const Shape& shape, const std::vector<int8_t>& values,
                        Quantization quantization) {
    return TestTensor::Of<int8_t>(kI8, shape, values, std::move(quantization));
  };
  OpTester tester("SVDF");
  tester.params<SvdfParams>() = {.rank = 1, .activation = Activation::kRelu};
  tester.Input(bytes({1, 2}, {3, 5}, {{0.5F}, {1}}));
  tester.Constant(bytes({2, 2}, {1, 2, 100, 0}, {{0.5F}, {0}}));
  tester.Constant(bytes({2, 2}, {2, 3, 1, 1}, {{0.5F}, {0}})).Constant(Ints({1, 0}));
  tester.Input(bytes({1, 4}, {10, 20, 30, 40}, {{0.25F}, {3}}));
  tester.Output(DataType::kNone, {{0.125F}, {-2}});
  EXPECT_THAT(Values<int8_t>(tester), ElementsAre(63, -94));
}

TEST(Rfft2dTest, OfAnImpulseAndOfAConstant) {
  using Complex = std::complex<float>;
  OpTester impulse("RFFT2D");
  impulse.Input(Floats({2, 4}, {0, 1, 0, 0, 0, 0, 0, 0})).Constant(Ints({2, 4}));
  const Complex one(1, 0), turned(0, -1);
  const auto near = [](Complex expected) {
    return ::testing::Truly([expected](Complex z) { return std::abs(z - expected) < 1e-6F; });
  };
  EXPECT_THAT(Values<Complex>(impulse), ElementsAre(near(one), near(turned), near(-one), near(one),
                                                    near(turned), near(-one)));
  OpTester odd("RFFT2D");
  odd.Input(Floats({1, 4}, {1, 1, 1, 1})).Constant(Ints({1, 3}));
  EXPECT_EQ(odd.Infer().code(), StatusCode::kInvalidArgument);
}

// A cosine of four turns within Hann's window: half of its length in bin 4, a quarter beside it.
TEST(AudioSpectrogramTest, OfACosine) {
  std::vector<float> samples(2 * 20);  // in the second of two channels, from sample 3 on
  for (int i = 3; i < 20; ++i)
    samples[2 * i + 1] = std::cos(0.5F * static_cast<float>(M_PI) * (i - 3));
  OpTester tester("AudioSpectrogram");
  tester.params<SpectrogramParams>() = {.window = 16, .stride = 3, .squared = true};
  tester.Input(Floats({20, 2}, samples));
  const std::vector<float> bins = Values<float>(tester);
  ASSERT_EQ(bins.size(), 2 * 2 * 9);
  const float expected[] = {0, 0, 0, 4, 16, 4, 0, 0, 0};
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQ(bins[i] + bins[9 + i], 0);
    EXPECT_NEAR(bins[27 + i], expected[i], 1e-5F);
  }
}

// Equal sums have no coefficient but the first: log(1e-12) times the root of the filters' number.
TEST(MfccTest, OfSilence) {
  OpTester tester("Mfcc");
  tester.params<MfccParams>() = {
      .lower_limit = 20, .upper_limit = 4000, .filters = 9, .coefficients = 2};
  tester.Input(Floats({1, 1, 129}, std::vector<float>(129))).Input(Int(16000));
  const std::vector<float> coefficients = Values<float>(tester);
  ASSERT_EQ(coefficients.size(), 2);
  EXPECT_NEAR(coefficients[0], std::sqrt(2.0F / 9) * 9 * std::log(1e-12F), 1e-3F);
  EXPECT_NEAR(coefficients[1], 0, 1e-5F);
  OpTester impossible("Mfcc");
  impossible.params<MfccParams>() = tester.params<MfccParams>();
  impossible.Input(Floats({1, 1, 129}, std::vector<float>(129))).Input(Int(0));
  EXPECT_EQ(RunCode(impossible), StatusCode::kInvalidArgument);
}

// Off by 0.5, -0.25 and 0.
TEST(NumericVerifyTest, FailsBeyondTheToleranceWhereItIsToldTo) {
  for (const float tolerance : {0.05F, 1.0F, 2.5F}) {
    for (const bool fails : {false, true}) {
      OpTester tester("NumericVerify");
      tester.params<NumericVerifyParams>() = {tolerance, fails};
      const TestTensor codes = TestTensor::Of<int8_t>(kI8, {3}, {8, 4, 0}, {{0.25F}, {4}});
      tester.Input(codes).Input(Floats({3}, {0.5F, 0.25F, -1}));
      if (fails && tolerance == 1.0F) {
        EXPECT_EQ(RunCode(tester), StatusCode::kInvalidArgument);
      } else {
        EXPECT_THAT(Values<float>(tester), ElementsAre(0.5F, -0.25F, 0));
      }
    }
  }
}

TEST(ShortFloatTest, DifferencesAndQuotientsAreRoundedOnce) {
  const auto halves = [](std::vector<float> values) {
    std::vector<Half> rounded(values.begin(), values.end());
    return TestTensor::Of<Half>(DataType::kFloat16, {static_cast<int32_t>(values.size())}, rounded);
  };
  OpTester difference("SUB"), quotient("DIV"), squared("SQUARED_DIFFERENCE");
  EXPECT_EQ(Values<Half>(difference.Input(halves({2048})).Input(halves({-1})))[0], 2048);
  EXPECT_EQ(Values<Half>(quotient.Input(halves({1})).Input(halves({3})))[0], Half(1.0F / 3));
  EXPECT_EQ(Values<Half>(squared.Input(halves({3})).Input(halves({-1})))[0], 16);
}

TEST(CompareTest, ScalesFromOneOn) {
  OpTester tester("GREATER");
  tester.Input(TestTensor::Of<int8_t>(kI8, {2}, {3, -3}, {.scales = {2}, .zero_points = {0}}));
  tester.Input(TestTensor::Of<int8_t>(kI8, {2}, {5, -7}, {.scales = {1}, .zero_points = {0}}));
  EXPECT_THAT(Values<bool>(tester), ElementsAre(true, true));
}

}  // namespace
}  // namespace fuselite::kernels::testing
