#include "kernels/elementwise/elementwise.h"

#include <cmath>
#include <limits>

#include "kernels/elementwise/as_tail.h"
#include "kernels/tail/apply.h"
#include "tests/kernels/broadcast_cases.h"

namespace fuselite::kernels::testing {
namespace {

using ::testing::ElementsAre;

constexpr DataType kF32 = DataType::kFloat32;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class T>
TestTensor Values(DataType type, Shape shape, const std::vector<T>& values) {
  return TestTensor::Of<T>(type, shape, values);
}

template <class T>
std::vector<T> RunReference(OpTester& tester) {
  const Status inferred = tester.Infer();
  EXPECT_TRUE(inferred.ok()) << inferred.ToString();
  if (!inferred.ok()) return {};
  Result<std::vector<TestTensor>> outputs = tester.Run("reference", Isa::kScalar);
  EXPECT_TRUE(outputs.ok()) << outputs.status().ToString();
  return outputs.ok() ? (*outputs)[0].values<T>() : std::vector<T>{};
}

OpTester Binary(std::string_view name, TestTensor x, TestTensor y) {
  OpTester tester(name);
  tester.Input(std::move(x)).Input(std::move(y));
  return tester;
}

TEST(BinaryTest, AddClamps) {
  OpTester tester =
      Binary("ADD", Values<float>(kF32, {4}, {-3, 1, 5, 9}), Values<float>(kF32, {1}, {1}));
  tester.params<ArithmeticParams>().activation = Activation::kRelu6;
  EXPECT_THAT(RunReference<float>(tester), ElementsAre(0, 2, 6, 6));
}

TEST(BinaryTest, DivisionByZeroGivesTheLargestFloat) {
  OpTester tester =
      Binary("DIV", Values<float>(kF32, {2}, {1, -1}), Values<float>(kF32, {2}, {0, 0}));
  constexpr float kMax = std::numeric_limits<float>::max();
  EXPECT_THAT(RunReference<float>(tester), ElementsAre(kMax, -kMax));
}

TEST(BinaryTest, BothInputsBroadcast) {
  OpTester tester =
      Binary("SUB", Values<float>(kF32, {2, 1}, {10, 20}), Values<float>(kF32, {1, 3}, {1, 2, 3}));
  EXPECT_THAT(RunReference<float>(tester), ElementsAre(9, 8, 7, 19, 18, 17));
  EXPECT_EQ(tester.op.outputs[0].shape, (Shape{2, 3}));
}

TEST(BinaryTest, TheSmallerInputMayComeFirst) {
  OpTester tester =
      Binary("DIV", Values<float>(kF32, {}, {12}), Values<float>(kF32, {2, 2}, {1, 2, 3, 4}));
  EXPECT_THAT(RunReference<float>(tester), ElementsAre(12, 6, 4, 3));
}

TEST(BinaryTest, PreluScalesNegatives) {
  OpTester tester = Binary("PRELU", Values<float>(kF32, {1, 2, 2}, {-1, -1, 2, -4}),
                           Values<float>(kF32, {2}, {0.5f, 0.25f}));
  EXPECT_THAT(RunReference<float>(tester), ElementsAre(-0.5f, -0.25f, 2, -1));
  OpTester larger =
      Binary("PRELU", Values<float>(kF32, {1}, {1}), Values<float>(kF32, {2}, {1, 1}));
  EXPECT_FALSE(larger.Infer().ok());
}

TEST(BinaryTest, IntegersWrapAroundAndClamp) {
  OpTester add = Binary("ADD", Values<int32_t>(DataType::kInt32, {2}, {INT32_MAX, -5}),
                        Values<int32_t>(DataType::kInt32, {1}, {1}));
  EXPECT_THAT(RunReference<int32_t>(add), ElementsAre(INT32_MIN, -4));
  OpTester relu = Binary("MUL", Values<int64_t>(DataType::kInt64, {2}, {int64_t{1} << 40, -5}),
                         Values<int64_t>(DataType::kInt64, {1}, {2}));
  relu.params<ArithmeticParams>().activation = Activation::kRelu;
  EXPECT_THAT(RunReference<int64_t>(relu), ElementsAre(int64_t{1} << 41, 0));
  OpTester least = Binary("DIV", Values<int32_t>(DataType::kInt32, {2}, {INT32_MIN, 7}),
                          Values<int32_t>(DataType::kInt32, {2}, {-1, -2}));
  EXPECT_THAT(RunReference<int32_t>(least), ElementsAre(INT32_MAX, -3));
}

TEST(BinaryTest, IntegerDivisionByZeroFailsTheRun) {
  OpTester tester = Binary("DIV", Values<int32_t>(DataType::kInt32, {1}, {3}),
                           Values<int32_t>(DataType::kInt32, {1}, {0}));
  ASSERT_TRUE(tester.Infer().ok());
  EXPECT_EQ(tester.Run("reference", Isa::kScalar).status().code(), StatusCode::kInvalidArgument);
}

TEST(BinaryTest, Refuses) {
  OpTester shapes =
      Binary("ADD", Values<float>(kF32, {2}, {1, 2}), Values<float>(kF32, {3}, {1, 2, 3}));
  EXPECT_FALSE(shapes.Infer().ok());
  OpTester types =
      Binary("ADD", Values<float>(kF32, {1}, {1}), Values<int32_t>(DataType::kInt32, {1}, {1}));
  EXPECT_FALSE(types.Infer().ok());
  OpTester tanh = Binary("ADD", Values<float>(kF32, {1}, {1}), Values<float>(kF32, {1}, {1}));
  tanh.params<ArithmeticParams>().activation = Activation::kTanh;
  EXPECT_EQ(tanh.Infer().code(), StatusCode::kUnsupported);
}

TEST(UnaryTest, Activations) {
  const std::vector<float> x = {-4, -1, 0.5f, 2, 7, kInfinity};
  const auto run = [&](std::string_view name) {
    OpTester tester(name);
    tester.Input(Values<float>(kF32, {2, 3}, x));
    if (name == "LEAKY_RELU") tester.params<LeakyReluParams>().alpha = 0.25f;
    return RunReference<float>(tester);
  };
  EXPECT_THAT(run("RELU"), ElementsAre(0, 0, 0.5f, 2, 7, kInfinity));
  EXPECT_THAT(run("RELU6"), ElementsAre(0, 0, 0.5f, 2, 6, 6));
  EXPECT_THAT(run("RELU_N1_TO_1"), ElementsAre(-1, -1, 0.5f, 1, 1, 1));
  EXPECT_THAT(run("RELU_0_TO_1"), ElementsAre(0, 0, 0.5f, 1, 1, 1));
  EXPECT_THAT(run("LEAKY_RELU"), ElementsAre(-1, -0.25f, 0.5f, 2, 7, kInfinity));
  EXPECT_THAT(run("ROUND"), ElementsAre(-4, -1, 0, 2, 7, kInfinity));
  EXPECT_THAT(run("SIGN"), ElementsAre(-1, -1, 1, 1, 1, 1));
}

TEST(UnaryTest, GeluHasTwoForms) {
  OpTester tester("GELU");
  tester.Input(Values<float>(kF32, {2}, {1, -2}));
  EXPECT_FLOAT_EQ(RunReference<float>(tester)[0], 0.84134475f);
  tester.params<GeluParams>().approximate = true;
  EXPECT_FLOAT_EQ(RunReference<float>(tester)[0], 0.84119199f);
}

TEST(UnaryTest, Integers) {
  OpTester neg("NEG");
  neg.Input(Values<int64_t>(DataType::kInt64, {3}, {5, INT64_MIN, -1}));
  EXPECT_THAT(RunReference<int64_t>(neg), ElementsAre(-5, INT64_MIN, 1));
  OpTester abs("ABS");
  abs.Input(Values<int32_t>(DataType::kInt32, {3}, {5, INT32_MIN, -1}));
  EXPECT_THAT(RunReference<int32_t>(abs), ElementsAre(5, INT32_MIN, 1));
}

TestTensor RandomTensor(Random& random, const Shape& shape) {
  TensorInfo info{.type = kF32, .shape = shape};
  if (shape.rank() > 0 && random.Chance(0.3)) info.row_pitch = shape.dim(-1) + random.Int(0, 5);
  TestTensor tensor(info, 4 * random.Int(0, 3));
  tensor.Fill(random, -4, 4);
  return tensor;
}

void AddRandomTail(Random& random, OpTester& tester) {
  Tail& tail = tester.op.tail;
  const Shape out = tester.op.outputs[0].shape;
  if (random.Chance(0.5)) tail.stages.push_back(TailStage::Unary(UnaryKind::kAffine, 0.5f, 1));
  if (random.Chance(0.5)) {
    // A mask or a gate: one value for a batch of rows and a channel.
    const int64_t channels = out.rank() ? out.dim(-1) : 1;
    const int64_t rows = out.elements() / channels;
    tail.rows_per_batch = random.Int(1, rows);
    const auto batches = static_cast<int32_t>((rows - 1) / tail.rows_per_batch + 1);
    TestTensor gate({.type = kF32, .shape = {batches, static_cast<int32_t>(channels)}});
    gate.Fill(random, -2, 2);
    tail.stages.push_back(
        TailStage::Binary(BinaryKind::kMul, {.input = static_cast<int>(tester.inputs.size()),
                                             .batch_stride = channels,
                                             .channel_stride = 1}));
    tester.Input(gate);
  }
}

class ElementwiseTest : public ::testing::TestWithParam<Isa> {
 protected:
  void Compare(OpTester& tester, Random& random, float relative, float absolute) {
    if (random.Chance(0.3)) {
      const Shape& shape = tester.op.outputs[0].shape;
      if (shape.rank() > 0) tester.op.outputs[0].row_pitch = shape.dim(-1) + random.Int(0, 4);
    }
    const auto expected = tester.Run("reference", Isa::kScalar, random.Int(1, 1000));
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    const auto actual = tester.Run("highway", GetParam(), random.Int(1, 1000), random.Int(0, 3));
    if (!GetParam().has_vectors()) {
      EXPECT_EQ(actual.status().code(), StatusCode::kUnsupported);
      return;
    }
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    const TestTensor& e = (*expected)[0];
    ExpectNear(
        e, (*actual)[0], [&](int64_t i) { return absolute + relative * std::abs(e.at<float>(i)); },
        tester.op.op->name);
  }
};

TEST_P(ElementwiseTest, BinaryBroadcasts) {
  const struct {
    const char* name;
    BinaryKind kind;
  } kOperators[] = {{"ADD", BinaryKind::kAdd},
                    {"SUB", BinaryKind::kSub},
                    {"MUL", BinaryKind::kMul},
                    {"DIV", BinaryKind::kDiv},
                    {"MAXIMUM", BinaryKind::kMaximum},
                    {"MINIMUM", BinaryKind::kMinimum},
                    {"SQUARED_DIFFERENCE", BinaryKind::kSquaredDifference}};
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const auto& [name, kind] = kOperators[seed % std::size(kOperators)];
    const ShapePair shapes = RandomShapes(random);
    SCOPED_TRACE(shapes.x.ToString() + name + shapes.y.ToString());
    OpTester tester = Binary(name, RandomTensor(random, shapes.x), RandomTensor(random, shapes.y));
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    ASSERT_EQ(tester.op.outputs[0].shape, shapes.out);
    const auto plain = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(plain.ok());
    for (int64_t i = 0; i < shapes.out.elements(); ++i) {
      ASSERT_EQ((*plain)[0].at<float>(i),
                ApplyBinary(kind, BroadcastElement(tester.inputs[0], shapes.out, i),
                            BroadcastElement(tester.inputs[1], shapes.out, i)))
          << i;
    }
    AddRandomTail(random, tester);
    Compare(tester, random, 0, 0);
  }
}

TEST_P(ElementwiseTest, LongRows) {
  Random random(7);
  OpTester tester = Binary("ADD", RandomTensor(random, {3, 20001}), RandomTensor(random, {20001}));
  ASSERT_TRUE(tester.Infer().ok());
  Compare(tester, random, 0, 0);
  OpTester both = Binary("ADD", RandomTensor(random, {3, 1, 9001}), RandomTensor(random, {4, 1}));
  ASSERT_TRUE(both.Infer().ok());
  Compare(both, random, 0, 0);
}

TEST_P(ElementwiseTest, UnaryWithTails) {
  const char* const kNames[] = {"ABS",   "CEIL", "COS",        "ELU",    "EXP",
                                "FLOOR", "GELU", "HARD_SWISH", "NEG",    "RELU",
                                "ROUND", "SIGN", "SIN",        "SQUARE", "TANH"};
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester(kNames[seed % std::size(kNames)]);
    tester.Input(RandomTensor(random, RandomShapes(random).out));
    ASSERT_TRUE(tester.Infer().ok());
    AddRandomTail(random, tester);
    Compare(tester, random, 2e-6f, 2e-6f);
  }
}

