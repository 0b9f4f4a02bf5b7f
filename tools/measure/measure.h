// Timing invokes the way TensorFlow Lite's benchmark_model does.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/support/status.h"

namespace fuselite::tools {

struct MeasureLimits {
  int min_runs = 50;
  double min_seconds = 1, max_seconds = 150;
  double delay_seconds = 0;    // between runs, not timed
  double runs_per_second = 0;  // 0: one after the other
};

// The share of a measurement that is done, from 0 to 1 and beyond: of the slower of the minima, or
// of the maximum where that is nearer.
double ShareDone(const MeasureLimits& limits, int64_t runs, double elapsed_seconds);

// Calls `run` until both minima are reached or the maximum is; the times in microseconds.
// `done` hears after each run which share is done.
Result<std::vector<double>> Measure(const MeasureLimits& limits, const std::function<Status()>& run,
                                    const std::function<void(double share)>& done);

// The most that the process occupies, looked at every so often by a thread: what getrusage tells
// includes what came before.
class PeakMemoryMonitor {
 public:
  explicit PeakMemoryMonitor(std::chrono::milliseconds interval);
  ~PeakMemoryMonitor() { Stop(); }
  PeakMemoryMonitor(const PeakMemoryMonitor&) = delete;
  PeakMemoryMonitor& operator=(const PeakMemoryMonitor&) = delete;

  // Ends the watch; the greatest size in bytes, 0 where the system does not tell.
  int64_t Stop();

 private:
  void Watch(std::chrono::milliseconds interval);

  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  int64_t peak_ = 0;
  std::thread thread_;
};

// What the process occupies now and at most so far, in bytes; 0 where the system does not tell.
int64_t ResidentBytes();
int64_t PeakResidentBytes();

}  // namespace fuselite::tools
