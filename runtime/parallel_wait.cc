#include "runtime/parallel_wait.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace fuselite::internal {
namespace {

static_assert(sizeof(std::atomic<uint32_t>) == 4 && std::atomic<uint32_t>::is_always_lock_free);

// Returns at once where *word != value; spurious returns happen.
void FutexWait(std::atomic<uint32_t>& word, uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void FutexWakeAll(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

void WaitWord::WaitWhile(uint32_t old, std::chrono::nanoseconds spin) {
  if (SpinUntil(spin, [&] { return Read() != old; })) return;
  // The order of the two words is what makes a missed wake-up impossible: either the changer
  // sees us in sleepers_, or the kernel sees the changed value and does not sleep.
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (value_.load(std::memory_order_seq_cst) == old) FutexWait(value_, old);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void WaitWord::Increment() {
  value_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) FutexWakeAll(value_);
}

void Sleepers::Sleep(uint32_t seen) { FutexWait(wakes_, seen); }

void Sleepers::WakeAll() {
  wakes_.fetch_add(1, std::memory_order_seq_cst);
  FutexWakeAll(wakes_);
}

}  // namespace fuselite::internal
