// Which cores the helpers of a team wake up on. Only runtime/parallel_team and the tests of threads
// include this.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <atomic>
#include <memory>

namespace fuselite::internal {

// Where a helper wakes up that may run on the cores `given`: on none of the others' where it has
// such a core, and not on the caller's; empty where it has no other than that.
cpu_set_t CoresElsewhere(const cpu_set_t& given, int caller, const cpu_set_t& others);

// Has helpers wake up beside their caller and each other, not behind them.
//
// Linux starts a woken thread on its waker's core unless another one looks idle, and in a
// virtual machine an idle core often does not (its host has taken it away). Caller and helper then
// take turns on one core until the next balancing: 4 to 12 ms measured on Linux 6.18, so that a
// model run 30 times a second gained nothing from its second thread. So the caller bounds the cores
// of a helper that sleeps; the helper wakes up on one of them, takes the bounds back, and may be
// moved like any thread.
class HelperCores {
 public:
  // Where memory is short, helpers wake up wherever the system lets them.
  explicit HelperCores(int helpers);

  // For helper `number`, in [1, helpers], before it waits: it is asleep on the core that it is on.
  void Rest(int number);
  // For it when it has woken up or begun. A system call where it was sent elsewhere.
  void Arrive(int number);
  // For the caller, who runs on `core` (of sched_getcpu), before it wakes the helpers: two system
  // calls for each of the first eight. A helper without another core stays as it is, and what
  // somebody else has made of its cores holds. Not for two threads at once.
  void SendElsewhere(int core);

 private:
  struct Helper {
    std::atomic<pid_t> id{0};
    std::atomic<int> core{-1};       // that it rests on
    std::atomic<bool> bound{false};  // `given` is what it has to take back; else it may be written
    cpu_set_t given;
  };

  const int helpers_;
  const std::unique_ptr<Helper[]> all_;
};

}  // namespace fuselite::internal
