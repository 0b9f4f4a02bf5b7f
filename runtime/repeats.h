// How an Executable that repeats another one (Executable::Repeat) runs. Only Execution includes
// this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/execution.h"

namespace fuselite::internal {

class Repeats {
 public:
  explicit Repeats(std::shared_ptr<const Executable> executable);

  // As Execution's.
  Status Prepare(int threads);
  void ReleaseMemory();

  void BindInput(size_t index, const std::byte* data) { inputs_[index].data = data; }
  void BindOutput(size_t index, std::byte* data) { outputs_[index].data = data; }

  // Whole repetitions go to the threads as they come; the last ones, too few for all threads, are
  // shared from within. `run` counts in the profile.
  Status Run(const RunOptions& options, int threads, uint32_t run);

 private:
  template <class Byte>
  struct Bound {
    size_t bytes = 0;  // of one repetition
    Byte* data = nullptr;
  };
  Status RunOne(int repeat, int thread, const RunOptions& options);

  const std::shared_ptr<const Executable> executable_;
  std::vector<Bound<const std::byte>> inputs_;
  std::vector<Bound<std::byte>> outputs_;
  std::vector<std::unique_ptr<Execution>> of_threads_;
};

}  // namespace fuselite::internal
