// Runs that threads join as they come.
#include "runtime/execution/shared_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "tests/runtime/random_network.h"

namespace fuselite {
namespace {

using testing::HasSubstr;

// Lets the members of `numbers` join, each some microseconds later than asked for by `late`.
void JoinAll(Execution::SharedRun& run, const std::vector<int>& numbers, int count,
             const std::vector<int>& late) {
  std::vector<std::thread> threads;
  for (size_t i = 0; i < numbers.size(); ++i) {
    threads.emplace_back([&, i] {
      std::this_thread::sleep_for(std::chrono::microseconds(late[i]));
      run.Join({.number = numbers[i], .count = count, .thread = numbers[i]});
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(SharedRun, NeedsNoneOfItsMembersButOne) {
  std::mt19937 random(20261127);
  constexpr int kMembers = 4;
  for (unsigned seed = 0; seed < 30; ++seed) {
    const auto executable = RandomNetwork(seed);
    ASSERT_NE(executable, nullptr);
    const std::vector<float> in = Ramp(static_cast<float>(seed));
    std::vector<float> expected(2 * kN), out(2 * kN, -1.0f);
    Execution alone(executable), shared(executable);
    for (auto [execution, to] : {std::pair(&alone, &expected), std::pair(&shared, &out)}) {
      execution->BindInput(0, in.data());
      execution->BindOutput(0, to->data());
    }
    ASSERT_TRUE(alone.Run().ok());
    ASSERT_TRUE(shared.Prepare(kMembers).ok());
    for (int round = 0; round < 8; ++round) {
      std::vector<int> numbers, late;
      for (int number = 0; number < kMembers; ++number) {
        if (random() % 3 == 0 && !(number == kMembers - 1 && numbers.empty())) continue;
        numbers.push_back(number);
        late.push_back(random() % 2 ? 0 : static_cast<int>(random() % 200));
      }
      std::ranges::fill(out, -1.0f);
      const RunOptions options;
      Execution::SharedRun run(shared, options, kMembers);
      JoinAll(run, numbers, kMembers, late);
      ASSERT_TRUE(run.Take().ok());
      ASSERT_EQ(out, expected) << "seed " << seed << ", round " << round << ", " << numbers.size()
                               << " members";
    }
  }
}

TEST(SharedRun, EndsWithTheFirstErrorForAllMembers) {
  ExecutableBuilder b;
  const int in = b.AddInput(kBytes), out = b.AddOutput(kBytes);
  std::atomic<int> behind{0};
  const int between = b.AddTemporary(kBytes);
  b.AddStep(MakeStep("fails",
                     ToyKernel(kN,
                               [](const KernelArgs&, int, int64_t, int64_t) -> Status {
                                 return InvalidArgument("no such value");
                               }),
                     {in}, {between}));
  b.AddStep(MakeStep("behind",
                     ToyKernel(kN,
                               [&](const KernelArgs&, int, int64_t, int64_t) {
                                 ++behind;
                                 return Status();
                               }),
                     {between}, {out}));
  Execution execution(BuildOrDie(std::move(b)));
  std::vector<float> values(kN);
  execution.BindInput(0, values.data());
  execution.BindOutput(0, values.data());
  ASSERT_TRUE(execution.Prepare(3).ok());
  const RunOptions options;
  Execution::SharedRun run(execution, options, 3);
  JoinAll(run, {0, 1, 2}, 3, {0, 0, 0});
  EXPECT_THAT(run.Take().ToString(), HasSubstr("fails"));
  EXPECT_EQ(behind, 0);
}

// One of two units takes until the step behind it, which needs neither, has begun.
TEST(SharedRun, WaitsForNothingThatItDoesNotNeed) {
  ExecutableBuilder b;
  std::atomic<bool> begun{false}, met{false};
  const auto wait = [&](const KernelArgs&, int, int64_t begin, int64_t) {
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (begin == 0 && !begun && std::chrono::steady_clock::now() < patience) {
      std::this_thread::yield();
    }
    if (begun) met = true;
    return Status();
  };
  const auto begin = [&](const KernelArgs&, int, int64_t, int64_t) {
    begun = true;
    return Status();
  };
  b.AddStep(MakeStep("waits", ToyKernel(2, wait), {}, {b.AddOutput(4)}));
  b.AddStep(MakeStep("begins", ToyKernel(2, begin), {}, {b.AddOutput(4)}));
  Execution execution(BuildOrDie(std::move(b)));
  ASSERT_TRUE(execution.Prepare(2).ok());
  const RunOptions options;
  Execution::SharedRun run(execution, options, 2);
  JoinAll(run, {0, 1}, 2, {0, 0});
  ASSERT_TRUE(run.Take().ok());
  EXPECT_TRUE(met);
}

// The profile names the thread, whichever member it is.
TEST(SharedRun, ProfilesTheThreadsThatJoined) {
  const auto executable = RandomNetwork(1);
  Execution execution(executable);
  const std::vector<float> in = Ramp();
  std::vector<float> out(2 * kN);
  execution.BindInput(0, in.data());
  execution.BindOutput(0, out.data());
  ASSERT_TRUE(execution.Prepare(2).ok());
  Profile profile(1000);
  const RunOptions options{.profile = &profile, .run = 7};
  Execution::SharedRun run(execution, options, 2);
  run.Join({.number = 1, .count = 2, .thread = 5});
  ASSERT_TRUE(run.Take().ok());
  ASSERT_FALSE(profile.Events().empty());
  for (const ProfileEvent& event : profile.Events()) {
    EXPECT_EQ(event.thread, 5);
    EXPECT_EQ(event.run, 7u);
  }
}

}  // namespace
}  // namespace fuselite
