// A progress line on a terminal, for what takes longer than a second.
#pragma once

#include <chrono>
#include <string>

namespace fuselite::tools {

// Draws on standard error, only where that is a terminal (or FUSELITE_PROGRESS says always) and
// only once a second has passed.
class Progress {
 public:
  explicit Progress(std::string label);
  ~Progress() { Finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Cheap: redraws at most ten times a second. `share` of the work is done, from 0 to 1.
  void Update(double share);
  // Where nobody knows the end: the label and the time alone.
  void Update();
  // Erases the line; before anything else is printed.
  void Finish();

 private:
  // Whether it is time to draw again; then, for how many seconds it has run.
  bool IsDue(double& seconds);

  using Clock = std::chrono::steady_clock;
  std::string label_;
  bool shown_;
  bool drawn_ = false;
  Clock::time_point begin_, next_;
};

}  // namespace fuselite::tools
