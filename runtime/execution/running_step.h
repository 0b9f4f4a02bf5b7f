// What runs do beside the kernel of a step: look whether to stop, measure it, name its errors.
#pragma once

#include <cstdint>

#include "runtime/execution/executable.h"
#include "runtime/execution/execution.h"
#include "runtime/execution/profile.h"
#include "runtime/support/status.h"

namespace fuselite::internal {

// Whether somebody wants the run to end.
bool WantsStop(const RunOptions& options);

// The error of a run that ends before `step` because somebody wants it to.
Status Stopped(const RunOptions& options, const Step& step);

// What was just thrown, as an error. For handlers only.
Status Caught(const Step& step);

// Records the time between construction and destruction, where there is a profile.
class StepTimer {
 public:
  StepTimer(Profile* profile, uint32_t run, int step, int thread)
      : profile_(profile), event_{run, step, thread, profile ? NowNs() : 0, 0} {}
  StepTimer(const StepTimer&) = delete;
  StepTimer& operator=(const StepTimer&) = delete;
  ~StepTimer() {
    if (profile_ != nullptr) Record();
  }

 private:
  static int64_t NowNs();
  void Record();

  Profile* profile_;
  ProfileEvent event_;
};

}  // namespace fuselite::internal
