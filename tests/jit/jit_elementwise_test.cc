// Emitted elementwise operators and chains against the reference.
#include <cfloat>
#include <cmath>

#include "jit/tail/tail_emitter.h"
#include "kernels/elementwise/elementwise.h"
#include "tests/jit/jit_cases.h"
#include "tests/kernels/bfloat16_cases.h"

namespace fuselite::jit::testing {
namespace {

constexpr DataType kF32 = DataType::kFloat32;

// Misaligned, and pitched now and then.
TestTensor Values(Random& random, const Shape& shape, double low = -4, double high = 4) {
  TensorInfo info{.type = kF32, .shape = shape};
  if (shape.rank() > 0 && random.Chance(0.25)) info.row_pitch = shape.dim(-1) + random.Int(0, 5);
  TestTensor tensor(info, 4 * random.Int(0, 3));
  tensor.Fill(random, low, high);
  return tensor;
}

// Few and many channels, around whole vectors, and rows of several units.
int32_t RandomChannels(Random& random) {
  switch (random.Int(0, 5)) {
    case 0: return 1;
    case 1: return static_cast<int32_t>(random.Int(2, 9));
    case 2: return static_cast<int32_t>(random.Int(10, 70));
    case 3: return static_cast<int32_t>(16 * random.Int(1, 20) + random.Int(-1, 1));
    case 4: return static_cast<int32_t>(random.Int(71, 700));
    default: return static_cast<int32_t>(random.Int(4000, 9000));
  }
}

// About as many rows as make several units, or few.
Shape RandomShape(Random& random) {
  const int32_t channels = RandomChannels(random);
  const auto most = static_cast<int32_t>(std::min<int64_t>(200, 1 + 9000 / channels));
  return {static_cast<int32_t>(random.Int(1, 2)), static_cast<int32_t>(random.Int(1, 4)),
          static_cast<int32_t>(random.Int(1, most)), channels};
}

void MaybePitch(OpTester& tester, Random& random) {
  TensorInfo& out = tester.op.outputs[0];
  if (random.Chance(0.25)) out.row_pitch = out.shape.dim(-1) + random.Int(0, 5);
}

std::vector<float> Bounds(const OpTester& tester, float relative, float absolute) {
  auto expected = tester.Run("reference", Isa::kScalar);
  EXPECT_TRUE(expected.ok()) << expected.status().ToString();
  std::vector<float> bounds;
  for (float e : (*expected)[0].values<float>()) {
    bounds.push_back(relative * std::abs(e) + absolute);
  }
  return bounds;
}

// `shape` with some dimensions made 1, some leading ones left out.
Shape Broadcast(Random& random, const Shape& shape) {
  Shape result;
  for (int d = static_cast<int>(random.Int(0, shape.rank() - 1)); d < shape.rank(); ++d) {
    result.push_back(random.Chance(0.4) ? 1 : shape[d]);
  }
  return result;
}

// Why two inputs that repeat are not emitted.
constexpr std::string_view kBothBroadcast[] = {
    "both inputs broadcast, none of which has whole rows",
    "rows that repeat are too short for vectors",
    "does not take rows that repeat in another way than the operands",
};

TEST(JitElementwiseTest, BinaryOperatorsBroadcast) {
  if (EmittedIsas().empty()) GTEST_SKIP() << "nothing is emitted for this machine";
  constexpr const char* kNames[] = {"ADD",     "SUB",     "MUL",   "DIV",
                                    "MAXIMUM", "MINIMUM", "PRELU", "SQUARED_DIFFERENCE"};
  int refused = 0, both = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester(kNames[seed % std::size(kNames)]);
    const Shape shape = RandomShape(random);
    TestTensor x = Values(random, shape), y = Values(random, Broadcast(random, shape));
    if (tester.op.op->name != "PRELU") {
      if (random.Chance(0.4)) x = Values(random, Broadcast(random, shape));
      if (random.Chance(0.4)) std::swap(x, y);
    }
    tester.Input(x).Input(y);
    if (kernels::HasActivation(*kernels::BinaryKindOf(*tester.op.op))) {
      tester.params<kernels::ArithmeticParams>().activation =
          random.Pick({kernels::Activation::kNone, kernels::Activation::kRelu6});
    }
    ASSERT_TRUE(tester.Infer().ok());
    MaybePitch(tester, random);
    const auto judged =
        FloatCandidate(*tester.op.op)->Plan(tester.op, {.isa = EmittedIsas().front()});
    if (!judged.ok()) {
      EXPECT_THAT(judged.status().message(), ::testing::AnyOfArray(kBothBroadcast));
      ++refused;
      continue;
    }
    const auto repeats = [&](const TensorInfo& in) {
      return in.elements() != tester.op.outputs[0].elements();
    };
    both += std::ranges::all_of(tester.op.inputs, repeats);
    CompareJit(tester, Bounds(tester, 0, 0), random);
  }
  EXPECT_LT(refused, 125);
  EXPECT_GT(both, 20);
}

// A binary operator of values that repeat or not, or a chain with operands in its tail.
OpTester RandomElementwise(Random& random) {
  const Shape shape = RandomShape(random);
  if (random.Chance(0.5)) {
    OpTester tester(random.Pick({"ADD", "SUB", "MUL", "MAXIMUM", "SQUARED_DIFFERENCE"}));
    tester.Input(Values(random, shape)).Input(Values(random, Broadcast(random, shape)));
    EXPECT_TRUE(tester.Infer().ok());
    return tester;
  }
  OpTester tester(random.Pick({"FUSELITE_ELEMENTWISE", "TANH", "LOGISTIC"}));
  tester.Input(Values(random, shape));
  EXPECT_TRUE(tester.Infer().ok());
  AddTail(tester, random);
  return tester;
}

// Values that are bfloat16 in memory give what float32 of the same numbers give, rounded where the
// output is bfloat16.
TEST(JitElementwiseTest, ValuesOfBFloat16) {
  const Isa isa = DetectIsa();
  if (!isa.has(Feature::kAvx512Bf16)) GTEST_SKIP() << "no AVX512-BF16 on this machine";
  int compared = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = RandomElementwise(random);
    MaybePitch(tester, random);
    tester.precision = kernels::Precision::kFast;
    auto both = kernels::testing::WithBFloat16(tester, 0, random);
    if (tester.op.inputs.size() == 2 && tester.op.tail_inputs == 0 && random.Chance(0.5)) {
      kernels::testing::RoundInput(both, 1, random);
    }
    const kernels::Candidate& jit = *FloatCandidate(*tester.op.op);
    if (!kernels::testing::ExpectSameInMemory(both, jit, isa, random)) continue;
    ++compared;
    both.shorts.precision = kernels::Precision::kDefault;
    EXPECT_FALSE(both.shorts.RunCandidate(jit, isa).ok()) << "only with precision=fast";
    if (HasFailure()) return;
  }
  EXPECT_GT(compared, 150);
}

