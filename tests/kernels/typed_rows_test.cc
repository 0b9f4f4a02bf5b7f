// Integer arithmetic, extremes, logic, comparisons and selections with vectors: the bytes of the
// reference at every level, over shapes that broadcast.
#include "kernels/elementwise/typed/typed_rows.h"

#include <limits>

#include "kernels/elementwise/elementwise.h"
#include "tests/kernels/beside_reference.h"
#include "tests/kernels/broadcast_cases.h"

namespace fuselite::kernels::testing {
namespace {

constexpr DataType kBool = DataType::kBool, kF32 = DataType::kFloat32, kI8 = DataType::kInt8,
                   kU8 = DataType::kUInt8, kI16 = DataType::kInt16, kI32 = DataType::kInt32,
                   kI64 = DataType::kInt64;

struct TypedCase {
  const char* op;
  std::vector<DataType> types;
};

TestTensor RandomOperand(Random& random, DataType type, const Shape& shape) {
  const int32_t row = shape.rank() == 0 ? 1 : shape.dim(-1);
  TensorInfo info{.type = type, .shape = shape, .row_pitch = RandomPitch(random, row)};
  TestTensor tensor(info, random.Int(0, 3) * (BitWidth(type) / 8));
  // Few values, so that there are equal ones.
  const bool few = random.Chance(0.5);
  const bool is_unsigned = type == kU8 || type == DataType::kUInt16 || type == DataType::kUInt32 ||
                           type == DataType::kUInt64;
  tensor.Fill(random, is_unsigned ? 0 : few ? -2 : -120, few ? 2 : is_unsigned ? 255 : 120);
  return tensor;
}

TEST(TypedRowsTest, FunctionsOfTwoMatchTheReference) {
  const TypedCase cases[] = {
      {"ADD", {kI32, kI64}},
      {"SUB", {kI32, kI64}},
      {"MUL", {kI32, kI64}},
      {"SQUARED_DIFFERENCE", {kI32}},
      {"MAXIMUM", {kI8, kU8, kI16, kI32, kI64}},
      {"MINIMUM", {kI8, kU8, kI16, kI32, kI64}},
      {"LOGICAL_AND", {kBool}},
      {"LOGICAL_OR", {kBool}},
      {"EQUAL", {kF32, kI16, kI32, kI64, kBool}},
      {"NOT_EQUAL", {kF32, kI32, kI64, kBool}},
      {"LESS", {kF32, kI16, kI32, kI64}},
      {"LESS_EQUAL", {kF32, kI16, kI32, kI64}},
      {"GREATER", {kF32, kI16, kI32, kI64}},
      {"GREATER_EQUAL", {kF32, kI16, kI32, kI64}},
  };
  for (const TypedCase& c : cases) {
    for (const DataType type : c.types) {
      for (int seed = 1; seed <= 25; ++seed) {
        Random random(seed);
        SCOPED_TRACE(::testing::Message() << c.op << " " << DataTypeName(type));
        SCOPED_TRACE(random.Trace());
        const ShapePair shapes = RandomShapes(random);
        OpTester tester(c.op);
        tester.Input(RandomOperand(random, type, shapes.x));
        tester.Input(RandomOperand(random, type, shapes.y));
        const Status inferred = tester.Infer();
        ASSERT_TRUE(inferred.ok()) << inferred.ToString();
        PitchOutput(tester, random);
        ExpectLikeReference(tester, random);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(TypedRowsTest, FunctionsOfOneShapeMatchTheReference) {
  constexpr DataType kTypes[] = {kBool,
                                 kI8,
                                 kU8,
                                 kI16,
                                 DataType::kUInt16,
                                 kI32,
                                 DataType::kUInt32,
                                 kI64,
                                 DataType::kUInt64,
                                 kF32,
                                 DataType::kFloat64};
  for (const char* op : {"STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM",
                         "STABLEHLO_MINIMUM", "STABLEHLO_AND", "STABLEHLO_SHIFT_LEFT"}) {
    const bool shifts = op == std::string_view("STABLEHLO_SHIFT_LEFT");
    for (const DataType type : kTypes) {
      if (shifts && type != kI8 && type != kI16 && type != kI32) continue;
      const bool floats = type == kF32 || type == DataType::kFloat64;
      if (floats && op == std::string_view("STABLEHLO_AND")) continue;
      for (int seed = 1; seed <= 12; ++seed) {
        Random random(seed);
        SCOPED_TRACE(::testing::Message() << op << " " << DataTypeName(type));
        SCOPED_TRACE(random.Trace());
        const Shape shape = RandomShapes(random).out;
        OpTester tester(op);
        tester.Input(RandomOperand(random, type, shape)).Input(RandomOperand(random, type, shape));
        ASSERT_TRUE(tester.Infer().ok());
        PitchOutput(tester, random);
        ExpectLikeReference(tester, random);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(TypedRowsTest, FunctionsOfOneMatchTheReference) {
  for (const auto& [op, types] :
       {TypedCase{"NEG", {kI32, kI64}}, TypedCase{"ABS", {kI32}}, TypedCase{"SIGN", {kI32}}}) {
    for (const DataType type : types) {
      for (int seed = 1; seed <= 25; ++seed) {
        Random random(seed);
        SCOPED_TRACE(::testing::Message() << op << " " << DataTypeName(type));
        SCOPED_TRACE(random.Trace());
        OpTester tester(op);
        tester.Input(RandomOperand(random, type, RandomShapes(random).x));
        ASSERT_TRUE(tester.Infer().ok());
        PitchOutput(tester, random);
        ExpectLikeReference(tester, random);
      }
    }
  }
}

TEST(TypedRowsTest, ExtremesOfTheTypesWrapAround) {
  constexpr int32_t kMin = std::numeric_limits<int32_t>::min();
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  std::vector<int32_t> x, y;
  for (const int32_t a : {kMin, kMin + 1, -1, 0, 1, kMax}) {
    for (const int32_t b : {kMin, -3, -1, 0, 1, 46341, kMax}) {
      x.push_back(a);
      y.push_back(b);
    }
  }
  const Shape shape = {static_cast<int32_t>(x.size())};
  for (const char* op : {"ADD", "SUB", "MUL", "SQUARED_DIFFERENCE", "LESS", "GREATER_EQUAL",
                         "STABLEHLO_ADD", "STABLEHLO_MULTIPLY"}) {
    SCOPED_TRACE(op);
    Random random(1);
    OpTester tester(op);
    tester.Input(TestTensor::Of<int32_t>(kI32, shape, x));
    tester.Input(TestTensor::Of<int32_t>(kI32, shape, y));
    ASSERT_TRUE(tester.Infer().ok());
    ExpectLikeReference(tester, random);
  }
}

// Each of a NaN, the infinities, zeros and a number beside each of them.
template <class T>
void ExpectLikeReferenceOnSpecialValues(const char* op, DataType type) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  constexpr T kValues[] = {
      std::numeric_limits<T>::quiet_NaN(), -kInfinity, T{-0.0}, T{0}, T{1}, kInfinity};
  std::vector<T> x, y;
  for (const T a : kValues) {
    for (const T b : kValues) {
      x.push_back(a);
      y.push_back(b);
    }
  }
  SCOPED_TRACE(::testing::Message() << op << " " << DataTypeName(type));
  Random random(1);
  const Shape shape = {static_cast<int32_t>(x.size())};
  OpTester tester(op);
  tester.Input(TestTensor::Of<T>(type, shape, x)).Input(TestTensor::Of<T>(type, shape, y));
  ASSERT_TRUE(tester.Infer().ok());
  ExpectLikeReference(tester, random);
}

TEST(TypedRowsTest, NanIsUnequalAndInNoOrder) {
  for (const char* op : {"EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL",
                         "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM"}) {
    ExpectLikeReferenceOnSpecialValues<float>(op, kF32);
  }
  for (const char* op : {"STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM"}) {
    ExpectLikeReferenceOnSpecialValues<double>(op, DataType::kFloat64);
  }
}

TEST(TypedRowsTest, SelectionsMatchTheReference) {
  for (const DataType type : {kI8, kI16, kF32, kI64}) {
    for (int seed = 1; seed <= 60; ++seed) {
      Random random(seed);
      SCOPED_TRACE(::testing::Message() << DataTypeName(type));
      SCOPED_TRACE(random.Trace());
      const ShapePair shapes = RandomShapes(random);
      const bool whole = random.Chance(0.5);
      OpTester tester("SELECT_V2");
      tester.Input(RandomOperand(random, kBool, whole ? shapes.out : shapes.x));
      tester.Input(RandomOperand(random, type, shapes.y));
      tester.Input(RandomOperand(random, type, random.Chance(0.5) ? shapes.out : shapes.x));
      const Status inferred = tester.Infer();
      ASSERT_TRUE(inferred.ok()) << inferred.ToString();
      PitchOutput(tester, random);
      ExpectLikeReference(tester, random);
      if (HasFailure()) return;
    }
  }
}

// Rows below a vector and around the limit of joining, more of them than are joined at once, with
// operands that repeat from row to row, along each row, or both.
TEST(TypedRowsTest, SelectionsOfShortRowsMatchTheReference) {
  for (int seed = 1; seed <= 120; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const DataType type = random.Pick({kI8, kI16, kF32, kI64});
    const auto outer = static_cast<int32_t>(random.Int(1, 3));
    const auto rows = static_cast<int32_t>(random.Pick({1, 7, 300, 2100}));
    const auto n = static_cast<int32_t>(random.Pick({2, 3, 5, 15, 16, 17, 31, 33, 130}));
    const auto shape = [&] {
      return random.Pick<Shape>(
          {{outer, rows, n}, {1, 1, n}, {outer, rows, 1}, {n}, {1}, {outer, 1, n}, {1, rows, 1}});
    };
    OpTester tester("SELECT_V2");
    tester.Input(
        RandomOperand(random, kBool, random.Chance(0.5) ? Shape{outer, rows, n} : shape()));
    tester.Input(RandomOperand(random, type, Shape{outer, rows, n}));
    tester.Input(RandomOperand(random, type, shape()));
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    PitchOutput(tester, random);
    ExpectLikeReference(tester, random);
    if (HasFailure()) return;
  }
}

// Their bits, as wide as integers', are no integers.
TEST(TypedRowsTest, ProductsOfOtherFloatsHaveNoVectors) {
  const std::pair<const char*, DataType> cases[] = {{"MUL", DataType::kFloat16},
                                                    {"MUL", DataType::kComplex64}};
  for (const auto& [name, type] : cases) {
    SCOPED_TRACE(DataTypeName(type));
    OpTester tester(name);
    const TensorInfo info{.type = type, .shape = {8}};
    tester.Input(TestTensor(info)).Input(TestTensor(info));
    ASSERT_TRUE(tester.Infer().ok());
    for (const Isa isa : RunnableIsas()) {
      const OpDescription& op = tester.op;
      EXPECT_FALSE(BuildTypedRows(TypedFunction::kMul, op, {{.isa = isa}}).ok());
    }
  }
}

TEST(TypedRowsTest, ActivationsOfIntegersAreRefused) {
  Random random(1);
  OpTester tester("ADD");
  tester.params<ArithmeticParams>().activation = Activation::kRelu;
  tester.Input(RandomOperand(random, kI32, {8})).Input(RandomOperand(random, kI32, {8}));
  ASSERT_TRUE(tester.Infer().ok());
  for (const Isa isa : RunnableIsas()) {
    EXPECT_EQ(tester.Run("highway", isa).status().code(), StatusCode::kUnsupported);
  }
}

}  // namespace
}  // namespace fuselite::kernels::testing
