#include "runtime/repeats.h"

#include <atomic>
#include <new>
#include <utility>

#include "runtime/first_error.h"
#include "runtime/parallel.h"

namespace fuselite::internal {

Repeats::Repeats(std::shared_ptr<const Executable> executable)
    : executable_(std::move(executable)) {
  const Executable& part = *executable_->part();
  for (int i = 0; i < part.inputs(); ++i) inputs_.push_back({part.input_bytes(i)});
  for (int i = 0; i < part.outputs(); ++i) outputs_.push_back({part.output_bytes(i)});
}

Status Repeats::Prepare(int threads) {
  try {
    while (static_cast<int>(of_threads_.size()) < threads) {
      of_threads_.push_back(std::make_unique<Execution>(executable_->part()));
    }
  } catch (const std::bad_alloc&) {
    return OutOfMemory("no memory left for ", threads, " threads' parts of a batch");
  }
  for (int thread = 0; thread < threads; ++thread) {
    // The first one also runs what all threads share.
    const bool shares = thread == 0 && executable_->repeats() % threads != 0;
    FUSELITE_RETURN_IF_ERROR(of_threads_[thread]->Prepare(shares ? threads : 1));
  }
  return {};
}

void Repeats::ReleaseMemory() {
  for (const auto& execution : of_threads_) execution->ReleaseMemory();
}

Status Repeats::Run(const RunOptions& options, int threads, uint32_t run) {
  const int repeats = executable_->repeats(), even = repeats / threads * threads;
  std::atomic<int> next{0};
  FirstError error;
  ParallelRegion(threads, [&](int thread, int) {
    RunOptions alone = options;
    alone.threads = 1;
    alone.run = run;
    alone.thread = thread;
    for (int i = next++; i < even && !error.any(); i = next++) {
      Status status = RunOne(i, thread, alone);
      if (!status.ok()) error.Set(std::move(status));
    }
  });
  if (error.any()) return error.Take();
  RunOptions together = options;
  together.threads = threads;
  together.run = run;
  for (int i = even; i < repeats; ++i) {
    FUSELITE_RETURN_IF_ERROR(RunOne(i, 0, together));
  }
  return {};
}

Status Repeats::RunOne(int repeat, int thread, const RunOptions& options) {
  Execution& execution = *of_threads_[thread];
  const auto at = static_cast<size_t>(repeat);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    execution.BindInput(static_cast<int>(i), inputs_[i].data + at * inputs_[i].bytes);
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    execution.BindOutput(static_cast<int>(i), outputs_[i].data + at * outputs_[i].bytes);
  }
  return execution.Run(options);
}

}  // namespace fuselite::internal
