// What a guest's threads must not do in somebody's process: docs/threads.md has the reasons.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/cpu/float_state.h"
#include "runtime/support/log.h"
#include "runtime/support/sanitizers.h"
#include "runtime/threads/parallel.h"
#include "runtime/threads/parallel_team.h"
#include "tests/runtime/child.h"

namespace fuselite {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

// Why tests are skipped: ThreadSanitizer ends every child that starts a thread, where its parent
// has had threads.
constexpr char kSanitized[] = "ThreadSanitizer does not follow threads into a child";

// How many threads came to a region of `wanted` that waits for them, for `patience` at most.
int ThreadsThatJoin(int wanted, std::chrono::milliseconds patience = 10s) {
  std::atomic<int> joined{0};
  const auto end = steady_clock::now() + patience;
  ParallelRegion(wanted, [&](int, int) {
    ++joined;
    while (joined < wanted && steady_clock::now() < end) std::this_thread::yield();
  });
  return joined;
}

double ProcessCpuMs() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

// First in this file: no region has run in this process yet.
TEST(Fork, BeforeTheFirstRegion) {
  EXPECT_EQ(InChild([] { return ThreadsThatJoin(4); }), "exit 4");
  EXPECT_EQ(ThreadsThatJoin(4), 4);
}

TEST(Fork, AfterARegionBothSidesGoOn) {
  if (kThreadSanitizer) GTEST_SKIP() << kSanitized;
  ASSERT_EQ(ThreadsThatJoin(4), 4);
  EXPECT_EQ(InChild([] { return ThreadsThatJoin(4); }), "exit 4");
  EXPECT_EQ(ThreadsThatJoin(4), 4);
}

TEST(Fork, GrandchildrenAndManyTimes) {
  if (kThreadSanitizer) GTEST_SKIP() << kSanitized;
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(ThreadsThatJoin(2), 2);
    EXPECT_EQ(InChild([] {
                if (ThreadsThatJoin(3) != 3) return 1;
                return InChild([] { return ThreadsThatJoin(3); }) == "exit 3" ? 0 : 2;
              }),
              "exit 0");
  }
}

TEST(Fork, WhileAnotherThreadIsInARegion) {
  if (kThreadSanitizer) GTEST_SKIP() << kSanitized;
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) ParallelRegion(2, [](int, int) {});
  });
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(InChild([] { return ThreadsThatJoin(2); }), "exit 2");
  }
  stop = true;
  other.join();
}

TEST(Refusal, ByTheUsersLimit) {
  if (kThreadSanitizer) GTEST_SKIP() << kSanitized;
  EXPECT_EQ(InChild([] {
              if (getuid() == 0 && setuid(65534) != 0) return 10;  // the limit does not bind root
              const rlimit none{1, 1};
              if (setrlimit(RLIMIT_NPROC, &none) != 0) return 11;
              int calls = 0;
              const int used = ParallelRegion(4, [&](int thread, int) { calls += 1 + thread; });
              return used == 1 && calls == 1 ? 0 : 1;
            }),
            "exit 0");
}

// The hook stands for the system: the first `grants` threads are made, the rest refused.
std::atomic<int> grants{0};
int CreateSome(pthread_t* thread, const pthread_attr_t* attributes, void* (*main)(void*),
               void* arg) {
  if (grants.fetch_sub(1) <= 0) return EAGAIN;
  return pthread_create(thread, attributes, main, arg);
}

// The system has room for three threads beside the caller's, at a time.
std::atomic<int> alive{0};
struct Start {
  void* (*main)(void*);
  void* arg;
};
void* CountedMain(void* argument) {
  const std::unique_ptr<Start> start(static_cast<Start*>(argument));
  void* const result = start->main(start->arg);
  --alive;
  return result;
}
int CreateInRoom(pthread_t* thread, const pthread_attr_t* attributes, void* (*main)(void*),
                 void* arg) {
  // A thread that ends by itself has time to.
  std::this_thread::sleep_for(20ms);
  if (alive >= 3) return EAGAIN;
  ++alive;
  return pthread_create(thread, attributes, CountedMain, new Start{main, arg});
}

