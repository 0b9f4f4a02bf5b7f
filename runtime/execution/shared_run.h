// One run of an Execution by several threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>

#include "runtime/execution/execution.h"
#include "runtime/support/first_error.h"
#include "runtime/threads/parallel.h"
#include "runtime/threads/parallel_wait.h"

namespace fuselite {

// A thread of a run that several threads share.
struct Member {
  int number = 0, count = 1;  // of the run's members, from 0: whose part and scratch are its own
  int thread = 0;             // for the profile
};

// Preconditions: everything is bound, and Prepare() was called for as many threads as there are
// members. One at a time for an execution.
class Execution::SharedRun {
 public:
  // `region_threads`: of the region that the members are in; where they outnumber the cores, nobody
  // spins for another one.
  SharedRun(Execution& execution, const RunOptions& options, int region_threads);

  // Walks through all stages, works on what is left of each, and waits where the next one needs
  // what others still work on; behind the last one it waits for nobody. Who comes late finds the
  // first stages done, and what members that never come had for their own is done by the others.
  // All members name the same count. With an error, work is still claimed and counted, but no
  // longer done.
  void Join(const Member& member);

  // The first error. Precondition: all who joined are through.
  Status Take() { return error_.Take(); }

 private:
  // Where a member is.
  struct Walk;

  SharedWork WorkOf(size_t stage, const Member& member) const;
  // Fetches some of what the member will read from stage `stage` on; false where nothing is left to
  // fetch.
  bool FetchFor(size_t stage, Walk& walk) const;
  void WaitForAllBelow(size_t end, Walk& walk);
  void RunStage(size_t stage, std::span<const Call> calls, Walk& walk);
  // `range`: the units to run, of the one call; null for all units of each call.
  void RunCalls(std::span<const Call> calls, const SharedWork::Range* range, const Member& member);
  Status RunCall(const Call& call, const SharedWork::Range* range, const Member& member);

  Execution& execution_;
  const RunOptions& options_;
  const std::span<const Stage> stages_;
  const std::chrono::nanoseconds spin_;
  const uint32_t tag_;
  internal::Sleepers sleepers_;  // until a stage is complete
  internal::FirstError error_;
};

}  // namespace fuselite
