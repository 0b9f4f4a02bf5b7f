#include "runtime/execution/running_step.h"

#include <chrono>

#include "runtime/support/caught.h"

namespace fuselite::internal {

using std::chrono::steady_clock;

bool WantsStop(const RunOptions& options) {
  return (options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed)) ||
         (options.deadline && steady_clock::now() >= *options.deadline);
}

Status Stopped(const RunOptions& options, const Step& step) {
  if (options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed)) {
    return Status(StatusCode::kCancelled, "cancelled before " + step.name);
  }
  return Status(StatusCode::kDeadlineExceeded, "the deadline passed before " + step.name);
}

Status Caught(const Step& step) {
  return fuselite::Caught(Join(step.name, " in ", step.kernel->name()));
}

int64_t StepTimer::NowNs() {
  const auto now = steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

void StepTimer::Record() {
  event_.duration_ns = NowNs() - event_.start_ns;
  profile_->Record(event_);
}

}  // namespace fuselite::internal
