#include "runtime/execution/repeats.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "runtime/support/first_error.h"
#include "runtime/threads/parallel.h"

namespace fuselite::internal {

Repeats::Repeats(std::shared_ptr<const Executable> executable, SpareMemory* spare)
    : executable_(std::move(executable)), spare_(spare) {
  const Executable& part = *executable_->part();
  for (int i = 0; i < part.inputs(); ++i) inputs_.push_back({part.input_bytes(i)});
  for (int i = 0; i < part.outputs(); ++i) outputs_.push_back({part.output_bytes(i)});
}

Repeats::Division Repeats::Divide(int threads) const {
  const int repeats = executable_->repeats(), shared = repeats % threads;
  const int places = shared > 0 ? (threads + shared - 1) / shared : 0;
  const int members = std::min(places, executable_->part()->useful_threads());
  if (members < 2 || !HasCoreForEach(threads))
    return {.threads = std::min(threads, repeats), .alone = repeats};
  return {threads, repeats - shared, shared, members};
}

Status Repeats::MakeExecutions(size_t of_threads, size_t shared) {
  const std::shared_ptr<const Executable>& part = executable_->part();
  try {
    while (of_threads_.size() < of_threads) {
      of_threads_.push_back(std::make_unique<Execution>(part, spare_));
    }
    while (shared_.size() < shared) shared_.push_back(std::make_unique<Shared>(part, spare_));
  } catch (const std::bad_alloc&) {
    return OutOfMemory("no memory left for ", of_threads + shared, " parts of a batch at a time");
  }
  return {};
}

Status Repeats::Prepare(const Division& division) {
  const auto of_threads = static_cast<size_t>(division.alone > 0 ? division.threads : 0),
             shared = static_cast<size_t>(division.shared);
  FUSELITE_RETURN_IF_ERROR(MakeExecutions(of_threads, shared));
  for (size_t i = 0; i < of_threads; ++i) FUSELITE_RETURN_IF_ERROR(of_threads_[i]->Prepare(1));
  for (size_t i = 0; i < shared; ++i) {
    FUSELITE_RETURN_IF_ERROR(shared_[i]->execution.Prepare(division.members));
  }
  return {};
}

void Repeats::ReleaseMemory() {
  of_threads_.clear();
  shared_.clear();
}

void Repeats::Bind(Execution& execution, int repeat) const {
  const auto at = static_cast<size_t>(repeat);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    execution.BindInput(static_cast<int>(i), inputs_[i].data + at * inputs_[i].bytes);
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    execution.BindOutput(static_cast<int>(i), outputs_[i].data + at * outputs_[i].bytes);
  }
}

Status Repeats::Run(const RunOptions& options, int threads, uint32_t run) {
  const Division division = Divide(threads);
  FUSELITE_RETURN_IF_ERROR(Prepare(division));  // fewer threads than before may share more
  RunOptions of_part = options;
  of_part.run = run;
  for (int i = 0; i < division.shared; ++i) {
    Shared& shared = *shared_[static_cast<size_t>(i)];
    Bind(shared.execution, division.alone + i);
    shared.run.emplace(shared.execution, of_part, division.threads);
  }
  FirstError error;
  const auto take = [&](int place, int thread) -> Status {
    if (place < division.alone) {
      Execution& execution = *of_threads_[static_cast<size_t>(thread)];
      Bind(execution, place);
      RunOptions alone = of_part;
      alone.threads = 1;
      alone.thread = thread;
      return execution.Run(alone);
    }
    const int at = place - division.alone;
    Execution::SharedRun& shared = *shared_[static_cast<size_t>(at % division.shared)]->run;
    shared.Join({.number = at / division.shared, .count = division.members, .thread = thread});
    return {};
  };
  std::atomic<int> next{0};
  ParallelRegion(division.threads, [&](int thread, int) {
    for (int place = next++; place < division.places() && !error.any(); place = next++) {
      if (Status status = take(place, thread); !status.ok()) error.Set(std::move(status));
    }
  });
  for (int i = 0; i < division.shared; ++i) {
    if (Status status = shared_[static_cast<size_t>(i)]->run->Take(); !status.ok()) {
      error.Set(std::move(status));
    }
  }
  return error.Take();
}

}  // namespace fuselite::internal
