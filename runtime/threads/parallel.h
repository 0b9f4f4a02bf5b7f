// Threads: the one place where the library runs on more than the caller's.
//
// Work is what threads wait for, never each other: a region's helpers join when they get a core,
// and what they have not claimed by then the others do. A helper that wakes late, or never, costs
// nothing. docs/threads.md has the measurements behind this.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "runtime/support/function_ref.h"

namespace fuselite {

// Runs `body(thread, threads)` on the calling thread, as thread 0, and on up to threads - 1
// helpers, each with a number of its own in [1, threads). Returns when all calls that began have
// ended. `body` must get everything done however few helpers join, and must not throw. Returns the
// `threads` that `body` was given: fewer than asked for where other regions occupy the machine's
// cores or where the system refuses threads.
//
// Any thread may call this at any time, also after fork() in the child, and from inside a region.
// Helpers block all signals but those that instructions raise (SIGSEGV, SIGBUS, ...), and run with
// the floating-point control state of the caller. They spin for about 0.1 ms after a region, then
// sleep.
int ParallelRegion(int threads, FunctionRef<void(int thread, int threads)> body);

// Ends the helpers that wait for a region; the next region makes new ones. Returns before they are
// gone. LLVM's OpenMP keeps their threads, asleep, for whoever asks next; GCC's does not.
void ReleaseIdleThreads();

// One per cache line, so that threads that write their own do not meet.
struct alignas(64) WorkCell {
  std::atomic<uint64_t> word{0};
};

namespace internal {
// Every x86-64 core takes the instruction, those that lack it as one that does nothing; compilers
// emit it for newer cores alone.
inline void FetchToWrite(const void* line) {
#if defined(__x86_64__)
  __asm__ volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}
}  // namespace internal

// A list of independent units that the threads of a region share. Each thread has a part of its
// own, the same for equal lists, so that consecutive lists find their data in the same core's
// cache; who has finished takes from the parts of others.
//
// The state lives in kCells cells for each thread. A tag other than all recent ones of these cells
// makes a fresh list of them: no clearing between uses.
class SharedWork {
 public:
  // Two cells: one says what is claimed of the thread's part, one what the thread has done. Who
  // waits looks at the second one, which only the thread writes: a count that all write travels
  // between the cores with each of them.
  static constexpr int kCells = 2;

  struct Range {
    int64_t begin = 0, end = 0;
  };

  // `grain`: the fewest units worth a claim of their own, at least 1.
  SharedWork(WorkCell* cells, uint32_t tag, int64_t units, int64_t grain, int threads);

  // The first unit that `thread` claims of its own part; all units for `threads` itself.
  int64_t FirstUnit(int thread) const { return std::min(units_, PartBegin(thread) * block_); }
  // Asks for the cells that `thread` will write, which other cores looked at last: a store would
  // wait for them, on some machines a quarter of a microsecond.
  void FetchCells(int thread) const {
    internal::FetchToWrite(&cells_[thread]);
    internal::FetchToWrite(&cells_[threads_ + thread]);
  }
  // Claims the next range of a part; false when everything of it is claimed. Every thread takes
  // from its own part first, then from those behind it.
  bool Claim(int part, Range& range);
  // Reports as done all `units` that `thread` has claimed by now, whosever part they were of: a
  // sequentially consistent store, for Sleepers::Wake() after it.
  void Finish(int thread, int64_t units);
  // Whether thread 0 has claimed of its part, or somebody else for it.
  bool Begun() const;
  // Whether all units are done; what was written by then is visible.
  bool Done() const;

 private:
  // Parts are counted in blocks of units.
  int64_t PartBegin(int part) const { return (blocks_ * part + threads_ - 1) / threads_; }

  WorkCell* cells_;
  uint32_t tag_;
  int threads_;
  int64_t units_, block_, blocks_;
};

// Runs `body(begin, end)` over [0, units), split among up to `threads` threads. Opens no region for
// fewer than two grains.
void ParallelFor(int threads, int64_t units, int64_t grain,
                 FunctionRef<void(int64_t begin, int64_t end)> body);

// The cores that the process may use now: affinity and control groups counted. Reads the system.
int AllowedCores();

// Whether a region of so many threads has a core for each, by the last look at the system: only
// then is spinning for one another worth it.
bool HasCoreForEach(int threads);

}  // namespace fuselite
