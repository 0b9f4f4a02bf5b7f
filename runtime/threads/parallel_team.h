// The helpers of parallel regions. Only runtime/threads/parallel.cc and the tests of threads
// include this.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdint>

#include "runtime/support/function_ref.h"
#include "runtime/threads/helper_cores.h"
#include "runtime/threads/parallel_wait.h"

namespace fuselite::internal {

// pthread_create, or what a test puts in its place to refuse threads.
using CreateThread = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
extern std::atomic<CreateThread> create_thread;

// `helpers` threads that wait for regions, inside one OpenMP parallel region that stays open. Its
// first thread is made here, so the OpenMP runtime's own pool belongs to a thread that a forked
// child does not have: the child starts afresh instead of waiting for threads that are gone.
class Team {
 public:
  // nullptr where the system refuses the first thread. Where it refuses more, the team has fewer
  // helpers than asked for; nobody waits for the missing ones.
  static Team* Create(int helpers);

  // Runs a region with the calling thread as thread 0. One region at a time.
  void Run(int threads, FunctionRef<void(int, int)> body);
  // Ends the helpers and gives the team up; no region may follow.
  void Retire();

  int helpers() const { return helpers_; }

 private:
  Team(int helpers, std::chrono::nanoseconds spin)
      : helpers_(helpers), spin_(spin), cores_(helpers) {}
  static void* Main(void* argument);
  // Deletes the team when the last of its owners is done with it: whoever retires it, the leader,
  // every helper.
  void Disown();
  // Lets idle helpers see that a region is open, or that the team is retired.
  void CallHelpers();
  // The life of one helper, numbered from 1.
  void Help(int number);

  // A region is open while kOpen is set; the count below it is of helpers inside. Above: the
  // region's number, so that a helper that woke for an earlier one does not enter.
  static constexpr uint64_t kOpen = uint64_t{1} << 31;
  static constexpr uint64_t kInside = kOpen - 1;

  const int helpers_;
  const std::chrono::nanoseconds spin_;           // zero where threads outnumber cores
  alignas(64) std::atomic<uint32_t> regions_{0};  // so many were opened
  Sleepers idle_;                                 // helpers, until another one is
  HelperCores cores_;
  alignas(64) std::atomic<uint64_t> state_{0};
  Sleepers leaving_;  // who closed a region, until the last helper has left it
  // The body of the open region; written before it opens.
  const FunctionRef<void(int, int)>* body_ = nullptr;
  int threads_ = 0;
  uint64_t float_state_ = 0;
  std::atomic<bool> retired_{false};
  std::atomic<int> owners_{2};
};

// Runs `body(index, count)` on `threads` threads of the OpenMP runtime, or of none, the caller
// among them as index 0; fewer where fewer are granted. Defined in parallel_openmp.cc.
void RunOpenMpTeam(int threads, FunctionRef<void(int index, int count)> body);
// As RunOpenMpTeam(), on threads of the standard library.
void RunPlainTeam(int threads, FunctionRef<void(int index, int count)> body);

}  // namespace fuselite::internal
