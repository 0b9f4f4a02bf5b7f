// Operators of float16, bfloat16 and complex64.
#include <cmath>
#include <complex>
#include <limits>

#include "kernels/elementwise/elementwise.h"
#include "kernels/numbers/short_floats.h"
#include "kernels/softmax/softmax.h"
#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {
namespace {

using ::testing::ElementsAre;

constexpr DataType kF16 = DataType::kFloat16, kBF16 = DataType::kBFloat16;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
using Complex = std::complex<float>;

template <class T>
TestTensor Short(DataType type, const std::vector<float>& values, Shape shape = {}) {
  std::vector<T> rounded;
  for (const float value : values) rounded.push_back(T(value));
  if (shape.rank() == 0) shape = {static_cast<int32_t>(values.size())};
  return TestTensor::Of<T>(type, shape, rounded);
}
TestTensor Halves(const std::vector<float>& values, Shape shape = {}) {
  return Short<Half>(kF16, values, shape);
}
TestTensor BFloats(const std::vector<float>& values, Shape shape = {}) {
  return Short<BFloat16>(kBF16, values, shape);
}

template <class T>
std::vector<T> RunReference(OpTester& tester) {
  const Status inferred = tester.Infer();
  EXPECT_TRUE(inferred.ok()) << inferred.ToString();
  if (!inferred.ok()) return {};
  const auto outputs = tester.Run("reference", Isa::kScalar, 3, 1);
  EXPECT_TRUE(outputs.ok()) << outputs.status().ToString();
  return outputs.ok() ? (*outputs)[0].template values<T>() : std::vector<T>();
}

template <class T>
std::vector<float> Binary(std::string_view name, const TestTensor& x, const TestTensor& y,
                          Activation activation = Activation::kNone) {
  OpTester tester(name);
  tester.Input(x).Input(y);
  if (activation != Activation::kNone) tester.params<ArithmeticParams>().activation = activation;
  const std::vector<T> result = RunReference<T>(tester);
  return {result.begin(), result.end()};
}

TEST(ShortFloatTest, SumsAndProductsAreRoundedThenClamped) {
  // Above 2048 halves are 2 apart; ties go to even.
  EXPECT_THAT(
      Binary<Half>("ADD", Halves({2048, 2050, 60000, -60000}), Halves({1, 1, 60000, -60000})),
      ElementsAre(2048, 2052, 65504, -65504));
  EXPECT_THAT(
      Binary<Half>("MUL", Halves({kInfinity, -kInfinity, 0x1p-20F}), Halves({1, 1, 0x1p-10F})),
      ElementsAre(65504, -65504, 0));
  EXPECT_THAT(Binary<Half>("MUL", Halves({-3, 2.5F, 9}), Halves({1}), Activation::kRelu6),
              ElementsAre(0, 2.5F, 6));
  EXPECT_THAT(Binary<Half>("ADD", Halves({1, 2}, {2, 1}), Halves({10, 20}, {1, 2})),
              ElementsAre(11, 21, 12, 22));
  EXPECT_TRUE(std::isnan(Binary<Half>("ADD", Halves({NAN}), Halves({1}))[0]));
}

TEST(ShortFloatTest, LargerAndSmaller) {
  EXPECT_THAT(Binary<Half>("MAXIMUM", Halves({1, -kInfinity}), Halves({2, -65504})),
              ElementsAre(2, -65504));
  EXPECT_THAT(Binary<BFloat16>("MAXIMUM", BFloats({-1, 3e38F}), BFloats({-2, 1})),
              ElementsAre(-1, static_cast<float>(BFloat16(3e38F))));
  EXPECT_THAT(Binary<BFloat16>("MINIMUM", BFloats({-1, 3}, {2, 1}), BFloats({1, -2}, {1, 2})),
              ElementsAre(-1, -2, 1, -2));
  EXPECT_EQ(Binary<Half>("MINIMUM", Halves({NAN}), Halves({1}))[0], 1);
}

TEST(ShortFloatTest, Comparisons) {
  const TestTensor x = Halves({0, NAN, 1, -2}), y = Halves({-0.0F, NAN, 2, -2});
  const auto run = [](std::string_view name, const TestTensor& a, const TestTensor& b) {
    OpTester tester(name);
    tester.Input(a).Input(b);
    return RunReference<uint8_t>(tester);
  };
  EXPECT_THAT(run("EQUAL", x, y), ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(run("NOT_EQUAL", x, y), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(run("LESS", x, y), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(run("GREATER_EQUAL", x, y), ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(run("GREATER", BFloats({1, -1}), BFloats({0, 1})), ElementsAre(1, 0));
  EXPECT_THAT(run("LESS_EQUAL", BFloats({1, 2}), BFloats({1, 1})), ElementsAre(1, 0));
}

// Every value of a type, except NaNs: within half a step of the function in double precision, and
// `slack` more.
template <class T>
void CheckUnary(std::string_view name, DataType type, double (*function)(double), double slack = 0,
                bool approximate = false) {
  SCOPED_TRACE(name);
  std::vector<T> values(65536);
  for (uint32_t i = 0; i < values.size(); ++i) values[i].bits = static_cast<uint16_t>(i);
  OpTester tester(name);
  tester.Input(TestTensor::Of<T>(type, {65536}, values));
  if (name == "GELU") tester.params<GeluParams>().approximate = approximate;
  const std::vector<T> result = RunReference<T>(tester);
  ASSERT_EQ(result.size(), values.size());
  const double step = type == kF16 ? 0x1p-11 : 0x1p-8, smallest = type == kF16 ? 0x1p-25 : 0x1p-134;
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = values[i], y = result[i], expected = function(x);
    if (std::isnan(expected) || std::isinf(expected)) {
      ASSERT_TRUE(std::isnan(y) || y == expected || name == "GELU") << x << " gives " << y;
      continue;
    }
    const double more = slack == 0 ? 0 : slack * std::abs(x);
    const double tolerance = 1.01 * step * std::abs(expected) + smallest + more;
    ASSERT_LE(std::abs(y - expected), tolerance) << x << " gives " << y << " not " << expected;
  }
}

double Logistic(double x) { return 1 / (1 + std::exp(-x)); }
double Negative(double x) { return -x; }
double Gelu(double x) { return 0.5 * x * std::erfc(-x * M_SQRT1_2); }

TEST(ShortFloatTest, FunctionsOfEveryValue) {
  CheckUnary<Half>("COS", kF16, std::cos);
  CheckUnary<Half>("SIN", kF16, std::sin);
  CheckUnary<Half>("TANH", kF16, std::tanh);
  CheckUnary<Half>("LOGISTIC", kF16, Logistic, 0x1p-20);  // below -9 its numerator is the 1
  CheckUnary<Half>("FLOOR", kF16, std::floor);
  CheckUnary<Half>("ROUND", kF16, std::nearbyint);
  CheckUnary<Half>("NEG", kF16, Negative);
  CheckUnary<BFloat16>("TANH", kBF16, std::tanh);
  CheckUnary<BFloat16>("LOGISTIC", kBF16, Logistic, 0x1p-20);
  CheckUnary<BFloat16>("FLOOR", kBF16, std::floor);
  CheckUnary<BFloat16>("ROUND", kBF16, std::nearbyint);
  CheckUnary<BFloat16>("NEG", kBF16, Negative);
  // Rounded after each operation.
  CheckUnary<Half>("GELU", kF16, Gelu, 0x1p-9, false);
  CheckUnary<Half>("GELU", kF16, Gelu, 0x1p-9, true);
}

TEST(ShortFloatTest, FunctionsThatTfliteLacksAreRefused) {
  for (const char* name : {"EXP", "SQRT", "RELU", "ABS"}) {
    OpTester tester(name);
    tester.Input(Halves({1}));
    EXPECT_FALSE(tester.Infer().ok()) << name;
  }
  OpTester sine("SIN");
  sine.Input(BFloats({1}));
  EXPECT_FALSE(sine.Infer().ok());
}

TEST(ShortFloatTest, SoftmaxOfRows) {
  OpTester tester("SOFTMAX");
  tester.params<SoftmaxParams>().beta = 2;
  tester.Input(Halves({5, 5, 5, 5, 0, 0, 0, static_cast<float>(std::log(3.0) / 2)}, {2, 4}));
  const std::vector<Half> result = RunReference<Half>(tester);
  const std::vector<double> expected = {0.25, 0.25, 0.25, 0.25, 1.0 / 6, 1.0 / 6, 1.0 / 6, 0.5};
  ASSERT_EQ(result.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(result[i], expected[i], expected[i] * 0x1p-9) << i;
  }
}

TEST(ShortFloatTest, RowsMayBePitched) {
  Random random(5);
  const TensorInfo info{.type = kF16, .shape = {3, 5}, .row_pitch = 8};
  TestTensor x(info, 2);
  for (int64_t i = 0; i < 15; ++i) x.at<Half>(i) = Half(random.Float(-4, 4));
  OpTester tester("MAXIMUM");
  tester.Input(x).Input(Halves({0.5F}));
  const std::vector<Half> result = RunReference<Half>(tester);
  ASSERT_EQ(result.size(), 15);
  for (int64_t i = 0; i < 15; ++i) {
    EXPECT_EQ(static_cast<float>(result[i]), std::max<float>(x.at<Half>(i), 0.5F)) << i;
  }
}

TEST(ComplexTest, Products) {
  constexpr DataType kType = DataType::kComplex64;
  const TestTensor x = TestTensor::Of<Complex>(kType, {2, 1}, {{1, 2}, {0, -1}});
  const TestTensor y = TestTensor::Of<Complex>(kType, {2}, {{3, -4}, {2, 0}});
  OpTester tester("MUL");
  tester.Input(x).Input(y);
  EXPECT_THAT(RunReference<Complex>(tester),
              ElementsAre(Complex(11, 2), Complex(2, 4), Complex(-4, -3), Complex(0, -2)));
  OpTester clamped("MUL");
  clamped.params<ArithmeticParams>().activation = Activation::kRelu;
  clamped.Input(x).Input(y);
  EXPECT_EQ(clamped.Infer().code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace fuselite::kernels::testing
