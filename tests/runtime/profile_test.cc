// The times of steps that a profile keeps and sums.
#include "runtime/execution/profile.h"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/execution/execution.h"
#include "tests/runtime/toy_kernels.h"

namespace fuselite {
namespace {

constexpr int64_t kN = 257;

std::shared_ptr<const Executable> TwoSteps(const char* first, const char* second) {
  constexpr size_t kBytes = kN * sizeof(float);
  ExecutableBuilder b;
  const int in = b.AddInput(kBytes), out = b.AddOutput(kBytes), t = b.AddTemporary(kBytes);
  b.AddStep(MakeStep(first, AddKernel(kN), {in, -1}, {t}));
  b.AddStep(MakeStep(second, AddKernel(kN), {t, -1}, {out}));
  return BuildOrDie(std::move(b));
}

TEST(Profile, TimesEveryStepOfEveryRun) {
  const auto executable = TwoSteps("first", "second");
  Execution execution(executable);
  std::vector<float> in(kN), out(kN);
  execution.BindInput(0, in.data());
  execution.BindOutput(0, out.data());
  Profile profile;
  for (const int threads : {1, 1, 3}) {
    ASSERT_TRUE(execution.Run({.threads = threads, .profile = &profile}).ok());
  }
  ASSERT_TRUE(execution.Run({.threads = 2}).ok());
  const std::vector<StepTimes> times = profile.Summarize(*executable);
  ASSERT_EQ(times.size(), executable->steps().size());
  for (size_t i = 0; i < times.size(); ++i) {
    EXPECT_EQ(times[i].name, executable->steps()[i].name);
    EXPECT_EQ(times[i].kernel, "toy");
    EXPECT_EQ(times[i].runs, 3);
    EXPECT_GE(times[i].min_wall_ns, 0);
    EXPECT_LE(times[i].max_wall_ns, times[i].wall_ns);
    EXPECT_LE(3 * times[i].min_wall_ns, times[i].wall_ns);
  }
  EXPECT_FALSE(profile.overflowed());
  profile.Clear();
  EXPECT_TRUE(profile.Events().empty());
}

// A step's time goes from its first thread's start to its last one's end; runs count apart, and
// events of other executables not at all.
TEST(Profile, SumsWhatThreadsDidInEachRun) {
  const auto executable = TwoSteps("idle", "busy");
  Profile profile;
  for (const ProfileEvent& event : std::vector<ProfileEvent>{{1, 1, 0, 100, 50},
                                                             {1, 1, 1, 90, 20},
                                                             {1, 1, 2, 120, 60},
                                                             {2, 1, 0, 500, 30},
                                                             {3, 1, 0, 900, 200},
                                                             {1, -1, 0, 0, 1000},
                                                             {1, 2, 0, 0, 1000},
                                                             {1, 1 << 30, 0, 0, 1000}}) {
    profile.Record(event);
  }
  const std::vector<StepTimes> times = profile.Summarize(*executable);
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].runs, 0);
  EXPECT_EQ(times[0].busy_ns, 0);
  EXPECT_EQ(times[1].runs, 3);
  EXPECT_EQ(times[1].busy_ns, 50 + 20 + 60 + 30 + 200);
  EXPECT_EQ(times[1].wall_ns, 90 + 30 + 200);
  EXPECT_EQ(times[1].min_wall_ns, 30);
  EXPECT_EQ(times[1].max_wall_ns, 200);
}

TEST(Profile, HoldsEightRunsAtLeast) {
  const auto executable = TwoSteps("first", "second");
  struct {
    std::shared_ptr<const Executable> executable;
    int holds;
  } const kRuns[] = {{executable, 16384}, {Executable::Repeat(executable, 1100), 8 * 2 * 1100}};
  for (const auto& [run, holds] : kRuns) {
    const std::unique_ptr<Profile> profile = Profile::For(*run);
    for (int i = 0; i < holds; ++i) profile->Record({1, 0, 0, i, 1});
    EXPECT_FALSE(profile->overflowed()) << holds;
    profile->Record({1, 0, 0, 0, 1});
    EXPECT_TRUE(profile->overflowed()) << holds;
  }
}

// Threads that repeat steps are in different ones at a time: a step takes what it takes of each.
TEST(Profile, SharesTheTimesOfRepetitionsAmongThreads) {
  const auto repeated = Executable::Repeat(TwoSteps("first", "second"), 3);
  Profile profile;
  for (const ProfileEvent& event : std::vector<ProfileEvent>{
           {1, 0, 0, 100, 50}, {1, 0, 1, 100, 30}, {1, 0, 0, 900, 20}, {1, 1, 0, 150, 7}}) {
    profile.Record(event);
  }
  const std::vector<StepTimes> times = profile.Summarize(*repeated);
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].wall_ns, (50 + 30 + 20) / 2);
  EXPECT_EQ(times[0].busy_ns, 50 + 30 + 20);
  EXPECT_EQ(times[1].wall_ns, 7);
}

TEST(Profile, KeepsTheLastEvents) {
  Profile profile(4);
  for (int i = 0; i < 10; ++i) profile.Record({1, i, 0, i, 1});
  const std::vector<ProfileEvent> events = profile.Events();
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events.front().step, 6);
  EXPECT_EQ(events.back().step, 9);
  EXPECT_TRUE(profile.overflowed());
}

}  // namespace
}  // namespace fuselite
