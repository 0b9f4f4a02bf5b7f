#include "runtime/threads/helper_cores.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/threads/parallel.h"

namespace fuselite::internal {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr char kOneCore[] = "this process may use one core alone";

pid_t ThisThread() { return static_cast<pid_t>(syscall(SYS_gettid)); }

std::vector<int> CoresOf(pid_t thread) {
  cpu_set_t set;
  std::vector<int> cores;
  if (sched_getaffinity(thread, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

void SetCores(pid_t thread, const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int core : cores) CPU_SET(core, &set);
  ASSERT_EQ(sched_setaffinity(thread, sizeof set, &set), 0);
}

std::vector<int> Without(std::vector<int> cores, int core) {
  cores.erase(std::remove(cores.begin(), cores.end(), core), cores.end());
  return cores;
}

// The cores of the calling thread again as they were, whatever happens in between.
class KeepsCores {
 public:
  ~KeepsCores() { SetCores(0, cores); }
  const std::vector<int> cores = CoresOf(0);
};

// Helpers that rest on cores that the test says, and arrive when it says so.
class RestingHelpers {
 public:
  RestingHelpers(HelperCores& cores, const std::vector<int>& on) {
    for (size_t i = 0; i < on.size(); ++i) {
      steps_.push_back(std::make_unique<Steps>());
      Steps& steps = *steps_.back();
      const int number = static_cast<int>(i) + 1, core = on[i];
      threads_.emplace_back([&cores, &steps, number, core] {
        const std::vector<int> all = CoresOf(0);
        SetCores(0, {core});
        SetCores(0, all);
        cores.Rest(number);
        steps.rests.set_value(ThisThread());
        steps.wake.get_future().wait();
        cores.Arrive(number);
        steps.arrived.set_value();
        steps.end.get_future().wait();
        cores.Arrive(number);
        steps.last = CoresOf(0);
      });
      ids.push_back(steps.rests.get_future().get());
    }
  }
  ~RestingHelpers() {
    for (size_t i = 0; i < threads_.size(); ++i) {
      if (threads_[i].joinable()) End(i);
    }
  }
  void Wake(size_t i) {
    steps_[i]->woken = true;
    steps_[i]->wake.set_value();
    steps_[i]->arrived.get_future().wait();
  }
  // It arrives once more; which cores it has then.
  std::vector<int> End(size_t i) {
    if (!steps_[i]->woken) steps_[i]->wake.set_value();
    steps_[i]->end.set_value();
    threads_[i].join();
    return steps_[i]->last;
  }

  std::vector<pid_t> ids;

 private:
  struct Steps {
    std::promise<pid_t> rests;
    std::promise<void> wake, arrived, end;
    bool woken = false;
    std::vector<int> last;
  };
  std::vector<std::unique_ptr<Steps>> steps_;
  std::vector<std::thread> threads_;
};

TEST(HelperCoresTest, SendsAHelperOffTheCallersCoreUntilItArrives) {
  const std::vector<int> cores = CoresOf(0);
  if (cores.size() < 2) GTEST_SKIP() << kOneCore;
  HelperCores placed(2);  // the second helper never comes
  RestingHelpers helpers(placed, {cores[0]});
  for (int core : {cores[0], cores[1], cores[1], cores[0]}) {
    placed.SendElsewhere(core);
    EXPECT_EQ(CoresOf(helpers.ids[0]), Without(cores, core));
  }
  EXPECT_EQ(CoresOf(0), cores) << "the caller's own";
  helpers.Wake(0);
  EXPECT_EQ(CoresOf(helpers.ids[0]), cores);
}

// There are four cores, 0 to 3; other numbers are no cores.
TEST(HelperCoresTest, ChoosesCoresThatNobodyElseIsOn) {
  const auto set_of = [](const std::vector<int>& cores) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int core : cores) CPU_SET(core, &set);
    return set;
  };
  struct {
    std::vector<int> given;
    int caller;
    std::vector<int> others, chosen;
  } const kCases[] = {{{0, 1, 2, 3}, 0, {}, {1, 2, 3}},
                      {{0, 1, 2, 3}, 0, {2}, {1, 3}},
                      {{0, 1, 2, 3}, 0, {1, 2, 3}, {1, 2, 3}},
                      {{0, 1}, 0, {1}, {1}},
                      {{0, 1}, 3, {1}, {0}},
                      {{2}, 2, {}, {}},
                      {{0, 1}, -1, {-1}, {0, 1}},
                      {{0, 1}, 1 << 30, {CPU_SETSIZE}, {0, 1}}};
  for (const auto& [given, caller, others, chosen] : kCases) {
    const cpu_set_t found = CoresElsewhere(set_of(given), caller, set_of(others)),
                    expected = set_of(chosen);
    EXPECT_TRUE(CPU_EQUAL(&found, &expected)) << testing::PrintToString(given) << caller;
  }
}

TEST(HelperCoresTest, SendsHelpersApart) {
  const std::vector<int> cores = CoresOf(0);
  if (cores.size() < 3) GTEST_SKIP() << "this process may use less than three cores";
  HelperCores placed(2);
  RestingHelpers helpers(placed, {cores[1], cores[2]});
  placed.SendElsewhere(cores[0]);
  EXPECT_EQ(CoresOf(helpers.ids[0]), Without(Without(cores, cores[0]), cores[2]));
  EXPECT_EQ(CoresOf(helpers.ids[1]), Without(Without(cores, cores[0]), cores[1]));
}

TEST(HelperCoresTest, KeepsWhatTheHostHasChosen) {
  const std::vector<int> cores = CoresOf(0);
  if (cores.size() < 2) GTEST_SKIP() << kOneCore;
  HelperCores placed(1);
  RestingHelpers helpers(placed, {cores[0]});
  SetCores(helpers.ids[0], {cores[1]});
  placed.SendElsewhere(cores[0]);
  EXPECT_EQ(CoresOf(helpers.ids[0]), std::vector<int>{cores[1]});
  placed.SendElsewhere(cores[1]);
  EXPECT_EQ(CoresOf(helpers.ids[0]), std::vector<int>{cores[1]}) << "it has no other";
  helpers.Wake(0);
  EXPECT_EQ(CoresOf(helpers.ids[0]), std::vector<int>{cores[1]});
  SetCores(helpers.ids[0], {cores[0]});
  EXPECT_EQ(helpers.End(0), std::vector<int>{cores[0]}) << "nobody has sent it elsewhere since";
}

TEST(HelperCoresTest, PassesOverWhatNoCoreIs) {
  const std::vector<int> cores = CoresOf(0);
  HelperCores placed(1);
  RestingHelpers helpers(placed, {cores[0]});
  for (int core : {-1, CPU_SETSIZE, 1 << 30}) placed.SendElsewhere(core);
  EXPECT_EQ(CoresOf(helpers.ids[0]), cores);
}

// The helper's cores, and the one that it is on, in a region that begins after the helper of the
// last one has gone to sleep.
struct Seen {
  std::vector<int> cores;
  int core = -1;
};
Seen WokenHelper() {
  std::this_thread::sleep_for(5ms);
  Seen seen;
  std::atomic<bool> came{false};
  ParallelRegion(2, [&](int thread, int) {
    if (thread == 1) {
      seen = {CoresOf(0), sched_getcpu()};
      came = true;
    }
    const auto end = steady_clock::now() + 10s;
    while (!came && steady_clock::now() < end) std::this_thread::yield();
  });
  return seen;
}

// Not each time: on a busy machine a helper may not have come to sleep, or is moved as it wakes up.
TEST(Regions, WakeTheirHelpersElsewhere) {
  const KeepsCores kept;
  if (kept.cores.size() != 2 || !HasCoreForEach(2)) GTEST_SKIP() << "there are not two cores";
  WokenHelper();  // the team is made, with both cores
  for (int core : {kept.cores[0], kept.cores[1], kept.cores[0]}) {
    SetCores(0, {core});
    bool elsewhere = false, free = false;
    for (int attempt = 0; attempt < 100 && !(elsewhere && free); ++attempt) {
      const Seen seen = WokenHelper();
      elsewhere = seen.core != core;
      free = seen.cores == kept.cores;
    }
    EXPECT_TRUE(elsewhere) << "the caller is on core " << core;
    EXPECT_TRUE(free) << "it may not be moved";
  }
}

}  // namespace
}  // namespace fuselite::internal
