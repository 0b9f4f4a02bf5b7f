#include "partitioner/report/profile_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace fuselite::partitioner {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

StepTimes Step(const char* name, const char* kernel, int64_t runs, int64_t wall, int64_t min,
               int64_t max) {
  return {name, kernel, "OPS of it", runs, wall, 2 * wall, min, max};
}

TEST(AddTimesTest, SumsWhatTheSameStepsTook) {
  std::vector<StepTimes> times = {Step("a", "k", 2, 100, 40, 60), Step("b", "k", 0, 0, 0, 0)};
  AddTimes(times, {Step("a", "k", 3, 300, 30, 200), Step("b", "k", 1, 7, 7, 7)});
  ASSERT_THAT(times, SizeIs(2));
  EXPECT_EQ(times[0].runs, 5);
  EXPECT_EQ(times[0].wall_ns, 400);
  EXPECT_EQ(times[0].busy_ns, 800);
  EXPECT_EQ(times[0].min_wall_ns, 30);
  EXPECT_EQ(times[0].max_wall_ns, 200);
  // The first run of a step is its shortest one so far, though nothing is shorter than 0.
  EXPECT_EQ(times[1].min_wall_ns, 7);
  // What did not run changes nothing.
  AddTimes(times, {Step("a", "k", 0, 0, 0, 0), Step("b", "k", 1, 9, 9, 9)});
  EXPECT_EQ(times[0].min_wall_ns, 30);
  EXPECT_EQ(times[1].min_wall_ns, 7);
  EXPECT_EQ(times[1].runs, 2);
}

TEST(AddTimesTest, OtherStepsTakeTheirPlace) {
  const StepTimes before = Step("a", "k", 2, 100, 40, 60);
  for (const std::vector<StepTimes>& more :
       {std::vector{Step("b", "k", 1, 5, 5, 5)},
        {Step("a", "other", 1, 5, 5, 5)},
        {Step("a", "k", 1, 5, 5, 5), Step("b", "k", 1, 5, 5, 5)}}) {
    std::vector<StepTimes> times = {before};
    AddTimes(times, more);
    ASSERT_EQ(times.size(), more.size());
    EXPECT_EQ(times[0].name, more[0].name);
    EXPECT_EQ(times[0].kernel, more[0].kernel);
    EXPECT_EQ(times[0].wall_ns, 5);
  }
}

TEST(WriteProfileTest, TheEndingOfANameChoosesTheForm) {
  const ProfiledPartitions profile = {{{0, 3}, {Step("a", "k", 2, 3000, 1000, 2000)}},
                                      {{1, 0}, {Step("b", "k", 0, 0, 0, 0)}}};
  const auto written = [&](const char* name) {
    const std::string path = ::testing::TempDir() + name;
    EXPECT_TRUE(WriteProfile(profile, path).ok());
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    std::filesystem::remove(path);
    return text.str();
  };
  EXPECT_EQ(written("profile.txt"),
            R"(graph 0, partition from node 3
      avg us      min us      max us       %     runs  step
         1.5         1.0         2.0   100.0        2  a  OPS of it  [k]
graph 1, partition from node 0
      avg us      min us      max us       %     runs  step
         0.0         0.0         0.0     0.0        0  b  OPS of it  [k]
)");
  const auto json = nlohmann::json::parse(written("profile.json"));
  ASSERT_EQ(json.at("partitions").size(), 2u);
  EXPECT_EQ(json.at("partitions").at(0).at("first_node"), 3);
  EXPECT_EQ(json.at("partitions").at(0).at("steps").at(0), nlohmann::json::parse(R"({
    "name": "a", "kernel": "k", "ops": "OPS of it", "runs": 2, "wall_ns": 3000, "busy_ns": 6000,
    "min_wall_ns": 1000, "max_wall_ns": 2000})"));
  EXPECT_THAT(WriteProfile(profile, "/nowhere/at/all").message(), HasSubstr("/nowhere/at/all"));
}

}  // namespace
}  // namespace fuselite::partitioner
