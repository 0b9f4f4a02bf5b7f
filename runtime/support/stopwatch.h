// Where time goes, for reports.
#pragma once

#include <chrono>

namespace fuselite {

class Stopwatch {
 public:
  // Milliseconds since the lap before, or since it was made.
  double Lap() {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double, std::milli> lap = now - start_;
    start_ = now;
    return lap.count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace fuselite
