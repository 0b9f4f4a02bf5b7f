#include "runtime/execution/execution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <numeric>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "runtime/cpu/float_state.h"
#include "runtime/threads/parallel.h"
#include "tests/runtime/random_network.h"

namespace fuselite {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::vector<float> RunOnce(Execution& execution, const std::vector<float>& in, int threads) {
  std::vector<float> out(2 * kN, -1.0f);
  execution.BindInput(0, in.data());
  execution.BindOutput(0, out.data());
  const Status status = execution.Run({.threads = threads});
  EXPECT_TRUE(status.ok()) << status.ToString();
  return out;
}

TEST(Execution, SameBitsForEveryNumberOfThreads) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto executable = RandomNetwork(seed);
    ASSERT_NE(executable, nullptr);
    Execution alone(executable), shared(executable);
    for (int round = 0; round < 10; ++round) {
      const std::vector<float> in = Ramp(static_cast<float>(round));
      const std::vector<float> expected = RunOnce(alone, in, 1);
      for (int threads = 1; threads <= 4; ++threads) {
        ASSERT_EQ(RunOnce(shared, in, threads), expected) << "seed " << seed << ", " << threads;
      }
    }
  }
}

TEST(Execution, SharesItsWorkAmongThreads) {
  if (!HasCoreForEach(2)) GTEST_SKIP() << "there are not two cores";
  std::mutex mutex;
  std::set<std::thread::id> workers;  // guarded by `mutex`
  ExecutableBuilder b;
  const auto work = [&](const KernelArgs&, int, int64_t, int64_t) {
    const std::lock_guard lock(mutex);
    workers.insert(std::this_thread::get_id());
    return Status();
  };
  b.AddStep(MakeStep("work", ToyKernel(1000, work), {}, {b.AddOutput(4)}));
  Execution execution(BuildOrDie(std::move(b)));
  float out = 0;
  execution.BindOutput(0, &out);
  // The other thread may come late, or not at all while others need its core.
  const auto late = std::chrono::steady_clock::now() + 60s;
  while (workers.size() < 2 && std::chrono::steady_clock::now() < late) {
    ASSERT_TRUE(execution.Run({.threads = 2}).ok());
  }
  EXPECT_EQ(workers.size(), 2u);
}

// Whole phases, which are not taken in ranges, where every core is busy.
TEST(Execution, RunsAloneBesideARegionThatHasAllCores) {
  std::atomic<int> whole{0}, parts{0};
  bool fail = false;
  ExecutableBuilder b;
  const auto count = [&](const KernelArgs&, int, int64_t begin, int64_t end) -> Status {
    ++(begin == 0 && end == 1000 ? whole : parts);
    return fail ? InvalidArgument("no such value") : Status();
  };
  b.AddStep(MakeStep("count", ToyKernel(1000, count), {}, {b.AddOutput(4)}));
  Execution execution(BuildOrDie(std::move(b)));
  float out = 0;
  execution.BindOutput(0, &out);
  ParallelRegion(std::max(AllowedCores(), 2), [&](int thread, int) {
    if (thread != 0) return;
    EXPECT_TRUE(execution.Run({.threads = 4}).ok());
    fail = true;
    EXPECT_EQ(execution.Run({.threads = 4}).message(), "count: no such value");
  });
  EXPECT_EQ(whole, 2);
  EXPECT_EQ(parts, 0);
}

// A run of some microseconds that threads make longer is left to one of them.
TEST(Execution, LeavesThreadsThatCost) {
  std::atomic<bool> alone{false};
  ExecutableBuilder b;
  const auto work = [&](const KernelArgs&, int, int64_t begin, int64_t end) {
    alone = end - begin == 2;
    const auto late = std::chrono::steady_clock::now() + (alone ? 0us : 20us);
    while (std::chrono::steady_clock::now() < late) continue;
    return Status();
  };
  b.AddStep(MakeStep("work", ToyKernel(2, work), {}, {b.AddOutput(4)}));
  const auto executable = BuildOrDie(std::move(b));
  float out = 0;
  // On a busy machine runs may take so long that they are taken for long ones.
  for (int attempt = 0; attempt < 100 && !alone; ++attempt) {
    Execution execution(executable);
    execution.BindOutput(0, &out);
    for (int run = 0; run < 30; ++run) ASSERT_TRUE(execution.Run({.threads = 2}).ok());
  }
  EXPECT_TRUE(alone);
}

