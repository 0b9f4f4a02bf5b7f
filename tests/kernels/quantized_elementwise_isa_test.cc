// Elementwise operators of quantized values on every instruction set: the bits of the reference.
#include <algorithm>
#include <cmath>
#include <span>

#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/tables/lookup_table.h"
#include "kernels/tail/float_scale.h"
#include "tests/kernels/beside_reference.h"
#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {
namespace {

struct Shapes {
  Shape x, y;
};

// Scales over decades, so that the shifts behind the multipliers go from left to far right.
TestTensor RandomTensor(Random& random, DataType type, const Shape& shape) {
  const bool wide = type == DataType::kInt16;
  const int32_t low = wide ? -32768 : type == DataType::kInt8 ? -128 : 0;
  const int32_t high = wide ? 32767 : type == DataType::kInt8 ? 127 : 255;
  const int32_t zero_point = wide ? 0 : static_cast<int32_t>(random.Int(low, high));
  TestTensor tensor({.type = type,
                     .shape = shape,
                     .quantization = {{std::pow(10.0f, random.Float(-4, 1))}, {zero_point}},
                     .row_pitch = RandomPitch(random, shape.dim(-1))},
                    random.Int(0, 3) * (wide ? 2 : 1));
  tensor.Fill(random, low, high);
  return tensor;
}

class QuantizedElementwiseIsaTest : public ::testing::TestWithParam<Isa> {};

TEST_P(QuantizedElementwiseIsaTest, VectorsHaveTheBitsOfTheReference) {
  const Shapes kShapes[] = {{{3, 67}, {3, 67}},
                            {{2, 3, 4, 33}, {2, 1, 1, 33}},
                            {{2, 1, 1, 33}, {2, 5, 33}},
                            {{4, 1, 7}, {1, 5, 7}},
                            {{131}, {1}},
                            {{1}, {16}},
                            {{2, 50, 70, 3}, {3}},
                            {{24}, {90, 24}},
                            {{611, 16}, {611, 16}},
                            {{3, 37, 1}, {37, 17}},
                            {{1, 300, 30}, {1, 300, 1}},
                            {{70, 1}, {70, 96}},
                            {{70, 1}, {1, 5}},
                            {{3, 290}, {290}},
                            {{2, 70, 290}, {290}},
                            {{3, 40, 300}, {3, 1, 300}},
                            {{5, 1030}, {5, 1}},
                            {{9000}, {1}}};
  int computed = 0;
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester(random.Pick({"ADD", "SUB", "MUL", "PRELU", "SQUARED_DIFFERENCE"}));
    const Shapes& shapes = kShapes[random.Int(0, std::ssize(kShapes) - 1)];
    DataType type = DataType::kInt8;
    if (HasActivation(*BinaryKindOf(*tester.op.op))) {
      type = random.Pick({DataType::kInt8, DataType::kUInt8, DataType::kInt16});
      tester.params<ArithmeticParams>().activation =
          random.Pick({Activation::kNone, Activation::kRelu, Activation::kRelu6});
    }
    tester.Input(RandomTensor(random, type, shapes.x));
    tester.Input(RandomTensor(random, type, shapes.y));
    tester.Output(type, RandomTensor(random, type, {1}).info().quantization);
    if (!tester.Infer().ok()) continue;  // scales that TFLite refuses; counted below
    PitchOutput(tester, random);
    const auto both = RunHighway(tester, GetParam(), seed, random.Int(0, 3));
    if (!both) continue;
    ++computed;
    if (type == DataType::kInt16) {
      ExpectSame<int16_t>(both->expected, both->actual, tester.op.op->name);
    } else {
      ExpectSame<int8_t>(both->expected, both->actual, tester.op.op->name);
    }
  }
  if (GetParam().has_vectors()) {
    EXPECT_GT(computed, 350);
  }
}