// As the exact values are, but for one in 2,000 (1 to 2 in 10,000 of these), which are the float
// beside it.
TEST_P(ElementwiseTest, SinesAndCosinesAreRoundedOnce) {
  if (GetParam() == Isa::kScalar) GTEST_SKIP() << "the reference calls <cmath>, which rounds twice";
  constexpr int32_t kCount = 40000;
  Random random(5);
  SCOPED_TRACE(random.Trace());
  std::vector<float> x = {0.0f, -0.0f, 1e-40f};
  for (int i = 1; i <= 20; ++i) {  // what is next to multiples of pi and their halves
    const auto zero = static_cast<float>(i * 1.5707963267948966);
    x.insert(x.end(), {zero, -std::nextafter(zero, 0.0f), std::nextafter(zero, 99.0f)});
  }
  while (x.size() < kCount / 4) x.push_back(random.Float(-7, 7));
  while (x.size() < kCount / 2) x.push_back(random.Float(-31, 31));
  x.push_back(-39000.0f);
  while (x.size() < kCount) x.push_back(random.Float(-39000, 39000));
  for (const bool sine : {true, false}) {
    OpTester tester(sine ? "SIN" : "COS");
    tester.Input(Values<float>(kF32, {kCount}, x));
    ASSERT_TRUE(tester.Infer().ok());
    const auto outputs = tester.Run("highway", GetParam());
    ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
    const auto y = (*outputs)[0].values<float>();
    int others = 0;
    for (int i = 0; i < kCount; ++i) {
      const auto exact = static_cast<float>(sine ? std::sin(double{x[i]}) : std::cos(double{x[i]}));
      others += y[i] != exact || std::signbit(y[i]) != std::signbit(exact) ? 1 : 0;
      EXPECT_TRUE(y[i] == exact || y[i] == std::nextafter(exact, y[i]))
          << x[i] << " gives " << y[i];
    }
    EXPECT_LE(others, kCount / 2000) << (sine ? "SIN" : "COS");
  }
}