TEST(Execution, ManyOfOneExecutableAtTheSameTime) {
  const auto executable = RandomNetwork(99);
  Execution reference(executable);
  std::vector<std::vector<float>> expected;
  for (int i = 0; i < 8; ++i)
    expected.push_back(RunOnce(reference, Ramp(static_cast<float>(i)), 1));
  std::vector<std::thread> hosts;
  std::atomic<int> wrong{0};
  for (int host = 0; host < 8; ++host) {
    hosts.emplace_back([&, host] {
      Execution mine(executable);
      const std::vector<float> in = Ramp(static_cast<float>(host));
      for (int round = 0; round < 30; ++round) {
        wrong += RunOnce(mine, in, 1 + round % 4) != expected[static_cast<size_t>(host)];
      }
    });
  }
  for (std::thread& host : hosts) host.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Execution, PointersMayMoveBetweenRuns) {
  ExecutableBuilder b;
  const int in = b.AddInput(kBytes), out = b.AddOutput(kBytes);
  b.AddStep(MakeStep("a", AddKernel(kN), {in, -1}, {out}));
  Execution execution(BuildOrDie(std::move(b)));
  std::vector<float> first = Ramp(1), second = Ramp(5), out1(kN), out2(kN);
  execution.BindInput(0, first.data());
  execution.BindOutput(0, out1.data());
  ASSERT_TRUE(execution.Run().ok());
  execution.BindInput(0, second.data());
  ASSERT_TRUE(execution.Run().ok());
  EXPECT_EQ(out1, second);
  execution.BindOutput(0, out2.data());
  execution.BindInput(0, first.data());
  ASSERT_TRUE(execution.Run({.threads = 3}).ok());
  EXPECT_EQ(out2, first);
  EXPECT_EQ(out1, second);
}

TEST(Execution, UnboundOperandsAreNamed) {
  ExecutableBuilder b;
  const int in = b.AddInput(kBytes), out = b.AddOutput(kBytes);
  b.AddInput(4);                      // nobody reads it
  const int nothing = b.AddInput(0);  // there is nothing to read
  b.AddStep(MakeStep("a", AddKernel(kN), {in, nothing}, {out}));
  Execution execution(BuildOrDie(std::move(b)));
  EXPECT_EQ(execution.Run().ToString(), "invalid argument: input 0 is not bound to memory");
  std::vector<float> data(kN);
  execution.BindInput(0, data.data());
  EXPECT_EQ(execution.Run().ToString(), "invalid argument: output 0 is not bound to memory");
  execution.BindOutput(0, data.data());
  EXPECT_TRUE(execution.Run().ok());

  ExecutableBuilder keeps;
  const int state = keeps.AddVariable(kBytes);
  keeps.AddStep(MakeStep("a", AddKernel(kN), {state, state}, {state}));
  Execution kept(BuildOrDie(std::move(keeps)));
  EXPECT_EQ(kept.Run().ToString(), "invalid argument: variable 0 is not bound to memory");
}

TEST(Execution, VariablesKeepTheirContents) {
  for (int threads : {1, 3}) {
    ExecutableBuilder b;
    const int in = b.AddInput(kBytes), out = b.AddOutput(kBytes), state = b.AddVariable(kBytes);
    b.AddStep(MakeStep("accumulate", AddKernel(kN), {state, in}, {state}));
    b.AddStep(MakeStep("copy", AddKernel(kN), {state, -1}, {out}));
    Execution execution(BuildOrDie(std::move(b)));
    std::vector<float> ones(kN, 1.0f), total(kN, 0.0f), seen(kN);
    execution.BindInput(0, ones.data());
    execution.BindOutput(0, seen.data());
    execution.BindVariable(0, total.data());
    for (int run = 1; run <= 5; ++run) {
      ASSERT_TRUE(execution.Run({.threads = threads}).ok());
      EXPECT_EQ(seen, std::vector<float>(kN, static_cast<float>(run)));
    }
    EXPECT_EQ(total, seen);
  }
}

TEST(Execution, ConstantsLiveAsLongAsTheExecutable) {
  auto data = std::make_shared<std::vector<float>>(kN, 2.0f);
  const std::weak_ptr<std::vector<float>> watch = data;
  ExecutableBuilder b;
  const int out = b.AddOutput(kBytes);
  const int constant = b.AddConstant(data->data(), kBytes, data);
  b.AddStep(MakeStep("a", AddKernel(kN), {constant, constant}, {out}));
  data.reset();
  {
    Execution execution(BuildOrDie(std::move(b)));
    std::vector<float> seen(kN);
    execution.BindOutput(0, seen.data());
    ASSERT_TRUE(execution.Run().ok());
    EXPECT_EQ(seen, std::vector<float>(kN, 4.0f));
    EXPECT_FALSE(watch.expired());
  }
  EXPECT_TRUE(watch.expired());
}

