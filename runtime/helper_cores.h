// Which cores the helpers of a team wake up on. Only runtime/parallel_team and the tests of threads
// include this.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <atomic>
#include <memory>

namespace fuselite::internal {

// Keeps sleeping helpers off the core on which their caller runs.
//
// Linux starts a woken thread on its waker's core unless another one looks idle, and in a virtual
// machine an idle core often does not (its host has taken it away). Caller and helper then take
// turns on one core until the next balancing: 4 to 12 ms measured on Linux 6.18, so that a model
// run 30 times a second gained nothing from its second thread.
class HelperCores {
 public:
  // Where memory is short, nothing is ever changed.
  explicit HelperCores(int helpers);

  // The calling thread is helper `number`, in [1, helpers].
  void Enter(int number);

  // Takes `core` (of sched_getcpu) out of the cores that each helper may use, and gives back the
  // one that was taken before. Cores that somebody else has taken from or given to a helper in the
  // meantime stay so, and a helper that has no other core keeps this one. Two system calls for a
  // helper. Not for two threads at once.
  void KeepOff(int core);

 private:
  struct Helper {
    std::atomic<pid_t> id{0};
    cpu_set_t given;   // without our doing
    cpu_set_t placed;  // what KeepOff() made of it; empty before the first time
  };

  const int helpers_;
  const std::unique_ptr<Helper[]> all_;
};

}  // namespace fuselite::internal
