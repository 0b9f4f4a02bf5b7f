// Comparisons, logic, selection; FLOOR_DIV, FLOOR_MOD and POW.
#include <limits>

#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {
namespace {

using ::testing::ElementsAre;

constexpr DataType kF32 = DataType::kFloat32;
constexpr DataType kI32 = DataType::kInt32;

// std::vector<bool> has no bytes.
TestTensor Bools(Shape shape, const std::vector<uint8_t>& values) {
  return TestTensor::Of<uint8_t>(DataType::kBool, shape, values);
}

Result<TestTensor> Compute(std::string_view name, std::vector<TestTensor> inputs,
                           int64_t output_pitch = 0) {
  OpTester tester(name);
  for (TestTensor& input : inputs) tester.Input(std::move(input));
  FUSELITE_RETURN_IF_ERROR(tester.Infer());
  tester.op.outputs[0].row_pitch = output_pitch;
  FUSELITE_ASSIGN_OR_RETURN(const auto outputs, tester.Run("reference", Isa::kScalar));
  return outputs[0];
}

template <class T>
std::vector<T> Values(std::string_view name, std::vector<TestTensor> inputs,
                      int64_t output_pitch = 0) {
  const Result<TestTensor> result = Compute(name, std::move(inputs), output_pitch);
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  return result.ok() ? result->values<T>() : std::vector<T>{};
}

TEST(CompareTest, FloatsWithNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const TestTensor x = TestTensor::Of<float>(kF32, {4}, {1, 2, 3, nan});
  const TestTensor two = TestTensor::Of<float>(kF32, {1}, {2});
  EXPECT_THAT(Values<uint8_t>("EQUAL", {x, two}), ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(Values<uint8_t>("NOT_EQUAL", {x, two}), ElementsAre(1, 0, 1, 1));
  EXPECT_THAT(Values<uint8_t>("LESS", {x, two}), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(Values<uint8_t>("LESS_EQUAL", {x, two}), ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(Values<uint8_t>("GREATER", {x, two}), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(Values<uint8_t>("GREATER_EQUAL", {x, two}), ElementsAre(0, 1, 1, 0));
}

TEST(CompareTest, BroadcastsBothInputsIntoPitchedRows) {
  const TestTensor x = TestTensor::Of<int32_t>(kI32, {2, 1}, {1, 5});
  const TestTensor y = TestTensor::Of<int32_t>(kI32, {1, 3}, {0, 1, 6});
  EXPECT_THAT(Values<uint8_t>("GREATER", {x, y}, 7), ElementsAre(1, 0, 0, 1, 1, 0));
}

// Scale 1/512: in 8 fraction bits, halves away from zero, 1 and 2 are both 1, and 3 is 2.
TEST(CompareTest, QuantizedValuesHaveEightFractionBits) {
  const auto of = [](const std::vector<int8_t>& values) {
    return TestTensor::Of<int8_t>(DataType::kInt8, {3}, values, {{1.0f / 512}, {0}});
  };
  EXPECT_THAT(Values<uint8_t>("EQUAL", {of({1, 1, -1}), of({2, 3, -2})}), ElementsAre(1, 0, 1));
  EXPECT_THAT(Values<uint8_t>("LESS", {of({1, 1, -1}), of({2, 3, -2})}), ElementsAre(0, 1, 0));
  const TestTensor coarse = TestTensor::Of<int8_t>(DataType::kInt8, {1}, {1}, {{1.0f}, {0}});
  EXPECT_THAT(Values<uint8_t>("LESS_EQUAL", {coarse, coarse}), ElementsAre(1));
}

TEST(LogicalTest, TruthTables) {
  const TestTensor x = Bools({4}, {0, 0, 1, 1}), y = Bools({4}, {0, 1, 0, 1});
  EXPECT_THAT(Values<uint8_t>("LOGICAL_AND", {x, y}), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(Values<uint8_t>("LOGICAL_OR", {x, y}), ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(Values<uint8_t>("LOGICAL_NOT", {x}), ElementsAre(1, 1, 0, 0));
}

TEST(SelectTest, WholeSlicesAndElements) {
  const TestTensor x = TestTensor::Of<int32_t>(kI32, {2, 2}, {1, 2, 3, 4});
  const TestTensor y = TestTensor::Of<int32_t>(kI32, {2, 2}, {5, 6, 7, 8});
  EXPECT_THAT(Values<int32_t>("SELECT", {Bools({2}, {0, 1}), x, y}), ElementsAre(5, 6, 3, 4));
  EXPECT_THAT(Values<int32_t>("SELECT_V2", {Bools({2}, {0, 1}), x, y}), ElementsAre(5, 2, 7, 4));
  EXPECT_THAT(Values<int32_t>("SELECT", {Bools({2, 2}, {1, 0, 0, 1}), x, y}, 3),
              ElementsAre(1, 6, 7, 4));
  EXPECT_THAT(Values<int32_t>("SELECT", {Bools({}, {1}), x, y}), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(Compute("SELECT", {Bools({1, 2}, {0, 1}), x, y}).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(SelectTest, AllThreeBroadcast) {
  const TestTensor x = TestTensor::Of<int64_t>(DataType::kInt64, {2, 1}, {1, 2});
  const TestTensor y = TestTensor::Of<int64_t>(DataType::kInt64, {}, {9});
  EXPECT_THAT(Values<int64_t>("SELECT_V2", {Bools({3}, {1, 0, 1}), x, y}),
              ElementsAre(1, 9, 1, 2, 9, 2));
  const TestTensor other = TestTensor::Of<int32_t>(kI32, {}, {9});
  EXPECT_EQ(Compute("SELECT_V2", {Bools({3}, {1, 0, 1}), x, other}).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(FloorTest, QuotientsAndRestsRoundDown) {
  const TestTensor x = TestTensor::Of<int32_t>(kI32, {4}, {7, -7, 7, -7});
  const TestTensor y = TestTensor::Of<int32_t>(kI32, {4}, {2, 2, -2, -2});
  EXPECT_THAT(Values<int32_t>("FLOOR_DIV", {x, y}), ElementsAre(3, -4, -4, 3));
  EXPECT_THAT(Values<int32_t>("FLOOR_MOD", {x, y}), ElementsAre(1, 1, -1, -1));
  const TestTensor f = TestTensor::Of<float>(kF32, {2}, {5.5f, -5.5f});
  const TestTensor g = TestTensor::Of<float>(kF32, {1}, {2});
  EXPECT_THAT(Values<float>("FLOOR_DIV", {f, g}), ElementsAre(2, -3));
  EXPECT_THAT(Values<float>("FLOOR_MOD", {f, g}), ElementsAre(1.5f, 0.5f));
}

TEST(FloorTest, LimitsOfIntegers) {
  const TestTensor least = TestTensor::Of<int32_t>(kI32, {1}, {INT32_MIN});
  const TestTensor minus_one = TestTensor::Of<int32_t>(kI32, {1}, {-1});
  const TestTensor zero = TestTensor::Of<int32_t>(kI32, {1}, {0});
  EXPECT_THAT(Values<int32_t>("FLOOR_DIV", {least, minus_one}), ElementsAre(INT32_MAX));
  EXPECT_THAT(Values<int32_t>("FLOOR_MOD", {least, minus_one}), ElementsAre(0));
  for (const char* name : {"FLOOR_DIV", "FLOOR_MOD"}) {
    EXPECT_EQ(Compute(name, {least, zero}).status().code(), StatusCode::kInvalidArgument) << name;
  }
}

// Every type that has vectors, to the bit: divisors of one or of each element, the limits of types.
TEST(FloorTest, HighwayHasTheBitsOfTheReference) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const DataType type = random.Pick({kF32, kI32, DataType::kInt16, DataType::kInt8});
    const char* name = random.Chance(0.5) ? "FLOOR_DIV" : "FLOOR_MOD";
    const double limit = type == DataType::kInt8 ? 128 : type == kI32 ? 2147483648.0 : 32768;
    const int32_t columns = static_cast<int32_t>(random.Int(1, 300));
    const auto operand = [&](bool one, double low, double high) {
      TensorInfo info{.type = type, .shape = {one ? 1 : 3, one ? 1 : columns}};
      info.row_pitch = RandomPitch(random, info.shape.dim(-1));
      TestTensor x(info, 4 * random.Int(0, 3));
      x.Fill(random, low, high);
      return x;
    };
    const bool small = random.Chance(0.5);
    const double most = small ? 12 : limit - 1, sign = random.Pick({1, -1});
    OpTester tester(name);
    tester.Input(operand(random.Chance(0.2), small ? -12 : -limit, most));
    tester.Input(operand(random.Chance(0.4), sign > 0 ? 1 : -most, sign > 0 ? most : -1));
    ASSERT_TRUE(tester.Infer().ok());
    const auto expected = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    for (const Isa isa : RunnableIsas()) {
      const auto actual = tester.Run("highway", isa, seed);
      ASSERT_EQ(actual.ok(), isa.has_vectors()) << actual.status().ToString();
      if (!actual.ok()) continue;
      switch (BitWidth(type)) {
        case 8: ExpectSame<int8_t>((*expected)[0], (*actual)[0], name); break;
        case 16: ExpectSame<int16_t>((*expected)[0], (*actual)[0], name); break;
        default: ExpectSame<int32_t>((*expected)[0], (*actual)[0], name);
      }
    }
  }
}

// Quotients of all sizes, next to whole ones, and numbers that have none.
TEST(FloorTest, RemaindersOfAnyFloats) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr int32_t kCount = 4000;
  Random random(1);
  std::vector<float> x(kCount), y(kCount);
  for (int32_t i = 0; i < kCount; ++i) {
    y[i] = std::ldexp(random.Float(-2, 2), static_cast<int>(random.Int(-30, 30)));
    x[i] = y[i] * static_cast<float>(random.Int(-300, 300));
    const int64_t kind = random.Int(0, 3);
    if (kind == 0) x[i] = std::nextafter(x[i], random.Pick({-kInfinity, kInfinity}));
    if (kind == 1) x[i] = std::ldexp(random.Float(-2, 2), static_cast<int>(random.Int(-100, 100)));
    if (random.Chance(0.02)) x[i] = random.Pick({kInfinity, -0.0f, std::nanf(""), 1e-40f});
    if (random.Chance(0.02)) y[i] = random.Pick({kInfinity, -kInfinity, 0.0f, 1e-42f});
  }
  OpTester tester("FLOOR_MOD");
  tester.Input(TestTensor::Of<float>(kF32, {kCount}, x));
  tester.Input(TestTensor::Of<float>(kF32, {kCount}, y));
  ASSERT_TRUE(tester.Infer().ok());
  const auto expected = tester.Run("reference", Isa::kScalar);
  ASSERT_TRUE(expected.ok());
  for (const Isa isa : RunnableIsas()) {
    if (!isa.has_vectors()) continue;
    const auto actual = tester.Run("highway", isa);
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    for (int32_t i = 0; i < kCount; ++i) {
      const float e = (*expected)[0].at<float>(i), a = (*actual)[0].at<float>(i);
      const bool same =
          std::isnan(e) ? std::isnan(a) : e == a && std::signbit(e) == std::signbit(a);
      ASSERT_TRUE(same) << x[i] << " mod " << y[i] << ": " << a << ", expected " << e;
    }
  }
}

TEST(PowTest, FloatsAndIntegers) {
  const TestTensor f = TestTensor::Of<float>(kF32, {3}, {4, 2, -3});
  const TestTensor g = TestTensor::Of<float>(kF32, {3}, {0.5f, -1, 2});
  EXPECT_THAT(Values<float>("POW", {f, g}), ElementsAre(2, 0.5f, 9));
  const TestTensor x = TestTensor::Of<int32_t>(kI32, {3}, {3, -2, 0});
  const TestTensor y = TestTensor::Of<int32_t>(kI32, {3}, {4, 3, 0});
  EXPECT_THAT(Values<int32_t>("POW", {x, y}), ElementsAre(81, -8, 1));
  const TestTensor negative = TestTensor::Of<int32_t>(kI32, {1}, {-1});
  EXPECT_EQ(Compute("POW", {x, negative}).status().code(), StatusCode::kInvalidArgument);
}

// One exponent for all: integers to the bit, saturated ones too, floats to their last bits.
TEST(PowTest, HighwayIsLikeTheReference) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const bool real = random.Chance(0.6);
    const DataType type = real ? kF32 : kI32;
    TensorInfo info{.type = type, .shape = {3, static_cast<int32_t>(random.Int(1, 700))}};
    info.row_pitch = RandomPitch(random, info.shape.dim(-1));
    TestTensor x(info, 4 * random.Int(0, 3));
    x.Fill(random, -9, 9);
    OpTester tester("POW");
    tester.Input(x);
    if (real) {
      const float exponent = random.Pick({2.0f, 3.0f, 0.5f, -1.0f, 0.0f, -2.0f, 13.0f, 1.7f});
      x.at<float>(0) = random.Pick({0.0f, -0.0f, INFINITY, -INFINITY, NAN});
      tester.Input(TestTensor::Of<float>(type, {1, 1}, {exponent}));
    } else {
      const auto exponent = static_cast<int32_t>(random.Pick({0, 1, 2, 3, 9, 31, 68}));
      tester.Input(TestTensor::Of<int32_t>(type, {}, {exponent}));
    }
    ASSERT_TRUE(tester.Infer().ok());
    const auto expected = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(expected.ok());
    for (const Isa isa : RunnableIsas()) {
      const auto actual = tester.Run("highway", isa, seed);
      if (!actual.ok()) continue;  // below the vector levels
      if (!real) {
        ExpectSame<int32_t>((*expected)[0], (*actual)[0], "POW");
        continue;
      }
      for (int64_t i = 0; i < info.elements(); ++i) {
        const float a = (*expected)[0].at<float>(i), b = (*actual)[0].at<float>(i);
        if (std::isnan(a) || std::isinf(a)) {
          EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << a << " and " << b;
        } else {
          EXPECT_NEAR(a, b, 1e-6f * std::abs(a) + 1e-30f);
        }
      }
    }
  }
}

// Bases of all sizes, exponents that differ and broadcast, all that is not a number among them.
TEST(PowTest, HighwayTakesExponentsThatDiffer) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const auto width = static_cast<int32_t>(random.Int(1, random.Chance(0.5) ? 20 : 700));
    const int32_t rows = width < 20 ? 300 : 3;
    TestTensor x({.type = kF32, .shape = {rows, random.Chance(0.2) ? 1 : width}});
    TestTensor y({.type = kF32, .shape = {random.Chance(0.5) ? rows : 1, width}}, 4);
    const bool rare = random.Chance(0.5);
    for (int64_t i = 0; i < x.info().elements(); ++i) {
      x.at<float>(i) = std::ldexp(random.Float(0.5f, 1), static_cast<int>(random.Int(-148, 128)));
      if (rare && random.Chance(0.1)) {
        x.at<float>(i) = random.Pick({0.0f, -0.0f, INFINITY, -INFINITY, NAN, -2.0f, 1.0f});
      }
    }
    for (int64_t i = 0; i < y.info().elements(); ++i) {
      y.at<float>(i) = random.Float(-3, 3);
      if (rare && random.Chance(0.1)) {
        y.at<float>(i) = random.Pick({0.0f, 1e-40f, INFINITY, -INFINITY, NAN, 3.0f, -2.0f, -1e38f});
      }
    }
    OpTester tester("POW");
    tester.Input(x).Input(y);
    ASSERT_TRUE(tester.Infer().ok());
    const auto expected = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(expected.ok());
    for (const Isa isa : RunnableIsas()) {
      const auto actual = tester.Run("highway", isa, seed);
      if (!actual.ok()) continue;  // below the vector levels
      for (int64_t i = 0; i < tester.op.outputs[0].elements(); ++i) {
        const float a = (*expected)[0].at<float>(i), b = (*actual)[0].at<float>(i);
        if (std::isnan(a)) {
          EXPECT_TRUE(std::isnan(b)) << b;
        } else {
          EXPECT_FLOAT_EQ(a, b);
        }
      }
    }
  }
}

}  // namespace
}  // namespace fuselite::kernels::testing
