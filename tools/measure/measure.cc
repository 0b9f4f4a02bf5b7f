#include "tools/measure/measure.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

namespace fuselite::tools {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

double ShareDone(const MeasureLimits& limits, int64_t runs, double elapsed_seconds) {
  const auto share = [](double done, double of) { return of > 0 ? done / of : 1; };
  return std::max(std::min(share(static_cast<double>(runs), limits.min_runs),
                           share(elapsed_seconds, limits.min_seconds)),
                  share(elapsed_seconds, limits.max_seconds));
}

Result<std::vector<double>> Measure(const MeasureLimits& limits, const std::function<Status()>& run,
                                    const std::function<void(double share)>& done) {
  std::vector<double> times;
  const Clock::time_point begin = Clock::now();
  while (true) {
    const double elapsed = SecondsSince(begin);
    const auto runs = static_cast<int64_t>(times.size());
    const bool enough = runs >= limits.min_runs && elapsed >= limits.min_seconds;
    if (enough || (runs > 0 && elapsed >= limits.max_seconds)) return times;
    const Clock::time_point start = Clock::now();
    FUSELITE_RETURN_IF_ERROR(run());
    times.push_back(SecondsSince(start) * 1e6);
    done(ShareDone(limits, runs + 1, SecondsSince(begin)));
    if (limits.delay_seconds > 0) {
      std::this_thread::sleep_for(std::chrono::duration<double>(limits.delay_seconds));
    }
    if (limits.runs_per_second > 0) {
      std::this_thread::sleep_until(start +
                                    std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(1 / limits.runs_per_second)));
    }
  }
}

PeakMemoryMonitor::PeakMemoryMonitor(std::chrono::milliseconds interval)
    : thread_([this, interval] { Watch(interval); }) {}

void PeakMemoryMonitor::Watch(std::chrono::milliseconds interval) {
  std::unique_lock lock(mutex_);
  do {
    peak_ = std::max(peak_, ResidentBytes());
  } while (!stopped_.wait_for(lock, interval, [this] { return stop_; }));
  peak_ = std::max(peak_, ResidentBytes());
}

int64_t PeakMemoryMonitor::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_one();
  if (thread_.joinable()) thread_.join();
  return peak_;
}

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  return file ? resident * sysconf(_SC_PAGESIZE) : 0;
}

int64_t PeakResidentBytes() {
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? int64_t{usage.ru_maxrss} * 1024 : 0;
}

}  // namespace fuselite::tools