TEST(JitElementwiseTest, ChainsOfRandomStages) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester(random.Pick({"FUSELITE_ELEMENTWISE", "TANH", "LOGISTIC", "NEG"}));
    tester.Input(Values(random, RandomShape(random), -1, 1));
    ASSERT_TRUE(tester.Infer().ok());
    AddTail(tester, random);
    AddTail(tester, random);
    // The first stage has to have an emitter; AddTail has sines, too.
    auto& stages = tester.op.tail.stages;
    stages.insert(stages.begin(), TailStage::Unary(UnaryKind::kAffine, 0.75f, 0.25f));
    MaybePitch(tester, random);
    CompareJit(tester, Bounds(tester, 1e-6f, 1e-5f), random);
  }
}

// Rows of several vectors: what a function keeps in registers for one must be there for the next.
TEST(JitElementwiseTest, EachFunctionOverManyVectors) {
  for (int kind = 0; kind < kernels::kUnaryKindCount; ++kind) {
    const auto unary = static_cast<UnaryKind>(kind);
    const TailStage stage = TailStage::Unary(unary, -0.5f, 0.75f);
    if (!TailEmitter::Check(stage).ok()) continue;
    Random random(kind + 1);
    SCOPED_TRACE(std::string(kernels::UnaryName(unary)) + ", " + random.Trace());
    const bool of_positives =
        unary == UnaryKind::kLog || unary == UnaryKind::kSqrt || unary == UnaryKind::kRsqrt;
    for (const size_t times : {1, 2}) {
      OpTester tester("FUSELITE_ELEMENTWISE");
      tester.Input(Values(random, {3, 5 * 64 + 7}, of_positives ? 3 : -4, 4));
      ASSERT_TRUE(tester.Infer().ok());
      tester.op.tail.stages.assign(times, stage);
      CompareJit(tester, Bounds(tester, 1e-5f, 1e-5f), random);
    }
  }
}

