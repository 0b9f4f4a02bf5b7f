// The operators of random numbers, which the interpreter alone runs: what they give, and what they
// refuse. tests/python compares them with LiteRT's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "kernels/random/random.h"
#include "tests/interpreter/host_operators.h"

namespace fuselite::interpreter {
namespace {

using namespace testing;
using ::testing::HasSubstr;

void ExpectNear(const std::vector<float>& expected, const std::vector<float>& actual) {
  ASSERT_EQ(expected.size(), actual.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(expected[i], actual[i], 1e-6) << i;
}

// LiteRT's numbers of two runs, the second one from where the first has ended.
TEST(RandomNumbers, AreThoseOfTheSeeds) {
  struct Case {
    const char* name;
    kernels::RandomParams seeds;
    std::vector<float> runs[2];
  };
  const Case cases[] = {
      {"RANDOM_UNIFORM",
       {1, 0},
       {{0.81269646f, 0.07857466f, 0.8916855f, 0.16925514f, 0.06311357f, 0.54531074f},
        {0.66955376f, 0.9281193f, 0.122392416f, 0.8532245f, 0.90477383f, 0.7104306f}}},
      {"RANDOM_UNIFORM",
       {0, 5},
       {{0.92639303f, 0.35146642f, 0.7737814f, 0.4164468f, 0.67648005f, 0.7267511f},
        {0.00924468f, 0.50710154f, 0.62669647f, 0.19040668f, 0.9811013f, 0.4480567f}}},
      {"RANDOM_STANDARD_NORMAL",
       {1, 0},
       {{0.3052047f, 0.5671378f, 0.41852272f, 0.2326421f, -0.6602213f, -2.2560465f},
        {-0.390923f, 0.8058951f, -1.6334507f, 1.238097f, -0.43361515f, -0.11008383f}}},
  };
  for (const Case& c : cases) {
    for (const bool fed : {false, true}) {
      SCOPED_TRACE(std::string(c.name) + (fed ? " of a shape of the run" : ""));
      Builder b;
      kernels::Params params;
      params.as<kernels::RandomParams>() = c.seeds;
      const int shape = fed ? b.In(kInt, {1}) : b.AddConstant("shape", kInt, {1}, std::vector{6});
      b.End({b.Op(c.name, params, {shape}, kFloat, {6})});
      const auto interpreter = Open(b);
      ASSERT_TRUE(interpreter->AllocateTensors().ok());
      for (const std::vector<float>& expected : c.runs) {
        if (fed) *static_cast<int32_t*>(interpreter->input(0).data) = 6;
        ASSERT_TRUE(interpreter->Invoke().ok());
        ExpectNear(expected, Values<float>(interpreter->output(0)));
      }
    }
  }
}

TEST(RandomNumbers, WithoutSeedsAreOthersEachTime) {
  std::vector<std::vector<float>> drawn;
  for (int i = 0; i < 2; ++i) {
    Builder b;
    b.End(
        {b.Op("RANDOM_UNIFORM", {b.AddConstant("shape", kInt, {1}, std::vector{9})}, kFloat, {9})});
    const auto interpreter = Open(b);
    ASSERT_TRUE(RunOnce(*interpreter).ok());
    drawn.push_back(Values<float>(interpreter->output(0)));
  }
  EXPECT_NE(drawn[0], drawn[1]);
}

TEST(RandomNumbers, ChooseClassesByTheirLogits) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  const std::vector<float> logits = {0, 1, -1, 0.5f, 2, kNever, 2, -3};
  const std::vector<int64_t> runs[] = {{1, 1, 1, 1, 3, 0, 2, 0, 0, 0},
                                       {1, 1, 3, 1, 3, 2, 3, 0, 0, 0}};
  for (const DataType type : {kInt, kNumber}) {
    Builder b;
    kernels::Params params;
    params.as<kernels::RandomParams>() = {3, 9};
    const int count = b.AddConstant("count", kInt, Shape(), std::vector{5});
    b.End({b.Op("MULTINOMIAL", params, {b.In(kFloat, {2, 4}), count}, type, {2, 5})});
    const auto interpreter = Open(b);
    ASSERT_TRUE(interpreter->AllocateTensors().ok());
    std::memcpy(interpreter->input(0).data, logits.data(), logits.size() * sizeof(float));
    for (const std::vector<int64_t>& expected : runs) {
      ASSERT_TRUE(interpreter->Invoke().ok());
      const TensorView output = interpreter->output(0);
      const std::vector<int32_t> narrow =
          type == kInt ? Values<int32_t>(output) : std::vector<int32_t>();
      EXPECT_EQ(type == kInt ? std::vector<int64_t>(narrow.begin(), narrow.end())
                             : Values<int64_t>(output),
                expected);
    }
  }
}

TEST(RandomNumbers, RefuseOtherShapes) {
  const auto error = [](std::string_view name, const Shape& first, const Shape& second,
                        bool left_out) {
    Builder b;
    const bool classes = name == "MULTINOMIAL";
    std::vector<int> inputs = {b.In(classes ? kFloat : kInt, first)};
    if (classes) inputs.push_back(b.In(kInt, second));
    if (left_out) inputs.back() = -1;
    b.End({b.Op(name, inputs, classes ? kInt : kFloat, {1})});
    return ErrorOf(b);
  };
  EXPECT_THAT(error("RANDOM_UNIFORM", {1, 1}, {}, false), HasSubstr("a shape of [1,1]"));
  EXPECT_THAT(error("RANDOM_UNIFORM", {1}, {}, true), HasSubstr("left out"));
  EXPECT_THAT(error("MULTINOMIAL", {4}, {}, false), HasSubstr("logits of [4]"));
  EXPECT_THAT(error("MULTINOMIAL", {4, 0}, {}, false), HasSubstr("logits of [4,0]"));
  EXPECT_THAT(error("MULTINOMIAL", {4, 1}, {1}, false), HasSubstr("a count of [1]"));
}

}  // namespace
}  // namespace fuselite::interpreter
