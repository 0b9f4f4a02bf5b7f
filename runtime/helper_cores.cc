#include "runtime/helper_cores.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <new>

namespace fuselite::internal {
namespace {

// Of larger teams only so many helpers are sent: two system calls for each, a microsecond or so,
// are the caller's time.
constexpr int kMostSent = 8;

void Remove(int core, cpu_set_t* set) {
  if (core >= 0 && core < CPU_SETSIZE) CPU_CLR(core, set);
}

}  // namespace

HelperCores::HelperCores(int helpers)
    : helpers_(helpers), all_(new (std::nothrow) Helper[helpers]) {}

void HelperCores::Rest(int number) {
  if (!all_) return;
  Helper& helper = all_[number - 1];
  helper.core.store(sched_getcpu(), std::memory_order_relaxed);
  if (helper.id.load(std::memory_order_relaxed) == 0) {
    helper.id = static_cast<pid_t>(syscall(SYS_gettid));
  }
}

void HelperCores::Arrive(int number) {
  if (!all_) return;
  Helper& helper = all_[number - 1];
  if (!helper.bound.load(std::memory_order_acquire)) return;
  sched_setaffinity(0, sizeof helper.given, &helper.given);
  helper.bound.store(false, std::memory_order_release);
}

void HelperCores::SendElsewhere(int core) {
  for (int i = 0; all_ && i < std::min(helpers_, kMostSent); ++i) {
    Helper& helper = all_[i];
    const pid_t id = helper.id;
    if (id == 0) continue;  // it has not begun
    if (!helper.bound.load(std::memory_order_acquire) &&
        sched_getaffinity(id, sizeof helper.given, &helper.given) != 0) {
      continue;
    }
    cpu_set_t elsewhere = helper.given;
    Remove(core, &elsewhere);
    cpu_set_t own = elsewhere;
    for (int other = 0; other < helpers_; ++other) {
      if (other != i) Remove(all_[other].core.load(std::memory_order_relaxed), &own);
    }
    if (CPU_COUNT(&own) != 0) elsewhere = own;
    if (CPU_COUNT(&elsewhere) == 0) continue;
    // In this order: a helper that wakes up in between stays bound until it arrives once more.
    sched_setaffinity(id, sizeof elsewhere, &elsewhere);
    helper.bound.store(true, std::memory_order_release);
  }
}

}  // namespace fuselite::internal
