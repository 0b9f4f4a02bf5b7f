#include "runtime/helper_cores.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "runtime/parallel.h"

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

// A helper that does nothing until the end of the test.
class HelperCoresTest : public testing::Test {
 protected:
  HelperCoresTest() {
    helper_ = std::thread([this] {
      placed_.Enter(1);
      entered_.set_value(ThisThread());
      end_.get_future().wait();
    });
    id_ = entered_.get_future().get();
  }
  ~HelperCoresTest() override {
    end_.set_value();
    helper_.join();
  }

  HelperCores placed_{2};  // the second helper never came
  pid_t id_ = 0;
  const std::vector<int> cores_ = CoresOf(0);

 private:
  std::promise<pid_t> entered_;
  std::promise<void> end_;
  std::thread helper_;
};

TEST_F(HelperCoresTest, GivesBackWhatItTook) {
  if (cores_.size() < 2) GTEST_SKIP() << kOneCore;
  for (int core : {cores_[0], cores_[1], cores_[1], cores_[0]}) {
    placed_.KeepOff(core);
    EXPECT_EQ(CoresOf(id_), Without(cores_, core));
  }
  EXPECT_EQ(CoresOf(0), cores_) << "the caller's own";
}

TEST_F(HelperCoresTest, KeepsWhatTheHostHasChosenSince) {
  if (cores_.size() < 2) GTEST_SKIP() << kOneCore;
  placed_.KeepOff(cores_[0]);
  SetCores(id_, {cores_[0]});
  placed_.KeepOff(cores_[1]);
  EXPECT_EQ(CoresOf(id_), std::vector<int>{cores_[0]});
  SetCores(id_, cores_);
  placed_.KeepOff(cores_[1]);
  EXPECT_EQ(CoresOf(id_), Without(cores_, cores_[1]));
}

TEST_F(HelperCoresTest, LeavesTheOnlyCore) {
  SetCores(id_, {cores_[0]});
  placed_.KeepOff(cores_[0]);
  EXPECT_EQ(CoresOf(id_), std::vector<int>{cores_[0]});
}

TEST_F(HelperCoresTest, PassesOverWhatNoCoreIs) {
  for (int core : {-1, CPU_SETSIZE, 1 << 30}) placed_.KeepOff(core);
  EXPECT_EQ(CoresOf(id_), cores_);
}

// The helper's cores in a region that begins after the helper of the last one has gone to sleep.
std::vector<int> CoresOfAWokenHelper() {
  std::this_thread::sleep_for(5ms);
  std::vector<int> cores;
  std::atomic<bool> came{false};
  ParallelRegion(2, [&](int thread, int) {
    if (thread == 1) {
      cores = CoresOf(0);
      came = true;
    }
    const auto end = steady_clock::now() + 10s;
    while (!came && steady_clock::now() < end) std::this_thread::yield();
  });
  return cores;
}

TEST(Regions, WakeTheirHelpersElsewhere) {
  const std::vector<int> cores = CoresOf(0);
  if (cores.size() < 2 || !HasCoreForEach(2)) GTEST_SKIP() << kOneCore;
  ASSERT_FALSE(CoresOfAWokenHelper().empty());  // the team is made, with all cores
  for (int core : {cores[0], cores[1], cores[0]}) {
    SetCores(0, {core});
    EXPECT_EQ(CoresOfAWokenHelper(), Without(cores, core));
  }
  SetCores(0, cores);
}

}  // namespace
}  // namespace fuselite::internal
