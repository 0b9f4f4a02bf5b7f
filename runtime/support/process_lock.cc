#include "runtime/support/process_lock.h"

#include <pthread.h>

#include <atomic>
#include <new>
#include <shared_mutex>

namespace fuselite {
namespace {

// How many a thread holds: the first one enters the gate, the others are inside.
thread_local int held = 0;

// Threads with locks are inside together, one that forks is alone.
class ForkGate {
 public:
  static ForkGate& Get() {
    static auto* const gate = new ForkGate();  // outlives every static that may hold a lock
    return *gate;
  }

  void Enter() {
    if (held++ == 0) threads_.lock_shared();
  }
  void Leave() {
    if (--held == 0) threads_.unlock_shared();
  }

  void Add(ForkHandler& handler) {
    handler.next = handlers_.load();
    while (!handlers_.compare_exchange_weak(handler.next, &handler)) continue;
  }

 private:
  ForkGate() {
    pthread_atfork([] { Get().Before(); }, [] { Get().InParent(); }, [] { Get().InChild(); });
  }

  // A thread that forks while it holds a lock cannot wait for the others.
  void Before() {
    if (held == 0) threads_.lock();
    for (ForkHandler* h = handlers_; h != nullptr; h = h->next) h->before();
  }
  void InParent() {
    for (ForkHandler* h = handlers_; h != nullptr; h = h->next) h->in_parent();
    if (held == 0) threads_.unlock();
  }
  // The gate counts threads that wait, which a child does not have: it gets another one.
  void InChild() {
    for (ForkHandler* h = handlers_; h != nullptr; h = h->next) h->in_child();
    new (&threads_) std::shared_mutex();
    if (held > 0) threads_.lock_shared();
  }

  std::shared_mutex threads_;
  std::atomic<ForkHandler*> handlers_{nullptr};
};

// There before the first lock: a fork while the gate is made would find it half made.
[[maybe_unused]] const ForkGate& gate_at_load = ForkGate::Get();

}  // namespace

ProcessLock::ProcessLock(std::mutex& mutex) : mutex_(mutex) {
  ForkGate::Get().Enter();
  mutex_.lock();
}

ProcessLock::~ProcessLock() {
  mutex_.unlock();
  ForkGate::Get().Leave();
}

void AddForkHandler(ForkHandler& handler) { ForkGate::Get().Add(handler); }

}  // namespace fuselite
