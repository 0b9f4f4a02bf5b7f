// How an Executable that repeats another one (Executable::Repeat) runs. Only Execution includes
// this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/execution/execution.h"
#include "runtime/execution/shared_run.h"

namespace fuselite::internal {

// Threads take repetitions as they come, each with an execution of its own. What is left then is
// too few for all of them: those repetitions are shared by several threads each.
class Repeats {
 public:
  // `spare`: see Execution.
  Repeats(std::shared_ptr<const Executable> executable, SpareMemory* spare);

  // See Execution::Prepare and ReleaseMemory.
  Status Prepare(int threads) { return Prepare(Divide(threads)); }
  void ReleaseMemory();

  void BindInput(size_t index, const std::byte* data) { inputs_[index].data = data; }
  void BindOutput(size_t index, std::byte* data) { outputs_[index].data = data; }

  // `run` counts in the profile.
  Status Run(const RunOptions& options, int threads, uint32_t run);

 private:
  template <class Byte>
  struct Bound {
    size_t bytes = 0;  // of one repetition
    Byte* data = nullptr;
  };
  struct Shared {
    Shared(const std::shared_ptr<const Executable>& part, SpareMemory* spare)
        : execution(part, spare) {}
    Execution execution;
    std::optional<Execution::SharedRun> run;
  };
  // So many threads take repetitions. The first `alone` ones have a thread each; the `shared` ones
  // behind them have places for so many members, of which the first that comes is enough.
  struct Division {
    int threads = 1, alone = 0, shared = 0, members = 0;
    int places() const { return alone + shared * members; }
  };
  // Repetitions are shared where each of the threads has a core: by eight threads on two cores,
  // three samples of MobileNetV2 took 1.27 times as long as alone.
  Division Divide(int threads) const;
  Status Prepare(const Division& division);
  Status MakeExecutions(size_t of_threads, size_t shared);
  void Bind(Execution& execution, int repeat) const;

  const std::shared_ptr<const Executable> executable_;
  SpareMemory* const spare_;
  std::vector<Bound<const std::byte>> inputs_;
  std::vector<Bound<std::byte>> outputs_;
  std::vector<std::unique_ptr<Execution>> of_threads_;
  std::vector<std::unique_ptr<Shared>> shared_;
};

}  // namespace fuselite::internal