// Divisors on one side of their zero point, and now and then on it, which fails both.
TEST_P(QuantizedElementwiseIsaTest, QuotientsHaveTheBitsOfTheReference) {
  const Shapes kShapes[] = {{{3, 67}, {3, 67}},  {{2, 1, 1, 33}, {2, 5, 33}}, {{131}, {1}},
                            {{1}, {16}},         {{2, 50, 70, 3}, {3}},       {{5, 1030}, {5, 1}},
                            {{70, 1}, {70, 96}}, {{4, 1, 7}, {1, 5, 7}},      {{40, 700}, {40, 1}},
                            {{3, 290}, {290}},   {{2, 9, 300}, {2, 1, 300}}};
  if (!GetParam().has_vectors()) return;
  int divided = 0, refused = 0;
  for (uint64_t seed = 1; seed <= 800; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const DataType type = random.Pick({DataType::kInt8, DataType::kUInt8});
    const Shapes& shapes = kShapes[random.Int(0, std::ssize(kShapes) - 1)];
    TestTensor divisor = RandomTensor(random, type, shapes.y);
    const int32_t zero = divisor.info().quantization.zero_point();
    const int32_t low = type == DataType::kInt8 ? -128 : 0, high = low + 255;
    const int least_gap = seed % 4 != 0;
    zero - low < 128 ? divisor.Fill(random, zero + least_gap, high)
                     : divisor.Fill(random, low, zero - least_gap);
    OpTester tester("DIV");
    tester.Input(RandomTensor(random, type, shapes.x)).Input(divisor);
    tester.Output(type, RandomTensor(random, type, {1}).info().quantization);
    if (!tester.Infer().ok()) continue;
    PitchOutput(tester, random);
    const auto expected = tester.Run("reference", Isa::kScalar);
    const auto actual = tester.Run("highway", GetParam(), seed, random.Int(0, 3));
    ASSERT_EQ(expected.status().ToString(), actual.status().ToString());
    expected.ok() ? ++divided : ++refused;
    if (expected.ok()) ExpectSame<int8_t>((*expected)[0], (*actual)[0], "DIV");
  }
  EXPECT_GT(divided, 250);
  EXPECT_GT(refused, 5);
}

TEST_P(QuantizedElementwiseIsaTest, ComparisonsHaveTheBitsOfTheReference) {
  const Shapes kShapes[] = {{{3, 67}, {3, 67}},  {{2, 50, 70, 3}, {3}}, {{131}, {1}},
                            {{70, 1}, {70, 96}}, {{5, 33}, {5, 1}},     {{1, 7}, {4, 1, 7}}};
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester(
        random.Pick({"EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"}));
    const bool equality = tester.op.op->name.ends_with("EQUAL") &&
                          !tester.op.op->name.starts_with("LESS") &&
                          !tester.op.op->name.starts_with("GREATER");
    const DataType type = equality ? random.Pick({DataType::kInt8, DataType::kInt16})
                                   : random.Pick({DataType::kInt8, DataType::kUInt8});
    const Shapes& shapes = kShapes[random.Int(0, std::ssize(kShapes) - 1)];
    tester.Input(RandomTensor(random, type, shapes.x));
    tester.Input(RandomTensor(random, type, shapes.y));
    ASSERT_TRUE(tester.Infer().ok());
    const auto expected = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(expected.ok());
    const auto actual = tester.Run("highway", GetParam(), seed, random.Int(0, 3));
    const bool vectors = GetParam().has_vectors();
    ASSERT_EQ(actual.ok(), vectors) << actual.status().ToString();
    if (vectors) ExpectSame<uint8_t>((*expected)[0], (*actual)[0], tester.op.op->name);
  }
}

// The scales of real layers: the sum of the ranges of its operands is about the output's.
TEST_P(QuantizedElementwiseIsaTest, UsualScalesAreRoundedOnce) {
  if (!GetParam().has_vectors()) return;
  int rounded = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const auto tensor = [&](float scale) {
      return TestTensor({.type = DataType::kInt8,
                         .shape = {1},
                         .quantization = {{scale}, {static_cast<int32_t>(random.Int(-128, 127))}}});
    };
    const float x = random.Float(0.01f, 0.1f), y = x * std::pow(2.0f, random.Float(-2, 2));
    OpTester tester(random.Pick({"ADD", "SUB", "MUL", "SQUARED_DIFFERENCE"}));
    const float range = tester.op.op->name == "MUL" ? 128 * x * y
                        : tester.op.op->name == "SQUARED_DIFFERENCE"
                            ? 128 * std::max(x, y) * std::max(x, y)
                            : std::max(x, y);
    tester.Input(tensor(x)).Input(tensor(y));
    tester.Output(DataType::kInt8, tensor(range * random.Float(1, 1.8f)).info().quantization);
    ASSERT_TRUE(tester.Infer().ok());
    const auto store = NewPackedStore();
    const auto kernel =
        tester.op.op->candidates[0].Build(tester.op, {{.isa = GetParam()}, store.get()});
    ASSERT_TRUE(kernel.ok());
    rounded += (*kernel)->name().find("rounded") != std::string_view::npos;
  }
  EXPECT_GE(rounded, FusesMultiplyAdd(GetParam()) ? 60 : 55);
}

