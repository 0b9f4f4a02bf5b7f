#include "runtime/helper_cores.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <new>

namespace fuselite::internal {

HelperCores::HelperCores(int helpers)
    : helpers_(helpers), all_(new (std::nothrow) Helper[helpers]) {
  for (int i = 0; all_ && i < helpers_; ++i) CPU_ZERO(&all_[i].placed);
}

void HelperCores::Enter(int number) {
  if (all_) all_[number - 1].id = static_cast<pid_t>(syscall(SYS_gettid));
}

void HelperCores::KeepOff(int core) {
  if (core < 0 || core >= CPU_SETSIZE) return;
  for (int i = 0; all_ && i < helpers_; ++i) {
    Helper& helper = all_[i];
    const pid_t id = helper.id;
    cpu_set_t now;
    // Fails on a machine with more cores than the set has room for.
    if (id == 0 || sched_getaffinity(id, sizeof now, &now) != 0) continue;
    if (!CPU_EQUAL(&now, &helper.placed)) helper.given = now;
    helper.placed = helper.given;
    CPU_CLR(core, &helper.placed);
    if (CPU_COUNT(&helper.placed) == 0) helper.placed = helper.given;
    if (!CPU_EQUAL(&now, &helper.placed))
      sched_setaffinity(id, sizeof helper.placed, &helper.placed);
  }
}

}  // namespace fuselite::internal
