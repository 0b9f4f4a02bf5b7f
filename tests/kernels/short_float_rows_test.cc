// Vectors of float16 and bfloat16 against the reference, at every level of instructions.
#include "kernels/elementwise/short_floats/short_float_rows.h"

#include <cmath>
#include <functional>

#include "kernels/elementwise/elementwise.h"
#include "kernels/numbers/short_floats.h"
#include "kernels/softmax/softmax.h"
#include "tests/kernels/broadcast_cases.h"

namespace fuselite::kernels::testing {
namespace {

constexpr DataType kF16 = DataType::kFloat16, kBF16 = DataType::kBFloat16;

// NaNs are alike, and with `any_zero` both zeros.
template <class T>
void ExpectSameNumbers(const TestTensor& expected, const TestTensor& actual, bool any_zero) {
  const std::vector<T> want = expected.values<T>(), have = actual.values<T>();
  ASSERT_EQ(want.size(), have.size());
  for (size_t i = 0; i < want.size(); ++i) {
    const bool alike = (std::isnan(want[i]) && std::isnan(have[i])) ||
                       (any_zero && want[i] == 0 && have[i] == 0) || want[i].bits == have[i].bits;
    ASSERT_TRUE(alike) << "element " << i << " is " << have[i] << ", expected " << want[i];
  }
}

template <class T>
void ExpectLikeReference(const OpTester& tester, Random& random, bool any_zero) {
  const auto expected = tester.Run("reference", Isa::kScalar);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  for (const Isa isa : RunnableIsas()) {
    if (!isa.has_vectors()) continue;
    SCOPED_TRACE(IsaName(isa));
    const auto actual = tester.Run("highway", isa, random.Int(1, 1000), random.Int(0, 3));
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    ExpectSameNumbers<T>((*expected)[0], (*actual)[0], any_zero);
  }
}

template <class T>
void CompareFunction(
    const char* name, DataType type,
    const std::function<void(OpTester&)>& set_params = [](OpTester&) {}) {
  SCOPED_TRACE(::testing::Message() << name << " " << DataTypeName(type));
  // Every value, and then some, so that vectors do not fill the last block.
  std::vector<T> values(65536 + 13);
  for (uint32_t i = 0; i < values.size(); ++i) values[i].bits = static_cast<uint16_t>(i);
  OpTester tester(name);
  set_params(tester);
  tester.Input(TestTensor::Of<T>(type, {static_cast<int32_t>(values.size())}, values));
  ASSERT_TRUE(tester.Infer().ok());
  Random random(1);
  ExpectLikeReference<T>(tester, random, true);
}

TEST(ShortFloatRowsTest, FunctionsOfEveryValue) {
  for (const char* name : {"COS", "FLOOR", "LOGISTIC", "ROUND", "SIN", "TANH"}) {
    CompareFunction<Half>(name, kF16);
  }
  for (const char* name : {"FLOOR", "LOGISTIC", "ROUND", "TANH"}) {
    CompareFunction<BFloat16>(name, kBF16);
  }
}

TEST(ShortFloatRowsTest, GeluOfEveryValue) {
  for (const bool approximate : {false, true}) {
    SCOPED_TRACE(approximate ? "by tanh" : "by erfc");
    CompareFunction<Half>("GELU", kF16, [&](OpTester& tester) {
      tester.params<GeluParams>().approximate = approximate;
    });
  }
}

// Where the number stands among those of its type.
template <class T>
int Place(T value) {
  return value.bits & 0x8000 ? -(value.bits & 0x7FFF) : value.bits;
}

// Rows around the lengths of vectors, with infinities and NaNs in some.
TEST(ShortFloatRowsTest, SoftmaxIsBesideTheReference) {
  for (int seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    TensorInfo info{.type = kF16,
                    .shape = {static_cast<int32_t>(random.Int(1, 5)),
                              static_cast<int32_t>(random.Int(1, random.Chance(0.2) ? 700 : 70))}};
    info.row_pitch = RandomPitch(random, info.shape.dim(-1));
    TestTensor x(info, 2 * random.Int(0, 3));
    const float most = random.Pick({0.1F, 3.0F, 30.0F, 60000.0F});
    const bool has_special = random.Chance(0.3);
    for (int64_t i = 0; i < info.elements(); ++i) {
      x.at<Half>(i) = Half(random.Float(-most, most));
      if (has_special && random.Chance(0.05))
        x.at<Half>(i) = Half(random.Pick({NAN, INFINITY, -INFINITY}));
    }
    if (has_special) x.at<Half>(0) = Half(-INFINITY);
    OpTester tester("SOFTMAX");
    tester.params<SoftmaxParams>().beta = random.Pick({1.0F, 0.3F, 0.0F});
    tester.Input(x);
    ASSERT_TRUE(tester.Infer().ok());
    PitchOutput(tester, random);
    const auto expected = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    const std::vector<Half> want = (*expected)[0].values<Half>();
    for (const Isa isa : RunnableIsas()) {
      if (!isa.has_vectors()) continue;
      SCOPED_TRACE(IsaName(isa));
      const auto actual = tester.Run("highway", isa, seed, random.Int(0, 3));
      ASSERT_TRUE(actual.ok()) << actual.status().ToString();
      const std::vector<Half> have = (*actual)[0].values<Half>();
      for (size_t i = 0; i < want.size(); ++i) {
        if (std::isnan(want[i])) {
          ASSERT_TRUE(std::isnan(have[i])) << i;
          continue;
        }
        // An exponential beside the middle of two may be rounded to the other one.
        ASSERT_LE(std::abs(Place(have[i]) - Place(want[i])), 2)
            << "element " << i << " is " << have[i] << ", expected " << want[i];
      }
    }
  }
}

// Any bits, or values near one, whose sums and quotients meet the middles between two results.
TestTensor RandomOperand(Random& random, DataType type, const Shape& shape) {
  const int32_t row = shape.rank() == 0 ? 1 : shape.dim(-1);
  TensorInfo info{.type = type, .shape = shape, .row_pitch = RandomPitch(random, row)};
  TestTensor tensor(info, 2 * random.Int(0, 3));
  const bool any = random.Chance(0.3);
  const int one = type == kF16 ? 0x3C00 : 0x3F80;
  for (int64_t i = 0; i < shape.elements(); ++i) {
    const int64_t bits = any ? random.Int(0, 0xFFFF) : one + random.Int(-600, 600);
    tensor.at<uint16_t>(i) = static_cast<uint16_t>(bits | (random.Chance(0.5) ? 0x8000 : 0));
  }
  return tensor;
}

// Bits of truth values.
void ExpectTruthOfReference(const OpTester& tester, Random& random) {
  const auto expected = tester.Run("reference", Isa::kScalar);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  for (const Isa isa : RunnableIsas()) {
    if (!isa.has_vectors()) continue;
    const auto actual = tester.Run("highway", isa, random.Int(1, 1000), random.Int(0, 3));
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    ExpectSame<uint8_t>((*expected)[0], (*actual)[0], IsaName(isa));
  }
}

TEST(ShortFloatRowsTest, ComparisonsMatchTheReference) {
  for (const char* name :
       {"EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"}) {
    for (const DataType type : {kF16, kBF16}) {
      SCOPED_TRACE(::testing::Message() << name << " " << DataTypeName(type));
      for (int seed = 1; seed <= 20; ++seed) {
        Random random(seed);
        SCOPED_TRACE(random.Trace());
        const ShapePair shapes = RandomShapes(random);
        TestTensor x = RandomOperand(random, type, shapes.x);
        // Some equal values, zeros of both signs among them.
        for (int64_t i = 0; i < shapes.x.elements(); i += 3) x.at<uint16_t>(i) = 0x8000 * (i % 2);
        TestTensor y = RandomOperand(random, type, shapes.y);
        for (int64_t i = 0; i < shapes.y.elements(); i += 4) y.at<uint16_t>(i) = 0;
        OpTester tester(name);
        tester.Input(x).Input(y);
        ASSERT_TRUE(tester.Infer().ok());
        PitchOutput(tester, random);
        ExpectTruthOfReference(tester, random);
        if (HasFailure()) return;
      }
    }
  }
}

template <class T>
void CompareFunctionOfTwo(const char* name, DataType type, bool broadcasts) {
  SCOPED_TRACE(::testing::Message() << name << " " << DataTypeName(type));
  for (int seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    ShapePair shapes = RandomShapes(random);
    if (!broadcasts) shapes.x = shapes.y = shapes.out;
    OpTester tester(name);
    tester.Input(RandomOperand(random, type, shapes.x));
    tester.Input(RandomOperand(random, type, shapes.y));
    const auto kind = BinaryKindOf(*tester.op.op);
    if (kind && HasActivation(*kind)) {
      tester.params<ArithmeticParams>().activation =
          random.Pick({Activation::kNone, Activation::kRelu6, Activation::kReluN1To1});
    }
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    PitchOutput(tester, random);
    ExpectLikeReference<T>(tester, random, false);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(ShortFloatRowsTest, FunctionsOfTwoMatchTheReference) {
  for (const char* name :
       {"ADD", "SUB", "MUL", "DIV", "SQUARED_DIFFERENCE", "MAXIMUM", "MINIMUM"}) {
    CompareFunctionOfTwo<Half>(name, kF16, true);
    CompareFunctionOfTwo<BFloat16>(name, kBF16, true);
  }
  for (const char* name :
       {"STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM"}) {
    CompareFunctionOfTwo<Half>(name, kF16, false);
  }
}

}  // namespace
}  // namespace fuselite::kernels::testing
