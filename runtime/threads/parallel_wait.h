// Waiting for a word to change: spinning for a bounded time, then asleep in the kernel.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace fuselite::internal {

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");  // longer than `yield`, which most cores ignore
#endif
}

// Calls `done` until it is true or `spin` has passed; returns what it said last.
template <class Done>
bool SpinUntil(std::chrono::nanoseconds spin, Done done) {
  if (done()) return true;
  if (spin.count() == 0) return false;
  const auto spin_a_microsecond = [&] {
    for (int i = 0; i < 40; ++i) {
      Pause();
      if (done()) return true;
    }
    return false;
  };
  // Most waits end before a look at the clock would.
  if (spin_a_microsecond()) return true;
  const auto end = std::chrono::steady_clock::now() + spin;
  do {
    if (spin_a_microsecond()) return true;
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

// Threads that wait until others have made a condition true. A change costs a look where nobody
// sleeps, and a system call where somebody does.
class Sleepers {
 public:
  // Spins until `done()`, then sleeps between changes. `done` reads what it looks at sequentially
  // consistently.
  template <class Done>
  void WaitUntil(Done done, std::chrono::nanoseconds spin) {
    if (SpinUntil(spin, done)) return;
    // The order makes a missed wake-up impossible: either the changer sees this thread in
    // sleepers_, or this thread sees its change.
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (true) {
      const uint32_t seen = wakes_.load(std::memory_order_seq_cst);
      if (done()) break;
      Sleep(seen);
    }
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }
  // To be called after each change, which is sequentially consistent.
  void Wake() {
    if (Asleep()) WakeAll();
  }
  // Whether somebody sleeps, or is about to.
  bool Asleep() const { return sleepers_.load(std::memory_order_seq_cst) > 0; }

 private:
  void Sleep(uint32_t seen);
  void WakeAll();

  std::atomic<uint32_t> sleepers_{0}, wakes_{0};
};

}  // namespace fuselite::internal
