// Waiting for a word to change: spinning for a bounded time, then asleep in the kernel.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace fuselite::internal {

inline void Pause() {
#if defined(__x86_64__) || defined(__i386__)
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
  const auto end = std::chrono::steady_clock::now() + spin;
  do {
    // Between two looks at the clock, about a microsecond.
    for (int i = 0; i < 40; ++i) {
      Pause();
      if (done()) return true;
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

// A counter that threads wait on. A change costs a system call only when somebody sleeps.
class WaitWord {
 public:
  uint32_t Read() const { return value_.load(std::memory_order_acquire); }
  // Returns when the value is no longer `old`.
  void WaitWhile(uint32_t old, std::chrono::nanoseconds spin);
  // What happened before is visible to whoever sees the change.
  void Increment();

 private:
  std::atomic<uint32_t> value_{0};
  std::atomic<uint32_t> sleepers_{0};
};

}  // namespace fuselite::internal
