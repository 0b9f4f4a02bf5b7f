// A progress line on a terminal, for what takes longer than a second.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace fuselite::tools {

// Draws on standard error, only where that is a terminal and only once a second has passed; erases
// itself at the end. `total` 0: unknown, only the label and the time are shown.
class Progress {
 public:
  Progress(std::string label, int64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Cheap: redraws at most ten times a second.
  void Update(int64_t done);

 private:
  using Clock = std::chrono::steady_clock;
  std::string label_;
  int64_t total_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point begin_, next_;
};

}  // namespace fuselite::tools