// Phase 0 writes into `shared`, phase 1 reads what other units wrote; each thread fills its
// scratch.
TEST(Execution, PhasesShareMemoryAndScratchIsOfTheThread) {
  ExecutableBuilder b;
  const int out = b.AddOutput(kBytes);
  ToyKernel kernel(kN, [](const KernelArgs& args, int phase, int64_t begin, int64_t end) -> Status {
    auto* shared = reinterpret_cast<float*>(args.shared);
    auto* scratch = reinterpret_cast<float*>(args.scratch);
    if (reinterpret_cast<uintptr_t>(shared) % kAlignment ||
        reinterpret_cast<uintptr_t>(scratch) % kAlignment) {
      return Internal("misaligned");
    }
    for (int64_t i = begin; i < end; ++i) {
      scratch[0] = static_cast<float>(i);
      std::this_thread::yield();
      if (phase == 0) shared[i] = scratch[0];
      if (phase == 1) static_cast<float*>(args.outputs[0])[i] = shared[kN - 1 - i] + scratch[0];
    }
    return {};
  });
  b.AddStep(MakeStep("two", std::move(kernel.Phases({kN, kN}).Scratch(4, kBytes)), {}, {out}));
  Execution execution(BuildOrDie(std::move(b)));
  std::vector<float> seen(kN);
  execution.BindOutput(0, seen.data());
  for (int threads = 1; threads <= 4; ++threads) {
    std::fill(seen.begin(), seen.end(), -1.0f);
    const Status status = execution.Run({.threads = threads});
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(seen, std::vector<float>(kN, static_cast<float>(kN - 1)));
  }
}

// Runs `middle` between two steps of which the second must not run when it fails.
struct Interrupted {
  std::atomic<int> after{0};
  std::vector<float> in = Ramp(), out = std::vector<float>(kN);
  std::unique_ptr<Execution> execution;

  explicit Interrupted(ToyKernel::Function middle) {
    ExecutableBuilder b;
    const int input = b.AddInput(kBytes), output = b.AddOutput(kBytes);
    const int t = b.AddTemporary(kBytes), u = b.AddTemporary(kBytes);
    b.AddStep(MakeStep("first", StencilKernel(kN, 1.0f), {input}, {t}));
    b.AddStep(MakeStep("middle", ToyKernel(kN, std::move(middle)), {t}, {u}));
    b.AddStep(MakeStep("last",
                       ToyKernel(kN,
                                 [this](const KernelArgs&, int, int64_t, int64_t) {
                                   ++after;
                                   return Status();
                                 }),
                       {u}, {output}));
    execution = std::make_unique<Execution>(BuildOrDie(std::move(b)));
    execution->BindInput(0, in.data());
    execution->BindOutput(0, out.data());
  }
};

TEST(Execution, AKernelsErrorEndsTheRunAndNamesTheStep) {
  for (int threads = 1; threads <= 4; ++threads) {
    bool fail = true;
    Interrupted run([&](const KernelArgs&, int, int64_t begin, int64_t end) -> Status {
      if (fail && begin <= 100 && 100 < end) return InvalidArgument("index 100 is out of range");
      return {};
    });
    EXPECT_EQ(run.execution->Run({.threads = threads}).ToString(),
              "invalid argument: middle: index 100 is out of range");
    EXPECT_EQ(run.after, 0);
    fail = false;
    EXPECT_TRUE(run.execution->Run({.threads = threads}).ok());
    EXPECT_GT(run.after, 0);
  }
}

TEST(Execution, KernelsRoundToTheNearestAndTheHostsStateComesBack) {
  const uint64_t plain = internal::ReadFloatState();
#if defined(__x86_64__)
  const uint64_t host = plain | 0xE040;  // toward zero, flushing
#else
  const uint64_t host = plain | uint64_t{7} << 22;
#endif
  for (int threads : {1, 3}) {
    std::atomic<bool> same = true;
    Interrupted run([&](const KernelArgs&, int, int64_t, int64_t) -> Status {
      if (internal::ReadFloatState() != plain) same = false;
      return {};
    });
    internal::WriteFloatState(host);
    const Status status = run.execution->Run({.threads = threads});
    const uint64_t after = internal::ReadFloatState();
    internal::WriteFloatState(plain);
    EXPECT_TRUE(status.ok()) << status.ToString();
    EXPECT_TRUE(same);
    EXPECT_EQ(after, host);
  }
}

