#include "tools/measure/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <sstream>
#include <thread>

#include "tools/measure/op_profile.h"
#include "tools/measure/statistics.h"

namespace fuselite::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(MeasureTest, RunsUntilBothMinimaAreReached) {
  std::vector<double> shares;
  const auto times = Measure(
      {.min_runs = 4, .min_seconds = 0}, [] { return Status(); },
      [&](double share) { shares.push_back(share); });
  ASSERT_TRUE(times.ok());
  EXPECT_THAT(*times, SizeIs(4));
  ASSERT_THAT(shares, SizeIs(4));
  EXPECT_EQ(shares.back(), 1);
}

TEST(MeasureTest, TheShareIsOfTheSlowerMinimumOrTheMaximum) {
  const MeasureLimits limits = {.min_runs = 10, .min_seconds = 2, .max_seconds = 8};
  EXPECT_DOUBLE_EQ(ShareDone(limits, 10, 1), 0.5) << "enough runs, not enough time";
  EXPECT_DOUBLE_EQ(ShareDone(limits, 1, 2), 0.25) << "few runs, and the end comes by time";
  EXPECT_DOUBLE_EQ(ShareDone(limits, 5, 2), 0.5);
  EXPECT_DOUBLE_EQ(ShareDone({.min_runs = 0, .min_seconds = 0}, 1, 0), 1);
}

TEST(MeasureTest, StopsAtTheMaximumButRunsOnce) {
  const auto slow = [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return Status();
  };
  const auto times =
      Measure({.min_runs = 1000, .min_seconds = 100, .max_seconds = 0}, slow, [](double) {});
  ASSERT_TRUE(times.ok());
  ASSERT_THAT(*times, SizeIs(1));
  EXPECT_GE(times->front(), 5000) << "microseconds";
}

TEST(PeakMemoryMonitorTest, SeesWhatIsAllocated) {
  constexpr size_t kBytes = size_t{64} << 20;
  const int64_t before = ResidentBytes();
  if (before == 0) GTEST_SKIP() << "the system does not tell";
  PeakMemoryMonitor monitor(std::chrono::hours(1));
  const std::vector<char> large(kBytes, 1);
  const int64_t peak = monitor.Stop();
  EXPECT_GE(peak, before + static_cast<int64_t>(kBytes / 2));
  EXPECT_EQ(monitor.Stop(), peak) << "stopping twice";
  EXPECT_EQ(large.back(), 1);
}

TEST(MeasureTest, ErrorsEndIt) {
  const auto times = Measure(
      {}, [] { return Internal("broken"); }, [](double) {});
  EXPECT_EQ(times.status().message(), "broken");
}

TEST(SummarizeTest, SummarizesSamples) {
  const std::vector<double> samples = {3, 1, 2, 5, 4};
  const Summary summary = Summarize(samples);
  EXPECT_EQ(summary.count, 5u);
  EXPECT_EQ(summary.first, 3);
  EXPECT_EQ(summary.current, 4);
  EXPECT_EQ(summary.min, 1);
  EXPECT_EQ(summary.max, 5);
  EXPECT_EQ(summary.mean, 3);
  EXPECT_EQ(summary.median, 3);
  EXPECT_NEAR(summary.deviation, 1.41421, 1e-5);
  EXPECT_EQ(Summarize({}).count, 0u);
}

TEST(OpProfileTest, PrintsThreeTables) {
  const std::vector<OpTime> ops = {
      {.type = "CONV_2D", .name = "a", .first_ms = 1, .total_ms = 2, .runs = 2},
      {.type = "ADD", .name = "b", .first_ms = 3, .total_ms = 6, .runs = 2}};
  std::ostringstream out;
  PrintOpProfile(ops, out);
  const std::string text = out.str();
  EXPECT_THAT(text, HasSubstr("Run Order"));
  EXPECT_THAT(text, HasSubstr("Top by Computation Time"));
  EXPECT_THAT(text, HasSubstr("Summary by node type"));
  EXPECT_THAT(text, HasSubstr("75.000%"));
  const size_t top = text.find("Top by");
  EXPECT_LT(text.find("ADD", top), text.find("CONV_2D", top)) << "the slower one comes first";
  std::ostringstream csv;
  PrintOpProfileCsv(ops, csv);
  EXPECT_THAT(csv.str(), HasSubstr("CONV_2D, 0, 1, 1, 25%, 25%, 0, 1, a\n"));
}

}  // namespace
}  // namespace fuselite::tools
