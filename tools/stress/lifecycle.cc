#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <random>
#include <thread>

#include "tools/measure/measure.h"
#include "tools/stress/scenario.h"

namespace fuselite::tools {
namespace {

// Calls `work(i)` in `count` threads; the first error of any of them.
Status InThreads(int count, const std::function<Status(int)>& work) {
  std::mutex mutex;
  Status first;
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      const Status status = work(i);
      const std::lock_guard lock(mutex);
      if (!status.ok() && first.ok()) first = status;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return first;
}

Status AgreesWithReference(const StressContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(const Outputs expected, ReferenceOutputs(context));
  FUSELITE_ASSIGN_OR_RETURN(const Outputs actual, FreshOutputs(context));
  return CheckNear(context, actual, expected);
}

// Without what the allocator keeps of freed memory.
int64_t OccupiedBytes() {
  malloc_trim(0);
  return ResidentBytes();
}

// The first rounds do not count: caches and pools fill up. What many rounds add is a leak.
Status CreateAndDestroy(const StressContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(const std::string expected, ExpectedOutputs(context));
  constexpr int kSettling = 20;
  constexpr int64_t kOnce = 1 << 20, kInARound = 256;
  int64_t settled = 0;
  for (int round = 0; round < kSettling + context.rounds; ++round) {
    if (round == kSettling) settled = OccupiedBytes();
    FUSELITE_RETURN_IF_ERROR(CheckOutputs(ExpectedOutputs(context), expected, "a later round"));
  }
  const int64_t growth = OccupiedBytes() - settled;
  if (growth > kOnce + kInARound * context.rounds) {
    return Internal("memory grew by ", growth, " bytes in ", context.rounds, " rounds");
  }
  return Status();
}

Status ManyAlive(const StressContext& context) {
  constexpr size_t kAlive = 200;
  FUSELITE_ASSIGN_OR_RETURN(const std::string expected, ExpectedOutputs(context));
  std::vector<Session> sessions;
  while (sessions.size() < kAlive) {
    FUSELITE_ASSIGN_OR_RETURN(Session session, OpenSubject(context));
    sessions.push_back(std::move(session));
  }
  for (const Session& session : sessions) {
    FUSELITE_RETURN_IF_ERROR(
        CheckOutputs(RunSubject(session, context.seed), expected, "one of 200"));
  }
  return Status();
}

Status SideBySide(const StressContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(const std::string expected, ExpectedOutputs(context));
  return InThreads(8, [&](int) -> Status {
    FUSELITE_ASSIGN_OR_RETURN(Session session, OpenSubject(context));
    for (int round = 0; round < context.rounds / 4 + 1; ++round) {
      FUSELITE_RETURN_IF_ERROR(CheckOutputs(RunAgain(context, session), expected, "beside others"));
    }
    return Status();
  });
}

// Half of the threads invoke, the others make and destroy interpreters that share packed weights
// with theirs.
Status DestroyDuringInvoke(const StressContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(const std::string expected, ExpectedOutputs(context));
  std::atomic<int> invoking = 2;
  return InThreads(4, [&](int i) -> Status {
    if (i % 2 == 1) {
      while (invoking > 0) FUSELITE_RETURN_IF_ERROR(OpenSubject(context).status());
      return Status();
    }
    Status status;
    Result<Session> session = OpenSubject(context);
    if (!session.ok()) status = session.status();
    for (int round = 0; round < context.rounds && status.ok(); ++round) {
      status = CheckOutputs(RunAgain(context, *session), expected, "while others go");
    }
    --invoking;
    return status;
  });
}

// Runs of one session while a thread ends them at any moment, and one behind them.
Status CancelRuns(const StressContext& context, const std::string& expected, int runs) {
  FUSELITE_ASSIGN_OR_RETURN(Session session, OpenSubject(context));
  std::atomic<bool> done = false;
  std::thread canceller([&] {
    while (!done) session.delegate->state()->kernels().Cancel();
  });
  Status wrong;
  for (int run = 0; run < runs && wrong.ok(); ++run) {
    const Result<std::string> outputs = RunSubject(session, context.seed);
    if (outputs.ok()) wrong = CheckOutputs(outputs, expected, "not cancelled");
  }
  done = true;
  canceller.join();
  FUSELITE_RETURN_IF_ERROR(wrong);
  return CheckOutputs(RunAgain(context, session), expected, "after being cancelled");
}

// A run that was ended says so; the next one is whole.
Status CancelDuringInvoke(const StressContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(const std::string expected, ExpectedOutputs(context));
  // What was ended may have changed resource variables, which the next run would begin with.
  const int runs = HasResourceVariables(*context.model) ? 1 : context.rounds;
  for (int round = 0; round < context.rounds; round += runs) {
    FUSELITE_RETURN_IF_ERROR(CancelRuns(context, expected, runs));
  }
  return Status();
}

Status ResizeBetweenInvokes(const StressContext& context) {
  constexpr int kBatches = 4;
  std::vector<std::string> expected(kBatches + 1);
  for (int batch = 1; batch <= kBatches; ++batch) {
    const Result<std::string> outputs = ExpectedOutputs(context, batch);
    if (outputs.ok()) expected[batch] = *outputs;
  }
  FUSELITE_ASSIGN_OR_RETURN(Session session, OpenSubject(context));
  std::mt19937_64 random(context.seed);
  for (int round = 0; round < context.rounds; ++round) {
    const int batch = 1 + static_cast<int>(random() % kBatches);
    if (expected[batch].empty()) continue;  // the model does not take it
    FUSELITE_RETURN_IF_ERROR(Restart(context, session));
    interpreter::Interpreter& interpreter = *session.interpreter;
    for (size_t i = 0; i < interpreter.inputs().size(); ++i) {
      const Shape shape = interpreter.input(static_cast<int>(i)).shape;
      std::vector<int32_t> dims(shape.dims().begin(), shape.dims().end());
      if (!dims.empty()) dims.front() = batch;
      FUSELITE_RETURN_IF_ERROR(interpreter.ResizeInput(static_cast<int>(i), dims));
    }
    FUSELITE_RETURN_IF_ERROR(interpreter.AllocateTensors());
    FUSELITE_RETURN_IF_ERROR(
        CheckOutputs(RunSubject(session, context.seed), expected[batch], "after a resize"));
  }
  return Status();
}

// Whether `work` succeeds in a forked child; its error is lost, its success is what counts.
Status InFork(const std::function<Status()>& work, std::string_view when) {
  const pid_t child = fork();
  if (child == 0) _exit(work().ok() ? 0 : 1);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
    return Internal(when, ": the forked child ended with status ", status);
  }
  return Status();
}

Status ForkAround(const StressContext& context) {
  FUSELITE_RETURN_IF_ERROR(
      InFork([&] { return ExpectedOutputs(context).status(); }, "before a first invoke"));
  FUSELITE_ASSIGN_OR_RETURN(Session session, OpenSubject(context));
  FUSELITE_ASSIGN_OR_RETURN(const std::string expected, RunSubject(session, context.seed));
  for (int round = 0; round < std::min(context.rounds, 20); ++round) {
    const auto again = [&] {
      const Status kept = CheckOutputs(RunAgain(context, session), expected, "inherited");
      return kept.ok() ? CheckOutputs(ExpectedOutputs(context), expected, "fresh") : kept;
    };
    FUSELITE_RETURN_IF_ERROR(InFork(again, "after an invoke"));
    FUSELITE_RETURN_IF_ERROR(CheckOutputs(RunAgain(context, session), expected, "parent"));
  }
  return Status();
}

constexpr Scenario kScenarios[] = {
    {"reference", "gives what the reference kernels give", AgreesWithReference},
    {"cycles", "made, run and destroyed again and again; memory stays flat", CreateAndDestroy},
    {"many", "200 interpreters alive", ManyAlive},
    {"threads", "8 interpreters in 8 threads, weights shared", SideBySide},
    {"destroy", "interpreters made and destroyed during the invokes of others",
     DestroyDuringInvoke},
    {"cancel", "cancelled at any moment; the next run is whole", CancelDuringInvoke},
    {"resize", "inputs resized at random between invokes", ResizeBetweenInvokes},
    {"fork", "forked before and after a first invoke", ForkAround},
};

}  // namespace

std::span<const Scenario> LifecycleScenarios() { return kScenarios; }

}  // namespace fuselite::tools
