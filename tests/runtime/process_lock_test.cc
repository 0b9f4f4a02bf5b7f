#include "runtime/support/process_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace fuselite {
namespace {

// The exit status of a child that does this, and is ended after 20 s.
template <class Body>
int InChild(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    body();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

// Threads hold two of three locks most of the time, in one order.
class Holders {
 public:
  Holders() {
    for (int t = 0; t < 2; ++t) {
      threads_.emplace_back([this, t] {
        while (!stop_) {
          const ProcessLock first(mutexes[t]);
          const ProcessLock second(mutexes[2]);
        }
      });
    }
  }
  ~Holders() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

  std::mutex mutexes[3];

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

TEST(ProcessLockTest, IsFreeInAChildWhateverOtherThreadsHold) {
  Holders holders;
  for (int i = 0; i < 100; ++i) {
    const int status = InChild([&] {
      for (std::mutex& mutex : holders.mutexes) const ProcessLock lock(mutex);
    });
    ASSERT_EQ(status, 0) << "in child " << i;
  }
}

TEST(ProcessLockTest, AThreadThatForksWithALockGoesOn) {
  std::mutex own, another;
  const ProcessLock lock(own);
  EXPECT_EQ(InChild([&] { const ProcessLock inner(another); }), 0);
}

std::atomic<int> before{0}, in_parent{0}, in_child{0};

TEST(ProcessLockTest, HandlersAreCalledAroundAFork) {
  static ForkHandler handler{
      .before = [] { ++before; }, .in_parent = [] { ++in_parent; }, .in_child = [] { ++in_child; }};
  AddForkHandler(handler);
  EXPECT_EQ(InChild([] { _exit(before == 1 && in_child == 1 && in_parent == 0 ? 0 : 1); }), 0);
  EXPECT_EQ(before, 1);
  EXPECT_EQ(in_parent, 1);
  EXPECT_EQ(in_child, 0);
}

}  // namespace
}  // namespace fuselite
