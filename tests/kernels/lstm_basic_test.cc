// LSTM's form of five inputs: vectors against the reference, outputs and the states that runs
// leave.
#include "kernels/lstm/basic.h"

#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {
namespace {

using namespace basic_lstm;

struct BasicCase {
  bool keeps_states;
  int32_t batch, width, cells;
};

BasicCase RandomCase(Random& random) {
  return {.keeps_states = random.Chance(0.5),
          .batch = random.Pick({1, 1, 3, 17, 40}),
          .width = random.Pick({1, 4, 17, 40}),
          .cells = random.Pick({1, 7, 16, 20, 33, 70})};
}

OpTester MakeBasicLstm(const BasicCase& c) {
  OpTester tester(c.keeps_states ? "FUSELITE_BASIC_LSTM" : "FUSELITE_BASIC_LSTM_STEP");
  tester.params<LstmParams>().kernel_type = 1;
  return tester;
}

OpTester RandomFloats(Random& random) {
  const BasicCase c = RandomCase(random);
  OpTester tester = MakeBasicLstm(c);
  const auto filled = [&](const Shape& shape, float magnitude) {
    TestTensor tensor({.type = DataType::kFloat32, .shape = shape}, 4 * random.Int(0, 3));
    tensor.Fill(random, -magnitude, magnitude);
    return tensor;
  };
  tester.Input(filled({c.batch, c.width}, 1)).Input(filled({c.batch, c.cells}, 1));
  tester.Constant(filled({4 * c.cells, c.width + c.cells}, 0.3f));
  tester.Constant(filled({4 * c.cells}, 1)).Input(filled({c.batch, c.cells}, 2));
  for (int i = 0; i < 4; ++i) tester.Output(DataType::kFloat32);
  return tester;
}

// `bias_scale`: from sums that are far below one step to such as are scaled up.
OpTester RandomBytes(Random& random, float bias_scale) {
  const BasicCase c = RandomCase(random);
  OpTester tester = MakeBasicLstm(c);
  const auto filled = [&](DataType type, const Shape& shape, float scale, int zero_point, int low,
                          int high) {
    TestTensor tensor({.type = type, .shape = shape, .quantization = {{scale}, {zero_point}}},
                      4 * random.Int(0, 3));
    tensor.Fill(random, low, high);
    return tensor;
  };
  const auto bytes = [&](const Shape& shape) {
    return filled(DataType::kUInt8, shape, 1.0f / 128, 128, 0, 255);
  };
  tester.Input(bytes({c.batch, c.width})).Input(bytes({c.batch, c.cells}));
  const auto zero_point = static_cast<int>(random.Int(0, 255));
  tester.Constant(filled(DataType::kUInt8, {4 * c.cells, c.width + c.cells}, bias_scale * 128,
                         zero_point, 0, 255));
  tester.Constant(filled(DataType::kInt32, {4 * c.cells}, bias_scale, 0, -60000, 60000));
  tester.Input(filled(DataType::kInt16, {c.batch, c.cells}, 1.0f / 2048, 0, -32768, 32767));
  const Quantization values = {{1.0f / 128}, {128}}, state = {{1.0f / 2048}, {0}};
  tester.Output(DataType::kUInt8, values).Output(DataType::kInt16, state);
  tester.Output(DataType::kUInt8, values).Output(DataType::kInt16, {{1.0f / 4096}, {0}});
  return tester;
}

// Runs a candidate with states of its own, and gives what it leaves of them behind the outputs.
Result<std::vector<TestTensor>> RunWithStates(const OpTester& plain, std::string_view candidate,
                                              Isa isa, uint64_t seed, size_t misalign) {
  OpTester tester = plain;
  for (int i : {kPrevious, kState}) tester.inputs[i] = plain.inputs[i].Clone();
  const Status inferred = tester.Infer();
  EXPECT_TRUE(inferred.ok()) << inferred.ToString();
  FUSELITE_ASSIGN_OR_RETURN(std::vector<TestTensor> results,
                            tester.Run(candidate, isa, seed, misalign));
  for (int i : {kPrevious, kState}) {
    tester.inputs[i].CheckGuards("state");
    results.push_back(tester.inputs[i]);
  }
  return results;
}

class BasicLstmIsaTest : public ::testing::TestWithParam<Isa> {};

TEST_P(BasicLstmIsaTest, HighwayAgreesWithTheReference) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const OpTester plain = RandomFloats(random);
    const auto expected = RunWithStates(plain, "reference", Isa::kScalar, seed, random.Int(0, 3));
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    const auto actual = RunWithStates(plain, "highway", GetParam(), seed, random.Int(0, 3));
    if (!GetParam().has_vectors()) {
      EXPECT_EQ(actual.status().code(), StatusCode::kUnsupported);
      continue;
    }
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    for (size_t i = 0; i < expected->size(); ++i) {
      ExpectNear((*expected)[i], (*actual)[i], [](int64_t) { return 1e-5f; }, "result");
    }
  }
}

TEST_P(BasicLstmIsaTest, HighwayEqualsTheReferenceInBytes) {
  if (!GetParam().has_vectors()) return;  // the reference runs
  for (uint64_t seed = 1; seed <= 90; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const OpTester plain = RandomBytes(random, random.Pick({2e-6f, 3e-5f, 2e-4f, 1e-3f}));
    const auto expected = RunWithStates(plain, "reference", Isa::kScalar, seed, random.Int(0, 3));
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    const auto actual = RunWithStates(plain, "highway", GetParam(), seed, random.Int(0, 3));
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    for (size_t i = 0; i < expected->size(); ++i) {
      const bool bytes = (*expected)[i].info().type == DataType::kUInt8;
      bytes ? ExpectSame<uint8_t>((*expected)[i], (*actual)[i], "result")
            : ExpectSame<int16_t>((*expected)[i], (*actual)[i], "result");
    }
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, BasicLstmIsaTest, ::testing::ValuesIn(RunnableIsas()),
                         [](const auto& info) { return std::string(IsaName(info.param)); });

TEST(BasicLstmTest, SumsOfMoreThan32BitsAreLeftToTheReference) {
  Random random(1);
  OpTester tester = RandomBytes(random, 1e-3f);
  ASSERT_TRUE(tester.Infer().ok());
  tester.inputs[kBias].at<int32_t>(0) = INT32_MAX;
  const auto refused = tester.Run("highway", RunnableIsas().back());
  EXPECT_THAT(refused.status().message(),
              ::testing::HasSubstr(RunnableIsas().back().has_vectors() ? "more than 32 bits"
                                                                       : "no vector target"));
}

}  // namespace
}  // namespace fuselite::kernels::testing