// What is asked of the system is whether all threads may live at once.
TEST(Refusal, OfThreadsThatLiveTogether) {
  if (kThreadSanitizer) GTEST_SKIP() << kSanitized;
  EXPECT_EQ(InChild([] {
              internal::create_thread = &CreateInRoom;
              // The leader and two more, then the leader alone.
              if (ThreadsThatJoin(4) != 4) return 1;
              return ThreadsThatJoin(6, 300ms) == 2 ? 0 : 2;
            }),
            "exit 0");
}

void CountWarnings(int& count) {
  SetLogLevel(LogLevel::kWarning);
  SetLogSink([](LogLevel, std::string_view, void* counted) { ++*static_cast<int*>(counted); },
             &count);
}

TEST(Refusal, AtEveryThread) {
  if (kThreadSanitizer) GTEST_SKIP() << kSanitized;
  for (int granted = 0; granted <= 3; ++granted) {
    EXPECT_EQ(InChild([granted] {
                int warnings = 0;
                CountWarnings(warnings);
                grants = granted;
                internal::create_thread = &CreateSome;
                // The leader alone where the probe for the other two failed.
                const int expected = granted == 0 ? 1 : granted < 3 ? 2 : 4;
                if (ThreadsThatJoin(4, granted == 3 ? 10000ms : 300ms) != expected) return 1;
                if (warnings != (granted == 0)) return 3;
                std::atomic<int64_t> sum{0};
                ParallelFor(4, 1000, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
                return sum == 1000 ? 0 : 2;
              }),
              "exit 0")
        << granted;
  }
}

int CountThreads() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Threads:")) return std::stoi(line.substr(8));
  }
  return -1;
}

// Threads that an emulator of another CPU keeps in the process: the kernel counts them too.
bool EmulatorHasThreads() {
  return InChild([] { return CountThreads(); }) != "exit 1";
}
constexpr const char* kEmulated = "an emulator's threads are counted with the process's";

// A control group that holds this process's child to a number of threads; empty where the system
// does not let the test make one.
class PidsGroup {
 public:
  explicit PidsGroup(int limit) {
    for (const char* root : {"/sys/fs/cgroup/pids", "/sys/fs/cgroup"}) {
      folder_ = std::string(root) + "/fuselite_manners_" + std::to_string(getpid());
      if (mkdir(folder_.c_str(), 0755) != 0) continue;
      if (Write("pids.max", std::to_string(limit))) return;
      rmdir(folder_.c_str());
    }
    folder_.clear();
  }
  ~PidsGroup() {
    if (!folder_.empty()) rmdir(folder_.c_str());
  }
  bool usable() const { return !folder_.empty(); }
  bool Join() const { return Write("cgroup.procs", std::to_string(getpid())); }

 private:
  bool Write(const std::string& file, const std::string& text) const {
    std::ofstream out(folder_ + "/" + file);
    out << text << std::flush;
    return out.good();
  }
  std::string folder_;
};

TEST(Refusal, ByAControlGroup) {
  if (kThreadSanitizer) GTEST_SKIP() << kSanitized;
  if (EmulatorHasThreads()) GTEST_SKIP() << kEmulated;
  for (int limit = 1; limit <= 6; ++limit) {
    const PidsGroup group(limit);
    if (!group.usable()) GTEST_SKIP() << "no control group with pids.max can be made here";
    EXPECT_EQ(InChild([&] {
                if (!group.Join()) return 10;
                // The main thread, the leader, and two more: four fit only together.
                const int expected = limit == 1 ? 1 : limit < 4 ? 2 : 4;
                return ThreadsThatJoin(4, limit < 4 ? 300ms : 10000ms) == expected ? 0 : 1;
              }),
              "exit 0")
        << "limit " << limit;
  }
}

