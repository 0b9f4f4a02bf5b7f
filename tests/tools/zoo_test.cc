#include "tools/zoo/zoo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "tests/kernels/random.h"
#include "tools/common/session.h"
#include "tools/inputs/tensors.h"

namespace fuselite::tools {
namespace {

using ::testing::HasSubstr;

// "its weights in int8" would be about the line above.
TEST(ZooTest, DescriptionsOfOtherFormsNameTheModel) {
  for (const ZooModel& entry : Zoo()) {
    for (const ZooModel& other : Zoo()) {
      if (!entry.name.starts_with(std::string(other.name) + "_")) continue;
      EXPECT_THAT(std::string(entry.description), HasSubstr(std::string(other.name)));
    }
  }
}

TEST(ZooTest, EveryModelIsTakenWholeAndAgreesWithTheReference) {
  const auto options = partitioner::ParseOptions({}, [](const char*) { return nullptr; });
  ASSERT_TRUE(options.ok());
  for (const ZooModel& entry : Zoo()) {
    SCOPED_TRACE(entry.name);
    const auto model = OpenModel("zoo:" + std::string(entry.name));
    ASSERT_TRUE(model.ok()) << model.status().message();
    const Result<Session> reference = OpenSession(*model, {.num_threads = 2}, {});
    const Result<Session> fuselite =
        OpenSession(*model, {.num_threads = 2}, {.fuselite = &*options});
    ASSERT_TRUE(reference.ok()) << reference.status().message();
    ASSERT_TRUE(fuselite.ok()) << fuselite.status().message();
    const DelegateCounts counts = CountDelegated(*fuselite->delegate);
    EXPECT_EQ(counts.claimed, counts.nodes);
    EXPECT_EQ(counts.partitions, 1);
    EXPECT_GT(counts.steps, 0);
    for (const Session* session : {&*reference, &*fuselite}) {
      Status status = FillRandom(*session->interpreter, 7);
      if (status.ok()) status = session->interpreter->Invoke();
      ASSERT_TRUE(status.ok()) << status.message();
    }
    const interpreter::TensorView output = reference->interpreter->output(0);
    const Difference difference =
        Compare(*CopyTensor(fuselite->interpreter->output(0)), *CopyTensor(output));
    EXPECT_GT(difference.range, 0);
    const double part = AllowedPart(**model, options->precision);
    EXPECT_LE(difference.max, DefaultTolerance(output.type, difference.range, part));
  }
}

// The probabilities that the model gives for an input, both as real numbers. The integers end in
// what the network makes probabilities of.
std::vector<double> Probabilities(const std::string& name, std::span<const double> input) {
  const auto model = OpenModel("zoo:" + name);
  const Result<Session> session = OpenSession(*model, {.num_threads = 2}, {});
  interpreter::Interpreter& runs = *session->interpreter;
  const interpreter::TensorView in = runs.input(0), out = runs.output(0);
  for (size_t i = 0; i < input.size(); ++i) {
    if (in.type == DataType::kFloat32) {
      static_cast<float*>(in.data)[i] = static_cast<float>(input[i]);
      continue;
    }
    const bool is_signed = in.type == DataType::kInt8;
    const double stored = in.quantization.zero_point() + input[i] / in.quantization.scale();
    const double nearest =
        std::clamp(std::round(stored), is_signed ? -128.0 : 0.0, is_signed ? 127.0 : 255.0);
    static_cast<uint8_t*>(in.data)[i] = static_cast<uint8_t>(static_cast<int>(nearest));
  }
  EXPECT_TRUE(runs.Invoke().ok());
  std::vector<double> values = ToDoubles(*CopyTensor(out));
  if (out.type == DataType::kFloat32) return values;
  double sum = 0;
  for (double& value : values) {
    value = std::exp((value - out.quantization.zero_point()) * out.quantization.scale());
    sum += value;
  }
  for (double& value : values) value /= sum;
  return values;
}

// Other forms of a network compute about the same, which a wrong scale would not: their mean error
// is at most 0.7% of the range.
TEST(ZooTest, FormsComputeAboutWhatTheirNetworkDoes) {
  const std::pair<std::string, std::vector<const char*>> networks[] = {
      {"mobilenet_v1", {"int8", "uint8", "dynamic"}},
      {"mobilenet_v2", {"int8", "float16"}},
      {"transformer", {"int8", "dynamic"}}};
  for (const auto& [network, forms] : networks) {
    kernels::testing::Random random(7);
    std::vector<double> input(network == "transformer" ? 128 * 192 : 224 * 224 * 3);
    for (double& value : input) value = random.Float(-1, 1);
    const std::vector<double> expected = Probabilities(network, input);
    const auto [least, most] = std::ranges::minmax(expected);
    for (const char* form : forms) {
      SCOPED_TRACE(network + " " + form);
      const std::vector<double> actual = Probabilities(network + "_" + form, input);
      ASSERT_EQ(actual.size(), expected.size());
      double sum = 0;
      for (size_t i = 0; i < actual.size(); ++i) sum += std::abs(actual[i] - expected[i]);
      EXPECT_LE(sum / static_cast<double>(actual.size()), 0.01 * (most - least));
    }
  }
}

TEST(ZooTest, UnknownNamesAreAnsweredWithTheKnownOnes) {
  EXPECT_THAT(OpenModel("zoo:mobilenet_v9").status().message(), HasSubstr("mobilenet_v2"));
}

}  // namespace
}  // namespace fuselite::tools
