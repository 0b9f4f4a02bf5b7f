// Locks on what all users of the library in a process share, and fork(): a child gets the memory of
// all threads, but the thread alone that forked, so that a lock which another one held would never
// be free again.
#pragma once

#include <mutex>

namespace fuselite {

// Holds `mutex`, and fork() off, which waits until no other thread holds such a lock. A thread may
// hold several; one that forks while it does waits for nobody, and its child may meet locked ones.
class ProcessLock {
 public:
  explicit ProcessLock(std::mutex& mutex);
  ~ProcessLock();
  ProcessLock(const ProcessLock&) = delete;
  ProcessLock& operator=(const ProcessLock&) = delete;

 private:
  std::mutex& mutex_;
};

// What is to be done around a fork by whoever has locks of another kind.
struct ForkHandler {
  void (*before)();  // no other thread holds a ProcessLock then
  void (*in_parent)();
  void (*in_child)();
  ForkHandler* next = nullptr;
};
// `handler` must last as long as the process.
void AddForkHandler(ForkHandler& handler);

}  // namespace fuselite
