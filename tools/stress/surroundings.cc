#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cfenv>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <new>
#include <thread>

#include "tools/stress/scenario.h"

namespace fuselite::tools {
namespace {

// --- Memory ---

// What the process has mapped.
rlim_t AddressSpace() {
  std::ifstream file("/proc/self/statm");
  rlim_t pages = 0;
  file >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

// Outputs while the address space must not grow by more than `more` bytes. Tools may run out of
// memory themselves, which they say by an exception.
Result<Outputs> OutputsWithin(const StressContext& context, rlim_t more) {
  malloc_trim(0);  // what was freed is not to serve
  rlimit before;
  if (getrlimit(RLIMIT_AS, &before) != 0) return Internal("RLIMIT_AS cannot be read");
  const rlimit limit{AddressSpace() + more, before.rlim_max};
  if (setrlimit(RLIMIT_AS, &limit) != 0) return Internal("RLIMIT_AS cannot be set");
  Result<Outputs> outputs = OutOfMemory("an exception");
  try {
    outputs = FreshOutputs(context);
  } catch (const std::bad_alloc&) {
  }
  setrlimit(RLIMIT_AS, &before);
  return outputs;
}

// Ever more address space: whatever allocation fails, what is given is right. Where it is the
// code's memory, other kernels compute.
Status LimitedAddressSpace(const StressContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(const Outputs expected, ReferenceOutputs(context));
  constexpr rlim_t kMegabyte = rlim_t{1} << 20;
  const rlim_t enough = 256 * kMegabyte + 4 * context.model->file_bytes;
  Result<Outputs> outputs = OutOfMemory("");
  // Steps of 32 KiB at first, so that small things fail one after the other; then of a sixteenth.
  for (rlim_t more = 0; more < enough; more += more < kMegabyte ? kMegabyte / 32 : more / 16) {
    outputs = OutputsWithin(context, more);
    if (!outputs.ok()) continue;
    const Status near = CheckNear(context, *outputs, expected);
    if (!near.ok()) return near.In("with " + std::to_string(more) + " bytes more");
  }
  return outputs.status();
}

// mmap and mprotect with PROT_EXEC fail from here on, as hardened systems have it.
Status RefuseExecutableMemory() {
  const sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args) + 2 * sizeof(uint64_t)),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{std::size(filter), const_cast<sock_filter*>(filter)};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    return Unsupported("no seccomp filter can be set: ", std::strerror(errno));
  }
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return page == MAP_FAILED ? Status() : Internal("the seccomp filter has no effect");
}

Status NoExecutableMemory(const StressContext& context) {
  // The expected result is that of the kernels that are not emitted, within a float's last bits.
  StressContext without = context;
  without.options.jit = false;
  FUSELITE_ASSIGN_OR_RETURN(const std::string expected, ExpectedOutputs(without));
  FUSELITE_RETURN_IF_ERROR(RefuseExecutableMemory());
  return CheckOutputs(ExpectedOutputs(context), expected, "without executable memory");
}

// --- Threads ---

Status SmallStack(const StressContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(const std::string expected, ExpectedOutputs(context));
  constexpr size_t kStack = size_t{64} << 10;
  FUSELITE_ASSIGN_OR_RETURN(const Session session, OpenSubject(context));
  struct Call {
    const StressContext& context;
    const Session& session;
    const std::string& expected;
    Status status;
  } call{context, session, expected, Status()};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_t thread;
  const int refused =
      pthread_attr_setstacksize(&attributes, kStack) != 0 ||
      pthread_create(
          &thread, &attributes,
          [](void* data) -> void* {
            auto& c = *static_cast<Call*>(data);
            c.status = CheckOutputs(RunSubject(c.session, c.context.seed), c.expected, "invoked");
            return nullptr;
          },
          &call) != 0;
  pthread_attr_destroy(&attributes);
  if (refused) return Internal("a thread of 64 KiB of stack cannot be made");
  pthread_join(thread, nullptr);
  return call.status;
}

// One core, all cores, one core, ... while invokes run.
Status NarrowedAffinity(const StressContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(const std::string expected, ExpectedOutputs(context));
  cpu_set_t all;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return Internal("no affinity");
  std::atomic<bool> done = false;
  const pid_t process = getpid();  // the main thread
  std::thread narrower([&] {
    for (int i = 0; !done; ++i) {
      cpu_set_t one;
      CPU_ZERO(&one);
      for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
        if (CPU_COUNT(&one) > 0) break;
      }
      sched_setaffinity(process, sizeof one, i % 2 == 0 ? &one : &all);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  Status status;
  Result<Session> session = OpenSubject(context);
  if (!session.ok()) status = session.status();
  for (int round = 0; round < context.rounds && status.ok(); ++round) {
    status = CheckOutputs(RunAgain(context, *session), expected, "on other cores");
    if (status.ok() && round % 10 == 0) {
      status = CheckOutputs(ExpectedOutputs(context), expected, "made on other cores");
    }
  }
  done = true;
  narrower.join();
  return status;
}

std::atomic<int64_t> alarms = 0;

// A signal every 500 microseconds, whose handler interrupts system calls.
Status Signals(const StressContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(const std::string expected, ExpectedOutputs(context));
  struct sigaction action {};
  action.sa_handler = [](int) { ++alarms; };
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 500}, {0, 500}};
  setitimer(ITIMER_REAL, &often, nullptr);
  Status status;
  for (int round = 0; (round < context.rounds || alarms < 20) && status.ok(); ++round) {
    status = CheckOutputs(ExpectedOutputs(context), expected, "under signals");
  }
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  return status;
}

// --- Floating point, files ---

Status RoundingUp(const StressContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(const std::string expected, ExpectedOutputs(context));
  FUSELITE_ASSIGN_OR_RETURN(Session session, OpenSubject(context));
  for (const int mode : {FE_UPWARD, FE_TOWARDZERO, FE_DOWNWARD}) {
    FUSELITE_RETURN_IF_ERROR(Restart(context, session));
    FUSELITE_RETURN_IF_ERROR(PrepareRun(session, context.seed));  // which rounds, too
    std::fesetround(mode);
    const Status invoked = session.interpreter->Invoke();
    const int after = std::fegetround();
    std::fesetround(FE_TONEAREST);
    FUSELITE_RETURN_IF_ERROR(invoked);
    if (after != mode) return Internal("the caller's rounding was not given back");
    FUSELITE_RETURN_IF_ERROR(CheckOutputs(OutputBytes(session), expected, "in another rounding"));
  }
  return Status();
}

Status ClosedFiles(const StressContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(const std::string expected, ExpectedOutputs(context));
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(file);
  StressContext writing = context;
  writing.options.verbose = true;
  writing.options.explain_file = "/proc/self/nowhere/explain.json";
  writing.options.profile_file = "/dev/full";
  return CheckOutputs(ExpectedOutputs(writing), expected, "without standard files");
}

constexpr Scenario kScenarios[] = {
    {"memory", "address space ends at any allocation", LimitedAddressSpace},
    {"noexec", "executable memory is refused; the result stays right", NoExecutableMemory},
    {"stack", "invoked on a thread of 64 KiB of stack", SmallStack},
    {"affinity", "the cores that are allowed change while it runs", NarrowedAffinity},
    {"signals", "a signal every half millisecond", Signals},
    {"rounding", "the caller's rounding mode changes nothing and is given back", RoundingUp},
    {"files", "standard files closed, others not to be written", ClosedFiles},
};

}  // namespace

std::span<const Scenario> SurroundingScenarios() { return kScenarios; }

}  // namespace fuselite::tools
