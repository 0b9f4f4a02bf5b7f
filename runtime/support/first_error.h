// What goes wrong first where several threads work on one thing.
#pragma once

#include <atomic>
#include <mutex>
#include <utility>

#include "runtime/support/status.h"

namespace fuselite::internal {

class FirstError {
 public:
  // Keeps `status`, an error, unless there is one already.
  void Set(Status status) {
    const std::lock_guard lock(mutex_);
    if (status_.ok()) status_ = std::move(status);
    any_.store(true, std::memory_order_relaxed);
  }
  // Whether there is one. A thread may see that of another a little later.
  bool any() const { return any_.load(std::memory_order_relaxed); }
  // The error, or OK. Precondition: no thread works any more.
  Status Take() { return std::move(status_); }

 private:
  std::atomic<bool> any_{false};
  std::mutex mutex_;
  Status status_;  // guarded by mutex_
};

}  // namespace fuselite::internal