TEST(Idle, NoThreadBurnsTimeAfterARegion) {
  for (int threads : {2, 4}) {
    ASSERT_EQ(ThreadsThatJoin(threads), threads);
    const double before = ProcessCpuMs();
    std::this_thread::sleep_for(200ms);
    EXPECT_LT(ProcessCpuMs() - before, 3.0) << threads << " threads";
  }
}

TEST(Idle, SleepingHelpersWakeForTheNextRegion) {
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(ThreadsThatJoin(3), 3);
    std::this_thread::sleep_for(2ms);
  }
}

TEST(FloatState, HelpersHaveTheCallersAndItIsLeftAlone) {
  const auto helper_state = [] {
    std::atomic<uint64_t> seen{0};
    std::atomic<bool> ready{false};
    ParallelRegion(2, [&](int thread, int) {
      if (thread == 1) {
        seen = internal::ReadFloatState();
        ready = true;
      }
      const auto end = steady_clock::now() + 10s;
      while (!ready && steady_clock::now() < end) std::this_thread::yield();
    });
    return seen.load();
  };
  const uint64_t plain = internal::ReadFloatState();
#if defined(__x86_64__)
  const uint64_t flushing = plain | 0x8040;
#else
  const uint64_t flushing = plain | uint64_t{1} << 24;
#endif
  EXPECT_EQ(helper_state(), plain);
  internal::WriteFloatState(flushing);
  EXPECT_EQ(helper_state(), flushing);
  EXPECT_EQ(internal::ReadFloatState(), flushing);
  internal::WriteFloatState(plain);
  EXPECT_EQ(helper_state(), plain);
}

TEST(Signals, StayWithTheHostsThreads) {
  sigset_t before, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  std::atomic<bool> ready{false}, blocked{false}, own{false};
  ParallelRegion(2, [&](int thread, int) {
    if (thread == 1) {
      sigset_t mask;
      pthread_sigmask(SIG_SETMASK, nullptr, &mask);
      blocked = sigismember(&mask, SIGINT) && sigismember(&mask, SIGCHLD);
      own = true;
      for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) {
        own = own && sigismember(&mask, signal) == 0;
      }
      ready = true;
    }
    const auto end = steady_clock::now() + 10s;
    while (!ready && steady_clock::now() < end) std::this_thread::yield();
  });
  EXPECT_TRUE(blocked);
  EXPECT_TRUE(own);
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(sigismember(&after, SIGINT), sigismember(&before, SIGINT));
}

TEST(Threads, TheirNumberIsBoundedWhateverIsAskedFor) {
  if (kThreadSanitizer) GTEST_SKIP() << kSanitized;
  if (EmulatorHasThreads()) GTEST_SKIP() << kEmulated;
  EXPECT_EQ(InChild([] {
              for (int i = 0; i < 100; ++i) {
                for (int threads : {2, 5, 3, 4}) ParallelRegion(threads, [](int, int) {});
              }
              // The largest team serves all. Retired ones are on their way out.
              if (ThreadsThatJoin(5) != 5) return -1;
              const auto end = steady_clock::now() + 10s;
              while (CountThreads() != 5 && steady_clock::now() < end) std::this_thread::yield();
              return CountThreads();
            }),
            "exit 5");
}

TEST(Threads, GoWhenTheyAreReleasedAndComeBack) {
  if (kThreadSanitizer) GTEST_SKIP() << kSanitized;
  if (dlsym(RTLD_DEFAULT, "__kmpc_fork_call") != nullptr) {
    GTEST_SKIP() << "LLVM's OpenMP keeps the threads of a team that has ended for the next one";
  }
  if (EmulatorHasThreads()) GTEST_SKIP() << kEmulated;
  EXPECT_EQ(InChild([] {
              for (int i = 0; i < 3; ++i) {
                if (ThreadsThatJoin(4) != 4) return -1;
                ReleaseIdleThreads();
                const auto end = steady_clock::now() + 10s;
                while (CountThreads() != 1 && steady_clock::now() < end) std::this_thread::yield();
                if (CountThreads() != 1) return CountThreads();
              }
              return 0;
            }),
            "exit 0");
}

}  // namespace
}  // namespace fuselite