// With three channels, say, many rows are one and operands are repeated.
TEST(JitElementwiseTest, FewChannels) {
  for (int32_t channels = 1; channels <= 40; ++channels) {
    Random random(channels);
    SCOPED_TRACE(random.Trace());
    OpTester tester("SUB");
    const auto rows = static_cast<int32_t>(random.Int(100, 6000));
    tester.Input(Values(random, {1, rows, channels})).Input(Values(random, {channels}));
    ASSERT_TRUE(tester.Infer().ok());
    const int residual = AddOperand(tester, {1, rows, channels}, random);
    const int scale = AddOperand(tester, {channels}, random);
    tester.op.tail.stages = {
        TailStage::Binary(BinaryKind::kMul, {.input = scale, .channel_stride = 1}),
        TailStage::Binary(BinaryKind::kAdd,
                          {.input = residual, .row_stride = channels, .channel_stride = 1})};
    CompareJit(tester, Bounds(tester, 0, 0), random);
  }
}

TEST(JitElementwiseTest, ClampsToFiniteFloatsAsTheOperatorDoes) {
  Random random(1);
  OpTester tester("DIV");
  tester.Input(TestTensor::Of<float>(kF32, {4}, {1, -1, NAN, 6}));
  tester.Input(TestTensor::Of<float>(kF32, {4}, {0, 0, 1, 2}));
  ASSERT_TRUE(tester.Infer().ok());
  for (const Isa isa : EmittedIsas()) {
    const auto actual = tester.RunCandidate(*FloatCandidate(*tester.op.op), isa);
    ASSERT_TRUE(actual.ok());
    const std::vector<float> out = (*actual)[0].values<float>();
    EXPECT_EQ(out[0], FLT_MAX);
    EXPECT_EQ(out[1], -FLT_MAX);
    EXPECT_TRUE(std::isnan(out[2]));
    EXPECT_EQ(out[3], 3);
  }
}

TEST(JitElementwiseTest, ComputesInPlace) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester("MUL");
    const Shape shape = RandomShape(random);
    const TestTensor x({.type = kF32, .shape = shape}, 4);
    x.Fill(random, -1, 1);
    tester.Input(x).Input(Values(random, {shape.dim(-1)}));
    ASSERT_TRUE(tester.Infer().ok());
    const std::unique_ptr<PackedStore> store = NewPackedStore();
    for (const Isa isa : EmittedIsas()) {
      const auto kernel =
          FloatCandidate(*tester.op.op)->Build(tester.op, {{.isa = isa}, store.get()});
      ASSERT_TRUE(kernel.ok());
      ASSERT_EQ((*kernel)->in_place_input(), 0);
      const auto expected = tester.Run("reference", Isa::kScalar);
      OpTester in_place = tester;
      in_place.inputs[0] = x.Clone();
      ASSERT_TRUE(in_place.RunKernel(**kernel, {in_place.inputs[0]}, seed).ok());
      kernels::testing::ExpectSame<float>((*expected)[0], in_place.inputs[0], IsaName(isa));
    }
  }
}

TEST(JitElementwiseTest, RefusesWithReasons) {
  if (EmittedIsas().empty()) GTEST_SKIP() << "nothing is emitted for this machine";
  const auto refusal = [](OpTester& tester) {
    EXPECT_TRUE(tester.Infer().ok());
    const auto kernel =
        FloatCandidate(*tester.op.op)->Plan(tester.op, {.isa = EmittedIsas().front()});
    return kernel.ok() ? std::string() : std::string(kernel.status().message());
  };
  Random random(1);
  OpTester integers("ADD");
  const TestTensor two({.type = DataType::kInt32, .shape = {2}});
  integers.Input(two).Input(two);
  EXPECT_EQ(refusal(integers), "takes float32, not int32");
  const auto broadcasting = [&](const Shape& x, const Shape& y) {
    OpTester both("ADD");
    both.Input(Values(random, x)).Input(Values(random, y));
    return refusal(both);
  };
  EXPECT_EQ(broadcasting({2, 1, 1}, {1, 3, 1}), kBothBroadcast[1]);
  EXPECT_EQ(broadcasting({2, 1, 17, 1, 1}, {1, 3, 1, 4, 17}), kBothBroadcast[0]);
  EXPECT_EQ(broadcasting({2, 1, 4, 17}, {2, 3, 1, 1}), kBothBroadcast[2]);
  EXPECT_EQ(broadcasting({2, 1}, {1, 17}), "");
  OpTester sine("FUSELITE_ELEMENTWISE");
  sine.Input(Values(random, {2, 3}));
  ASSERT_TRUE(sine.Infer().ok());
  sine.op.tail.stages = {TailStage::Unary(UnaryKind::kSin)};
  EXPECT_EQ(refusal(sine), "tail stage sin has no emitter");
}

}  // namespace
}  // namespace fuselite::jit::testing
