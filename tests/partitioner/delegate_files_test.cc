// The files that options name: what became of each node, and the times of steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/support/log.h"
#include "tests/partitioner/delegate_fixture.h"

namespace fuselite::partitioner {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing;
using namespace tflite;

class FilesTest : public DelegateTest {
 protected:
  std::string Path(const std::string& name) const { return ::testing::TempDir() + name; }
  static std::string Read(const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
};

TEST_F(FilesTest, ExplainFileSaysWhatBecameOfEachNode) {
  const int out = Layers(Custom(Layers(input_, 4)), 5);
  host_.SetOutputs({out});
  Options options = DefaultOptions();
  options.explain_file = Path("fuselite_explain.txt");
  Apply(options);
  EXPECT_THAT(Read(options.explain_file), HasSubstr("not yet compiled"));
  ASSERT_EQ(host_.Prepare(), kTfLiteOk);
  const std::string text = Read(options.explain_file);
  EXPECT_THAT(text, HasSubstr("10 nodes, 9 taken, in 2 partitions"));
  EXPECT_THAT(text, HasSubstr("left to the host: the operator is not implemented"));
  EXPECT_THAT(text, HasSubstr("partition 1: 5 nodes"));
  std::filesystem::remove(options.explain_file);
}

TEST_F(FilesTest, ProfileFileHasTheStepsTimes) {
  const int out = Layers(input_, 2);
  host_.SetOutputs({out});
  Options options = DefaultOptions();
  options.profile_file = Path("fuselite_profile.txt");
  Apply(options);
  ASSERT_EQ(host_.Prepare(), kTfLiteOk);
  ASSERT_EQ(host_.Invoke(), kTfLiteOk);
  ASSERT_EQ(host_.Invoke(), kTfLiteOk);
  host_.DropKernels();
  const std::string text = Read(options.profile_file);
  EXPECT_THAT(text, HasSubstr("partition from node 0"));
  EXPECT_THAT(text, HasSubstr("FULLY_CONNECTED"));
  std::filesystem::remove(options.profile_file);
}

// Each partition by the first of the host's nodes in it, whatever is computed ahead of that one.
TEST_F(FilesTest, ProfilesAddUpForEachPartition) {
  const int made = host_.AddTensor({1, kWidth}), sum = host_.AddTensor({1, kWidth});
  host_.AddNode("NEG", {host_.AddConstant({1, kWidth}, Ramp(kWidth))}, {made});
  const int custom = Custom(Layers(input_, 4));
  host_.AddNode("ADD", {custom, made}, {sum});
  host_.SetOutputs({Layers(sum, 4)});
  Options options = DefaultOptions();
  options.profile_file = Path("fuselite_profile.txt");
  Apply(options);
  ASSERT_EQ(host_.Prepare(), kTfLiteOk) << host_.errors.back();
  for (int run = 0; run < 3; ++run) ASSERT_EQ(host_.Invoke(), kTfLiteOk);
  host_.DropKernels();
  std::vector<int> first_nodes;
  for (const auto& [key, steps] : delegate_->state()->profile().Times()) {
    first_nodes.push_back(key.first_node);
    for (const StepTimes& step : steps) EXPECT_EQ(step.runs, 3) << step.ops;
  }
  EXPECT_THAT(first_nodes, ::testing::ElementsAre(0, 6));
  std::filesystem::remove(options.profile_file);
}

// What went well is not worth a word.
TEST_F(FilesTest, AFileThatIsWrittenIsNotWarnedOf) {
  host_.SetOutputs({Layer(input_)});
  Options options = DefaultOptions();
  options.explain_file = Path("fuselite_explain.txt");
  options.verbose = true;
  ::testing::internal::CaptureStderr();
  Apply(options);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), Not(HasSubstr("fuselite: \n")));
  std::filesystem::remove(options.explain_file);
}

TEST_F(FilesTest, AFileThatCannotBeWrittenFailsNothing) {
  const int out = Layer(input_);
  host_.SetOutputs({out});
  Options options = DefaultOptions();
  options.explain_file = options.profile_file = "/nowhere/at/all.json";
  Apply(options);
  EXPECT_EQ(host_.Prepare(), kTfLiteOk);
  EXPECT_EQ(host_.Invoke(), kTfLiteOk);
}

TEST_F(FilesTest, AFileThatCannotBeWrittenIsSaidToWhoeverListens) {
  host_.SetOutputs({Layer(input_)});
  Options options = DefaultOptions();
  options.explain_file = "/nowhere/at/all.json";
  for (const bool verbose : {false, true}) {
    options.verbose = verbose;
    ::testing::internal::CaptureStderr();
    Apply(options);
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(said.find("fuselite: /nowhere/at/all.json") != said.npos, verbose);
    EXPECT_EQ(said.find("FULLY_CONNECTED") != said.npos, verbose);
    EXPECT_EQ(said.empty(), !verbose);
  }
}

// Messages of the log, one a line, with their level.
class LogTest : public FilesTest {
 protected:
  void SetUp() override {
    SetLogLevel(LogLevel::kDebug);
    SetLogSink(
        [](LogLevel level, std::string_view message, void* lines) {
          static_cast<std::vector<std::string>*>(lines)->push_back(
              std::string(LogLevelName(level)) + ": " + std::string(message));
        },
        &lines_);
  }
  void TearDown() override {
    SetLogLevel(LogLevel::kOff);
    SetLogSink(nullptr);
  }
  std::vector<std::string> lines_;
};

TEST_F(LogTest, WarnsOfNoFilesThatNobodyNamed) {
  host_.SetOutputs({Layers(input_, 2)});
  Options options = DefaultOptions();
  options.keep_events = true;
  Apply(options);
  ASSERT_EQ(host_.Prepare(), kTfLiteOk);
  ASSERT_EQ(host_.Invoke(), kTfLiteOk);
  host_.DropKernels();
  EXPECT_THAT(lines_, Each(Not(HasSubstr("warning"))));
}

TEST_F(LogTest, SaysWhatWasTakenAndWhyNot) {
  host_.SetOutputs({Layers(Custom(Layers(input_, 4)), 5)});
  Options options = DefaultOptions();
  options.isa = Isa::kScalar;
  options.jit = false;
  Apply(options);
  EXPECT_THAT(lines_, Contains("info: isa scalar, jit off, fusion on; took 9 of 10 nodes, "
                               "partitions: 2"));
  EXPECT_THAT(lines_, Contains("debug: node 4 custom operator Foo is left to the host: the "
                               "operator is not implemented"));
  EXPECT_THAT(lines_, Each(Not(HasSubstr("error"))));
  EXPECT_THAT(lines_, Each(Not(HasSubstr("node 3"))));
  lines_.clear();
  options.jit = true;
  options.fusion = false;
  Apply(options);
  EXPECT_THAT(lines_, Contains(HasSubstr("jit on, fusion off")));
}

TEST_F(LogTest, SaysWhatWasGivenUp) {
  host_.SetOutputs({Layer(input_)});
  host_.fail_plan = true;
  Apply(DefaultOptions());
  EXPECT_THAT(lines_, Contains("error: the host does not show its execution plan"));
  host_.fail_plan = false;
  lines_.clear();
  Options options = DefaultOptions();
  options.explain_file = "/nowhere/at/all.json";
  Apply(options);
  EXPECT_THAT(lines_, Contains(HasSubstr("warning: /nowhere/at/all.json")));
}

}  // namespace
}  // namespace fuselite::partitioner