TEST_P(ElementwiseTest, LargeAnglesLeaveTheirNeighboursAlone) {
  constexpr int32_t kCount = 1999;
  Random random(7);
  SCOPED_TRACE(random.Trace());
  std::vector<float> small, all;
  for (int i = 0; i < kCount; ++i) small.push_back(random.Float(-31, 31));
  all = small;
  const auto is_large = [](int i) { return i > 900 && i % 37 == 0; };
  for (int i = 0; i < kCount; ++i) {
    if (is_large(i)) all[i] = random.Pick({1e6f, -3e38f, 39001.0f, INFINITY, NAN, -1e10f});
  }
  for (const bool sine : {true, false}) {
    const auto run = [&](const std::vector<float>& x) {
      OpTester tester(sine ? "SIN" : "COS");
      tester.Input(Values<float>(kF32, {kCount}, x));
      EXPECT_TRUE(tester.Infer().ok());
      const bool scalar = GetParam() == Isa::kScalar;
      const auto outputs = tester.Run(scalar ? "reference" : "highway", GetParam());
      EXPECT_TRUE(outputs.ok()) << outputs.status().ToString();
      return outputs.ok() ? (*outputs)[0].values<float>() : std::vector<float>(kCount);
    };
    const std::vector<float> alone = run(small), beside = run(all);
    for (int i = 0; i < kCount; ++i) {
      const float expected = !is_large(i) ? alone[i] : sine ? std::sin(all[i]) : std::cos(all[i]);
      EXPECT_TRUE(beside[i] == expected || (std::isnan(beside[i]) && std::isnan(expected)))
          << "element " << i << ": of " << all[i] << " is " << beside[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, ElementwiseTest, ::testing::ValuesIn(RunnableIsas()),
                         [](const auto& info) { return std::string(IsaName(info.param)); });

TEST(AsTailTest, OperandLayouts) {
  const auto use = [](Shape operand, Shape output) {
    return AsTailOperand({.type = kF32, .shape = operand}, output);
  };
  const auto same = use({2, 3, 4, 5}, {2, 3, 4, 5});
  ASSERT_TRUE(same);
  EXPECT_EQ(same->rows_per_batch, INT64_MAX);
  EXPECT_EQ(same->operand.row_stride, 5);
  EXPECT_EQ(same->operand.channel_stride, 1);
  const auto gate = use({2, 1, 1, 5}, {2, 3, 4, 5});
  ASSERT_TRUE(gate);
  EXPECT_EQ(gate->rows_per_batch, 12);
  EXPECT_EQ(gate->operand.batch_stride, 5);
  EXPECT_EQ(gate->operand.row_stride, 0);
  const auto mask = use({1, 3, 4, 1}, {2, 3, 4, 5});
  ASSERT_TRUE(mask);
  EXPECT_EQ(mask->rows_per_batch, 12);
  EXPECT_EQ(mask->operand.batch_stride, 0);
  EXPECT_EQ(mask->operand.row_stride, 1);
  EXPECT_EQ(mask->operand.channel_stride, 0);
  EXPECT_FALSE(use({2, 1, 4, 5}, {2, 3, 4, 5}).has_value()) << "three runs";
  EXPECT_FALSE(use({2, 3}, {3}).has_value());
}

TEST(AsTailTest, StagesAgreeAboutBatches) {
  Tail tail;
  TailStage residual = TailStage::Binary(BinaryKind::kAdd, {.input = 1, .row_stride = 5});
  TailStage gate = TailStage::Binary(BinaryKind::kMul, {.input = 2, .batch_stride = 5});
  ASSERT_TRUE(AppendStage(residual, INT64_MAX, &tail));
  ASSERT_TRUE(AppendStage(gate, 12, &tail));
  EXPECT_EQ(tail.rows_per_batch, 12);
  EXPECT_EQ(tail.stages[0].operand.batch_stride, 60);
  ASSERT_TRUE(AppendStage(residual, INT64_MAX, &tail));
  EXPECT_EQ(tail.stages[2].operand.batch_stride, 60);
  EXPECT_FALSE(AppendStage(gate, 6, &tail));
  EXPECT_EQ(tail.stages.size(), 3u);
}

}  // namespace
}  // namespace fuselite::kernels::testing
