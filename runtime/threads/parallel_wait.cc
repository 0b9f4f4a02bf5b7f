#include "runtime/threads/parallel_wait.h"

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

void Sleepers::Sleep(uint32_t seen) { FutexWait(wakes_, seen); }

void Sleepers::WakeAll() {
  wakes_.fetch_add(1, std::memory_order_seq_cst);
  FutexWakeAll(wakes_);
}

}  // namespace fuselite::internal
