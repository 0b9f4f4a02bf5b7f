// The files that options name: what became of each node, and the times of steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/partitioner/delegate_fixture.h"

namespace fuselite::partitioner {
namespace {

using ::testing::HasSubstr;
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
  EXPECT_THAT(Read(options.explain_file), HasSubstr("not yet prepared"));
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

TEST_F(FilesTest, AFileThatCannotBeWrittenFailsNothing) {
  const int out = Layer(input_);
  host_.SetOutputs({out});
  Options options = DefaultOptions();
  options.explain_file = options.profile_file = "/nowhere/at/all.json";
  Apply(options);
  EXPECT_EQ(host_.Prepare(), kTfLiteOk);
  EXPECT_EQ(host_.Invoke(), kTfLiteOk);
}

}  // namespace
}  // namespace fuselite::partitioner
