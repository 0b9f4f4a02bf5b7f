// Operators that map rows to rows: SOFTMAX, LOG_SOFTMAX, L2_NORMALIZATION.
#include "kernels/softmax/softmax.h"
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

TEST(NormalizationTest, ScalarsAreRefused) {
  OpTester tester("SOFTMAX");
  tester.Input(TestTensor({.type = kF32, .shape = {}}));
  EXPECT_EQ(tester.Infer().code(), StatusCode::kUnsupported);
}

class NormalizationIsaTest : public ::testing::TestWithParam<Isa> {};

TEST_P(NormalizationIsaTest, HighwayAgreesWithReference) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const char* name = random.Pick({"SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION"});
    OpTester tester(name);
    if (name[0] == 'S') tester.params<SoftmaxParams>().beta = random.Pick({1.0f, 0.5f});
    TensorInfo info{.type = kF32,
                    .shape = {static_cast<int32_t>(random.Int(1, 5)),
                              static_cast<int32_t>(random.Pick({1, 2, 4, 7, 15, 16, 65, 1001}))}};
    if (random.Chance(0.3)) info.row_pitch = info.shape.dim(-1) + random.Int(0, 5);
    TestTensor x(info, 4 * random.Int(0, 3));
    const float magnitude = random.Pick({1.0f, 20.0f, 200.0f});
    x.Fill(random, -magnitude, magnitude);
    tester.Input(x);
    ASSERT_TRUE(tester.Infer().ok());
    if (random.Chance(0.4)) {
      tester.op.tail.stages.push_back(TailStage::Unary(UnaryKind::kAffine, 0.5f, 1));
    }
    if (random.Chance(0.3)) tester.op.outputs[0].row_pitch = info.shape.dim(-1) + 3;
    const auto expected = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(expected.ok());
    const auto actual = tester.Run("highway", GetParam(), seed, random.Int(0, 3));
    if (!Includes(GetParam(), Isa::kSsse3) && !Includes(GetParam(), Isa::kNeon)) {
      EXPECT_EQ(actual.status().code(), StatusCode::kUnsupported);
      continue;
    }
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    const TestTensor& e = (*expected)[0];
    ExpectNear(
        e, (*actual)[0], [&](int64_t i) { return 1e-6f + 2e-6f * std::abs(e.at<float>(i)); }, name);
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, NormalizationIsaTest, ::testing::ValuesIn(RunnableIsas()),
                         [](const auto& info) { return std::string(IsaName(info.param)); });

}  // namespace
}  // namespace fuselite::kernels::testing
