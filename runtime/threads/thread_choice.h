// How many threads a run repays that takes some microseconds.
#pragma once

#include <chrono>
#include <cstdint>

namespace fuselite {

// What sharing such a run saves, or costs, depends on how far the cores are from each other and on
// who else works on them, which may change: it is found by trying, and tried again. On a virtual
// machine of two cores a message between them takes 60 ns or 500, from one minute to the next, and
// a float network of 68 us on one thread takes 51 us on two, or 82. Results are the same.
class ThreadChoice {
 public:
  // The threads of the next run, up to `most`, of which there are at least two.
  int Next(int most);
  // Whether to Report() how long the run took that the last Next() was for, if it succeeded.
  bool measures() const { return phase_ == Phase::kTry; }
  void Report(std::chrono::nanoseconds took);

 private:
  enum class Phase { kWarmUp, kTry, kKeep };
  void Enter(Phase phase, int threads, int64_t runs);
  // What follows when the phase's runs are over.
  void Advance();

  int most_ = 0;
  Phase phase_ = Phase::kKeep;
  int threads_ = 0;                     // of the phase
  int64_t runs_left_ = 0;               // of the phase
  std::chrono::nanoseconds fastest_{};  // of the threads that are tried
  int chosen_ = 0;
  std::chrono::nanoseconds fastest_chosen_{};
};

}  // namespace fuselite