TEST(Execution, ExceptionsBecomeErrors) {
  for (int threads : {1, 3}) {
    Interrupted run([](const KernelArgs&, int, int64_t, int64_t) -> Status {
      throw std::runtime_error("surprise");
    });
    EXPECT_EQ(run.execution->Run({.threads = threads}).ToString(),
              "internal error: middle in toy: surprise");
    Interrupted odd([](const KernelArgs&, int, int64_t, int64_t) -> Status { throw 1; });
    EXPECT_EQ(odd.execution->Run({.threads = threads}).ToString(),
              "internal error: middle in toy: an exception of unknown type");
    Interrupted starved(
        [](const KernelArgs&, int, int64_t, int64_t) -> Status { throw std::bad_alloc(); });
    EXPECT_EQ(starved.execution->Run({.threads = threads}).code(), StatusCode::kOutOfMemory);
  }
}

TEST(Execution, CancelledBetweenSteps) {
  for (int threads : {1, 3}) {
    std::atomic<bool> cancel{false};
    Interrupted run([&](const KernelArgs&, int, int64_t, int64_t) {
      cancel = true;
      return Status();
    });
    const Status status = run.execution->Run({.threads = threads, .cancel = &cancel});
    EXPECT_EQ(status.code(), StatusCode::kCancelled);
    EXPECT_THAT(status.message(), HasSubstr("cancelled before"));
    EXPECT_EQ(run.after, 0);
    EXPECT_TRUE(run.execution->Run({.threads = threads}).ok());
  }
}

TEST(Execution, DeadlineIsLookedAtBetweenSteps) {
  for (int threads : {1, 3}) {
    const auto deadline = std::chrono::steady_clock::now() + 30ms;
    Interrupted run([&](const KernelArgs&, int, int64_t, int64_t) {
      std::this_thread::sleep_until(deadline);
      return Status();
    });
    const std::atomic<bool> not_cancelled{false};
    for (const auto* cancel :
         std::initializer_list<const std::atomic<bool>*>{nullptr, &not_cancelled}) {
      EXPECT_EQ(
          run.execution->Run({.threads = threads, .deadline = deadline, .cancel = cancel}).code(),
          StatusCode::kDeadlineExceeded);
    }
    EXPECT_EQ(run.after, 0);
    const auto later = std::chrono::steady_clock::now() + 1h;
    EXPECT_TRUE(run.execution->Run({.threads = threads, .deadline = later}).ok());
  }
}

TEST(Execution, MemoryIsTakenLateAndCanBeGivenBack) {
  const auto executable = RandomNetwork(3);
  Execution execution(executable);
  const std::vector<float> in = Ramp(), expected = RunOnce(execution, in, 2);
  execution.ReleaseMemory();
  EXPECT_EQ(RunOnce(execution, in, 1), expected);
  execution.ReleaseMemory();
  ASSERT_TRUE(execution.Prepare(4).ok());
  EXPECT_EQ(RunOnce(execution, in, 4), expected);
}

// The other one wrote where the values of this one lie.
TEST(Execution, HandsItsMemoryToOthers) {
  SpareMemory spare;
  const std::vector<float> in = Ramp();
  const auto small = RandomNetwork(3), large = RandomNetwork(5);
  Execution alone_small(small), alone_large(large);
  const std::vector<float> of_small = RunOnce(alone_small, in, 2),
                           of_large = RunOnce(alone_large, in, 2);
  Execution a(small, &spare), b(large, &spare);
  for (int turn = 0; turn < 3; ++turn) {
    for (const int threads : {1, 2, 4}) {
      EXPECT_EQ(RunOnce(a, in, threads), of_small);
      a.ReleaseMemory();
      EXPECT_EQ(RunOnce(b, in, threads), of_large);
      b.ReleaseMemory();
    }
  }
}

TEST(Execution, AnArenaThatDoesNotFitIsAnError) {
  ExecutableBuilder b;
  const int out = b.AddOutput(kBytes), big = b.AddTemporary(size_t{1} << 40);
  b.AddStep(
      MakeStep("a", ToyKernel(1, [](const KernelArgs&, int, int64_t, int64_t) { return Status(); }),
               {}, {big, out}));
  Execution execution(BuildOrDie(std::move(b)));
  std::vector<float> seen(kN);
  execution.BindOutput(0, seen.data());
  EXPECT_EQ(execution.Run().code(), StatusCode::kOutOfMemory);
}

}  // namespace
}  // namespace fuselite
