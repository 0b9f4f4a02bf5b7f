#include "runtime/threads/parallel_team.h"

#include <dlfcn.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <new>
#include <vector>

#include "runtime/cpu/float_state.h"
#include "runtime/threads/parallel.h"

namespace fuselite::internal {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

// Long enough to bridge a host's work between two invokes in a loop, short enough to be nothing
// beside the invoke of a model that is worth threads.
constexpr nanoseconds kIdleSpin = microseconds(100);
// The caller has nothing left to do but to wait for the last helper's last range.
constexpr nanoseconds kLeaveSpin = microseconds(50);

// Helpers run this library's code until the process ends, so unloading it must do nothing.
void KeepLibraryLoaded() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&KeepLibraryLoaded), &info) == 0) return;
  // NOLOAD: only marks what is there. In an executable this fails, and nothing is lost.
  if (void* self = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE)) dlclose(self);
}

struct Probe {
  std::atomic<bool> release{false};
  std::atomic<int> started{0};
  std::vector<std::atomic<pid_t>> ids;
  explicit Probe(int threads) : ids(static_cast<size_t>(threads)) {}
};

void* ProbeMain(void* argument) {
  auto& probe = *static_cast<Probe*>(argument);
  const int index = probe.started.fetch_add(1);
  probe.ids[static_cast<size_t>(index)] = static_cast<pid_t>(syscall(SYS_gettid));
  while (!probe.release) sched_yield();
  return nullptr;
}

// A joined thread counts against the system's limits until the kernel has forgotten its number.
void WaitUntilGone(pid_t id) {
  for (int i = 0; i < 1000; ++i) {
    if (syscall(SYS_tgkill, getpid(), id, 0) != 0) return;
    usleep(100);
  }
}

// Whether the system grants this many more threads at once. The OpenMP runtimes end the process
// where a thread is refused them; so the refusal has to come here first. What another thread takes
// between this and the runtime's own threads is not covered.
bool SystemGrantsThreads(int threads) {
  Probe probe(threads);
  std::vector<pthread_t> handles;
  handles.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    pthread_t handle;
    if (create_thread.load()(&handle, nullptr, ProbeMain, &probe) != 0) break;
    handles.push_back(handle);
  }
  probe.release = true;
  for (pthread_t handle : handles) pthread_join(handle, nullptr);
  for (int i = 0; i < probe.started; ++i) WaitUntilGone(probe.ids[static_cast<size_t>(i)]);
  return handles.size() == static_cast<size_t>(threads);
}

}  // namespace

std::atomic<CreateThread> create_thread{&pthread_create};

Team* Team::Create(int helpers) {
  const bool crowded = helpers + 1 > AllowedCores();
  std::unique_ptr<Team> team(new (std::nothrow)
                                 Team(helpers, crowded ? nanoseconds(0) : kIdleSpin));
  if (team == nullptr) return nullptr;
  KeepLibraryLoaded();
  // Signals to the process are handled on the host's threads: helpers inherit a mask of all but
  // those that a thread's own instructions raise, which would end the process before its handler
  // (a crash reporter's, or that of who maps files) has seen them.
  sigset_t others, before;
  sigfillset(&others);
  for (int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&others, own);
  pthread_sigmask(SIG_SETMASK, &others, &before);
  pthread_t leader;
  const int error = create_thread.load()(&leader, nullptr, &Team::Main, team.get());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return nullptr;
  pthread_detach(leader);
  return team.release();
}

void* Team::Main(void* argument) {
  Team* const team = static_cast<Team*>(argument);
  pthread_setname_np(pthread_self(), "fuselite");
  int threads = 1;
  try {
    if (SystemGrantsThreads(team->helpers_ - 1)) threads = team->helpers_;
  } catch (const std::bad_alloc&) {
    // The leader alone, then.
  }
  if (threads == 1) {
    team->Help(1);
  } else {
    RunOpenMpTeam(threads, [team](int index, int) { team->Help(index + 1); });
  }
  // The leader's share keeps the team until here.
  team->Disown();  // NOLINT(clang-analyzer-cplusplus.NewDelete)
  return nullptr;
}

void Team::Help(int number) {
  owners_.fetch_add(1, std::memory_order_relaxed);
  uint32_t seen = 0;
  while (true) {
    cores_.Rest(number);
    idle_.WaitUntil([&] { return regions_.load(std::memory_order_seq_cst) != seen; }, spin_);
    cores_.Arrive(number);
    seen = regions_.load(std::memory_order_acquire);
    if (retired_) return Disown();
    uint64_t state = state_.load(std::memory_order_acquire);
    bool entered = false;
    while (!entered && state >> 32 == seen && (state & kOpen)) {
      entered = state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel,
                                             std::memory_order_acquire);
    }
    if (!entered) continue;
    if (number < threads_) {
      WriteFloatState(float_state_);
      (*body_)(number, threads_);
    }
    const uint64_t before = state_.fetch_sub(1, std::memory_order_seq_cst);
    if ((before & (kOpen | kInside)) == 1) leaving_.Wake();
  }
}

void Team::Run(int threads, FunctionRef<void(int, int)> body) {
  body_ = &body;
  threads_ = threads;
  float_state_ = ReadFloatState();
  const uint64_t number = regions_.load(std::memory_order_acquire) + 1u;
  state_.store((number & 0xFFFFFFFFu) << 32 | kOpen, std::memory_order_release);
  CallHelpers();

  body(0, threads);

  state_.fetch_and(~kOpen, std::memory_order_acq_rel);
  const auto empty = [this] { return (state_.load(std::memory_order_seq_cst) & kInside) == 0; };
  leaving_.WaitUntil(empty, spin_.count() ? kLeaveSpin : nanoseconds(0));
}

void Team::CallHelpers() {
  regions_.fetch_add(1, std::memory_order_seq_cst);
  const bool crowded = spin_.count() == 0;
  if (idle_.Asleep() && !crowded) cores_.SendElsewhere(sched_getcpu());
  idle_.Wake();
}

void Team::Retire() {
  retired_ = true;
  CallHelpers();
  Disown();
}

void Team::Disown() {
  if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

}  // namespace fuselite::internal
