// Timing invokes the way TensorFlow Lite's benchmark_model does.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/status.h"

namespace fuselite::tools {

struct MeasureLimits {
  int min_runs = 50;
  double min_seconds = 1, max_seconds = 150;
  double delay_seconds = 0;    // between runs, not timed
  double runs_per_second = 0;  // 0: one after the other
};

// Calls `run` until both minima are reached or the maximum is; the times in microseconds.
// `done` hears of each run.
Result<std::vector<double>> Measure(const MeasureLimits& limits, const std::function<Status()>& run,
                                    const std::function<void(int64_t runs)>& done);

// What the process occupies now and at most so far, in bytes; 0 where the system does not tell.
int64_t ResidentBytes();
int64_t PeakResidentBytes();

}  // namespace fuselite::tools
