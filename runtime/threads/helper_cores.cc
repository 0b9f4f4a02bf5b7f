#include "runtime/threads/helper_cores.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <new>

namespace fuselite::internal {
namespace {

// The most helpers that a larger team sends: two system calls for each, a microsecond or so, are
// the caller's time.
constexpr int kMostSent = 8;

}  // namespace

// CPU_CLR and CPU_SET pass over what is no core.
cpu_set_t CoresElsewhere(const cpu_set_t& given, int caller, const cpu_set_t& others) {
  cpu_set_t elsewhere = given, own;
  CPU_CLR(caller, &elsewhere);
  CPU_AND(&own, &elsewhere, &others);
  CPU_XOR(&own, &elsewhere, &own);
  return CPU_COUNT(&own) != 0 ? own : elsewhere;
}

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
    cpu_set_t others;
    CPU_ZERO(&others);
    for (int other = 0; other < helpers_; ++other) {
      if (other != i) CPU_SET(all_[other].core.load(std::memory_order_relaxed), &others);
    }
    const cpu_set_t elsewhere = CoresElsewhere(helper.given, core, others);
    if (CPU_COUNT(&elsewhere) == 0) continue;
    // In this order: a helper that wakes up in between stays bound until it arrives once more.
    sched_setaffinity(id, sizeof elsewhere, &elsewhere);
    helper.bound.store(true, std::memory_order_release);
  }
}

}  // namespace fuselite::internal
