#include "runtime/threads/thread_choice.h"

#include <algorithm>

namespace fuselite {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

// The first runs find cold caches, and threads that are still to be made.
constexpr int64_t kWarmUpRuns = 4;
// The fastest of so many counts: others are disturbed.
constexpr int64_t kTryRuns = 8;
// Then the choice is kept. Trying a number of threads that is half as slow costs half a per cent.
constexpr int64_t kKeepRuns = 1000;
// Runs of this length mostly gain by sharing. Longer ones are tried with fewer threads where one
// thread cannot take longer than kLongTry: many small steps, as of a separable convolution over 200
// frames, may exchange more than they share (0.90 ms on one thread, 1.23 on two).
constexpr nanoseconds kLongRun = microseconds(200);
constexpr nanoseconds kLongTry = microseconds(4000);
// Fewer threads have to be so much faster to be chosen.
constexpr double kWorthFewer = 0.95;

}  // namespace

int ThreadChoice::Next(int most) {
  if (most != most_) {
    most_ = most;
    Enter(Phase::kWarmUp, most, kWarmUpRuns);
  } else if (runs_left_ == 0) {
    Advance();
  }
  --runs_left_;
  return threads_;
}

void ThreadChoice::Report(nanoseconds took) { fastest_ = std::min(fastest_, took); }

void ThreadChoice::Enter(Phase phase, int threads, int64_t runs) {
  phase_ = phase;
  threads_ = threads;
  runs_left_ = runs;
  fastest_ = nanoseconds::max();
}

void ThreadChoice::Advance() {
  if (phase_ != Phase::kTry) return Enter(Phase::kTry, most_, kTryRuns);
  if (threads_ == most_ && fastest_ >= std::max(kLongRun, kLongTry / most_)) {
    return Enter(Phase::kKeep, most_, INT64_MAX);
  }
  const bool better = std::chrono::duration<double>(fastest_) <
                      kWorthFewer * std::chrono::duration<double>(fastest_chosen_);
  if (threads_ == most_ || better) {
    chosen_ = threads_;
    fastest_chosen_ = fastest_;
  }
  if (threads_ > 1) return Enter(Phase::kTry, std::max(1, threads_ / 4), kTryRuns);
  Enter(Phase::kKeep, chosen_, kKeepRuns);
}

}  // namespace fuselite
