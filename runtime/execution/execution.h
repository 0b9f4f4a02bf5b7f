// One running instance of an Executable: its memory, its bound pointers.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/execution/executable.h"
#include "runtime/execution/profile.h"
#include "runtime/execution/streaming_kernel.h"
#include "runtime/memory/aligned_buffer.h"
#include "runtime/memory/spare_memory.h"
#include "runtime/support/status.h"
#include "runtime/threads/parallel.h"
#include "runtime/threads/thread_choice.h"

namespace fuselite {

struct RunOptions {
  int threads = 1;  // at most: a run of some microseconds takes fewer where these are faster
  // Looked at between steps.
  std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt;
  const std::atomic<bool>* cancel = nullptr;  // stop when it becomes true
  Profile* profile = nullptr;
  // For the profile of an execution that is a part of another run: that run's number, 0 standing
  // for the execution's own count, and the number of the thread that calls.
  uint32_t run = 0;
  int thread = 0;
};

namespace internal {
class Repeats;
}

// Several executions of one executable run at the same time; one execution runs once at a time and
// is bound from the thread that runs it.
class Execution {
 public:
  // Takes its memory from `spare` and gives it back to it where that is not null. Precondition: it
  // outlives the execution, and those that share it neither run nor are prepared at the same time.
  explicit Execution(std::shared_ptr<const Executable> executable, SpareMemory* spare = nullptr);
  ~Execution();
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  // What is bound stays bound until something else is, and must be valid while a run lasts; it is
  // aligned to its element at least. Binding what is bound already costs a comparison.
  // Precondition: `index` is below the executable's count.
  void BindInput(int index, const void* data) { Bind(inputs_, index, const_cast<void*>(data)); }
  void BindOutput(int index, void* data) { Bind(outputs_, index, data); }
  void BindVariable(int index, void* data) { Bind(variables_, index, data); }
  // What is bound there; null where nothing is.
  const void* input(int index) const { return inputs_[static_cast<size_t>(index)].data; }

  // Takes the memory that runs with so many threads need. Runs do so by themselves; calling it
  // before moves the time and the possible failure to a better place.
  Status Prepare(int threads);
  // Gives the memory back, for hosts that keep many idle instances. The next run takes it again.
  void ReleaseMemory();

  // Runs all steps. On an error (a kernel's: named with its step; kCancelled; kDeadlineExceeded)
  // outputs and variables are undefined, and the next run works as if nothing had been.
  Status Run(const RunOptions& options = {});

  const Executable& executable() const { return *executable_; }

  // A run by threads that are there already (runtime/execution/shared_run.h).
  class SharedRun;

 private:
  // A place in slots_ that holds an address within something that the caller binds.
  struct Patch {
    size_t slot, offset;
  };
  struct Binding {
    std::byte* data = nullptr;
    size_t bytes = 0;
    std::vector<Patch> patches;
  };
  struct StepSlots {
    size_t inputs, outputs;  // first indices in slots_
  };
  // One phase of a step as thread 0 runs the whole of it: nothing is left to look up.
  struct Call {
    const Kernel* kernel = nullptr;
    KernelArgs args{};
    int64_t units = 0;
    int phase = 0, step = 0;
  };
  // A stage whose kernel reads constants from memory. No kernel: there is none.
  struct Stream {
    size_t stage = 0;
    const StreamingKernel* kernel = nullptr;
  };

  void AddSlot(int value_id);
  AlignedBuffer Take(size_t bytes) const {
    return spare_ != nullptr ? spare_->Take(bytes) : AlignedBuffer(bytes);
  }
  void Give(AlignedBuffer& memory) const;
  void Bind(std::vector<Binding>& bindings, int index, void* data) {
    Binding& binding = bindings[static_cast<size_t>(index)];
    if (binding.data != data) Rebind(binding, data);
  }
  void Rebind(Binding& binding, void* data);
  Status CheckBound() const;
  void MakeCalls();
  void FindStreams();
  std::byte* ScratchOf(int thread) const;
  Status RunWith(const RunOptions& options, int threads);
  Status RunRepeats(const RunOptions& options, int threads);
  Status RunAlone(const RunOptions& options);
  Status RunShared(const RunOptions& options, int threads);
  // The number of a run that begins: never 0, which is what fresh cells are tagged with.
  uint32_t BeginRun() { return ++run_ == 0 ? ++run_ : run_; }

  const std::shared_ptr<const Executable> executable_;
  SpareMemory* const spare_;
  std::vector<void*> slots_;  // the operands of all steps, one after the other
  std::vector<StepSlots> step_slots_;
  std::vector<Patch> arena_patches_;
  std::vector<Binding> inputs_, outputs_, variables_;
  bool all_bound_ = false;  // as CheckBound() said since the last change
  std::vector<Call> calls_;
  std::vector<Stream> streams_;  // for each stage the next one that streams, itself included
  AlignedBuffer arena_, scratch_;
  std::unique_ptr<WorkCell[]> cells_;  // for each stage, as many as SharedWork needs
  int prepared_threads_ = 0;
  ThreadChoice choice_;
  uint32_t run_ = 0;
  std::unique_ptr<internal::Repeats> repeats_;  // null unless the executable repeats another one
};

}  // namespace fuselite