// Scales for which no floats round all 65,536 sums: one, two and ten are corrected. Operands that
// repeat in a row, and such that are as long as the rows.
TEST_P(QuantizedElementwiseIsaTest, SumsThatFloatsMissAreCorrected) {
  if (!GetParam().has_vectors()) return;
  struct Case {
    const char* name;
    DataType type;
    float x, y, out;
  };
  const Case kCases[] = {
      {"SUB", DataType::kInt8, 0.05156509578227997f, 0.04140372574329376f, 0.10828670114278793f},
      {"SUB", DataType::kUInt8, 0.060917142778635025f, 0.04631495103240013f, 0.12792600691318512f},
      {"ADD", DataType::kInt8, 0.06383153051137924f, 0.04268733784556389f, 0.13404621183872223f}};
  std::vector<uint8_t> rows(65536), columns(65536);
  for (int i = 0; i < 65536; ++i) {
    rows[i] = static_cast<uint8_t>(i / 256);
    columns[i] = static_cast<uint8_t>(i);
  }
  const auto all = std::span(columns).first(256);
  for (const Case& c : kCases) {
    const int32_t zero = c.type == DataType::kInt8 ? 3 : 120;
    const auto expect_same = [&](const Shape& x_shape, std::span<const uint8_t> x,
                                 const Shape& y_shape, std::span<const uint8_t> y) {
      OpTester tester(c.name);
      tester.Input(TestTensor::Of<uint8_t>(c.type, x_shape, {x.begin(), x.end()}, {{c.x}, {zero}}));
      tester.Input(TestTensor::Of<uint8_t>(c.type, y_shape, {y.begin(), y.end()}, {{c.y}, {zero}}));
      tester.Output(c.type, {{c.out}, {zero}});
      ASSERT_TRUE(tester.Infer().ok());
      const auto both = RunHighway(tester, GetParam(), 1, 0);
      ASSERT_TRUE(both);
      ExpectSame<uint8_t>(both->expected, both->actual, c.name);
    };
    expect_same({65536}, rows, {65536}, columns);
    expect_same({256, 1}, all, {1, 256}, all);
    expect_same({1, 256}, all, {256, 1}, all);
  }
}

// All 65,536 values and some more, so that the last vector is not full.
TEST_P(QuantizedElementwiseIsaTest, InterpolationHasTheBitsOfTheReference) {
  if (!GetParam().has_vectors()) return;
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester(random.Pick({"EXP", "GELU", "LOG", "RSQRT"}));
    const bool positive = tester.op.op->name == "RSQRT";
    std::vector<int16_t> values(65536 + random.Int(1, 40));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<int16_t>(positive ? i & 0x7fff : i);
    }
    tester.Input(TestTensor::Of<int16_t>(DataType::kInt16, {static_cast<int32_t>(values.size())},
                                         values, {{random.Float(1e-4f, 1e-2f)}, {0}}));
    tester.Output(DataType::kInt16, {{random.Float(1e-5f, 1e-2f)}, {0}});
    ASSERT_TRUE(tester.Infer().ok());
    const auto expected = tester.Run("reference", Isa::kScalar);
    const auto actual = tester.Run("highway", GetParam(), seed, random.Int(0, 3));
    ASSERT_TRUE(expected.ok() && actual.ok()) << actual.status().ToString();
    ExpectSame<int16_t>((*expected)[0], (*actual)[0], tester.op.op->name);
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, QuantizedElementwiseIsaTest, ::testing::ValuesIn(RunnableIsas()),
                         [](const auto& info) { return std::string(IsaName(info.param)); });

}  // namespace
}  // namespace fuselite::kernels::testing
