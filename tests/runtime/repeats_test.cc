// Executables that repeat another one, a part of each input and output at a time.
#include "runtime/execution/repeats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/threads/parallel.h"
#include "tests/runtime/toy_kernels.h"

namespace fuselite {
namespace {

using testing::HasSubstr;

constexpr int64_t kN = 67;
constexpr size_t kBytes = kN * sizeof(float);

// Two steps with a value between them; `first` computes kN floats of kN floats.
std::shared_ptr<const Executable> Part(ToyKernel first) {
  ExecutableBuilder b;
  const int in = b.AddInput(kBytes), out = b.AddOutput(kBytes), between = b.AddTemporary(kBytes);
  b.AddStep(MakeStep("first", std::move(first), {in}, {between}));
  b.AddStep(MakeStep("second", StencilKernel(kN, 2.0f), {between}, {out}));
  auto built = std::move(b).Build();
  EXPECT_TRUE(built.ok()) << built.status().ToString();
  return built.ok() ? *built : nullptr;
}

std::vector<float> Ramp(int repeats) {
  std::vector<float> values(static_cast<size_t>(kN * repeats));
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

std::vector<float> Expected(const std::shared_ptr<const Executable>& part,
                            const std::vector<float>& in) {
  std::vector<float> out(in.size());
  Execution execution(part);
  for (size_t at = 0; at < in.size(); at += kN) {
    execution.BindInput(0, in.data() + at);
    execution.BindOutput(0, out.data() + at);
    const Status status = execution.Run();
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  return out;
}

// So many repetitions, bound to a ramp and to what they give.
struct Repeated {
  Repeated(std::shared_ptr<const Executable> part, int repeats)
      : execution(Executable::Repeat(std::move(part), repeats)), in(Ramp(repeats)), out(in.size()) {
    execution.BindInput(0, in.data());
    execution.BindOutput(0, out.data());
  }
  Execution execution;
  std::vector<float> in, out;
};

TEST(Repeats, GiveWhatRunsOfThePartsGive) {
  const auto part = Part(StencilKernel(kN, 0.5f));
  for (const int repeats : {1, 2, 3, 7}) {
    const std::vector<float> in = Ramp(repeats), expected = Expected(part, in);
    Execution execution(Executable::Repeat(part, repeats));
    for (const int threads : {1, 2, 3, 4, 7, 16}) {
      std::vector<float> out(in.size(), -1.0f);
      execution.BindInput(0, in.data());
      execution.BindOutput(0, out.data());
      const Status status = execution.Run({.threads = threads});
      ASSERT_TRUE(status.ok()) << status.ToString();
      ASSERT_EQ(out, expected) << repeats << " parts, " << threads << " threads";
      execution.ReleaseMemory();
    }
  }
}

TEST(Repeats, HandTheirMemoryToOthers) {
  const auto part = Part(StencilKernel(kN, 0.5f));
  SpareMemory spare;
  for (const int repeats : {5, 2, 7}) {
    const std::vector<float> in = Ramp(repeats), expected = Expected(part, in);
    Execution execution(Executable::Repeat(part, repeats), &spare);
    for (const int threads : {3, 1, 2}) {
      std::vector<float> out(in.size(), -1.0f);
      execution.BindInput(0, in.data());
      execution.BindOutput(0, out.data());
      ASSERT_TRUE(execution.Run({.threads = threads}).ok());
      ASSERT_EQ(out, expected) << repeats << " parts, " << threads << " threads";
    }
  }
}

// Each input and output is as long as the part of it that reaches furthest.
TEST(Repeats, TellTheBytesOfTheirOperands) {
  ExecutableBuilder b;
  const int a = b.AddInput(40), c = b.AddInput(12), out = b.AddOutput(8), last = b.AddOutput(4);
  b.AddStep(MakeStep("s", AddKernel(1), {a, b.AddAlias(a, 4, 8)}, {b.AddAlias(out, 4, 4), out}));
  b.AddStep(MakeStep("t", AddKernel(1), {c, c}, {last}));
  const auto repeated = Executable::Repeat(BuildOrDie(std::move(b)), 3);
  EXPECT_EQ(repeated->input_bytes(0), 3 * 40u);
  EXPECT_EQ(repeated->input_bytes(1), 3 * 12u);
  EXPECT_EQ(repeated->output_bytes(0), 3 * 8u);
  EXPECT_EQ(repeated->output_bytes(1), 3 * 4u);
}

TEST(Repeats, AreAThreadsWhereTheyAreLittle) {
  const auto useful = [](double cost, int repeats) {
    ExecutableBuilder b;
    b.AddStep(MakeStep("s", AddKernel(8), {b.AddInput(32), -1}, {b.AddOutput(32)}, cost));
    return Executable::Repeat(BuildOrDie(std::move(b)), repeats)->useful_threads();
  };
  constexpr double kMost = ExecutableBuilder::kMinParallelCost;
  EXPECT_EQ(useful(kMost / 5, 4), 1);
  EXPECT_EQ(useful(kMost / 5, 5), 5);
  EXPECT_EQ(useful(kMost, 4), 32);
  EXPECT_EQ(useful(-1, 4), 32);
}

TEST(Repeats, TellTheirOperandsAndThreads) {
  const auto part = Part(StencilKernel(kN, 0.5f));
  const auto repeated = Executable::Repeat(part, 5);
  EXPECT_EQ(repeated->part(), part);
  EXPECT_EQ(repeated->repeats(), 5);
  EXPECT_EQ(repeated->input_bytes(0), 5 * kBytes);
  EXPECT_EQ(repeated->output_bytes(0), 5 * kBytes);
  EXPECT_EQ(repeated->scratch_bytes(), part->arena_bytes() + part->scratch_bytes());
  EXPECT_EQ(repeated->useful_threads(), 5 * part->useful_threads());
  EXPECT_EQ(part->part(), nullptr);
  EXPECT_EQ(part->repeats(), 1);
}

// A kernel of two units: whoever runs one of them alone waits for the other one to begin, for a
// while.
ToyKernel MeetingKernel(std::atomic<int>& begun, std::atomic<int>& met) {
  return ToyKernel(2, [&](const KernelArgs& args, int, int64_t begin, int64_t end) -> Status {
    const auto* in = static_cast<const float*>(args.inputs[0]);
    auto* out = static_cast<float*>(args.outputs[0]);
    const auto from = begin * (kN / 2), to = end == 2 ? kN : kN / 2;
    std::copy(in + from, in + to, out + from);
    if (end - begin == 2) return {};
    ++begun;
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (begun % 2 != 0 && std::chrono::steady_clock::now() < patience) {
      std::this_thread::yield();
    }
    if (begun % 2 == 0) ++met;
    return {};
  });
}

TEST(Repeats, ThatAreLeftAreSharedByThreads) {
  if (!HasCoreForEach(2)) GTEST_SKIP() << "there are not two cores";
  for (const int repeats : {1, 3}) {
    std::atomic<int> begun{0}, met{0};
    Repeated repeated(Part(MeetingKernel(begun, met)), repeats);
    const Status status = repeated.execution.Run({.threads = 2});
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(begun, 2) << repeats;
    EXPECT_EQ(met, 2) << repeats;
  }
}

TEST(Repeats, RunWithFewerThreadsThanTheyWerePreparedFor) {
  const auto part = Part(StencilKernel(kN, 0.5f));
  Repeated repeated(part, 4);
  ASSERT_TRUE(repeated.execution.Prepare(4).ok());
  for (const int threads : {3, 4, 2, 1}) {
    std::ranges::fill(repeated.out, -1.0f);
    const Status status = repeated.execution.Run({.threads = threads});
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(repeated.out, Expected(part, repeated.in)) << threads << " threads";
  }
}

TEST(Repeats, OfNothingToBindAreRefused) {
  Execution execution(Executable::Repeat(Part(StencilKernel(kN, 0.5f)), 2));
  const std::vector<float> in = Ramp(2);
  execution.BindInput(0, in.data());
  EXPECT_THAT(execution.Run().ToString(), HasSubstr("output 0 is not bound"));

  ExecutableBuilder b;  // nobody asks the part which of its operands it reads
  b.AddStep(MakeStep("s", AddKernel(kN), {b.AddInput(kBytes), -1}, {b.AddOutput(kBytes)}));
  b.AddInput(kBytes);
  Repeated unused(BuildOrDie(std::move(b)), 2);
  EXPECT_THAT(unused.execution.Run().ToString(), HasSubstr("input 1 is not bound"));
}

// Fails in the part whose first value is `value`.
ToyKernel FailsAt(float value, bool throws) {
  return ToyKernel(1, [=](const KernelArgs& args, int, int64_t, int64_t) -> Status {
    const auto* in = static_cast<const float*>(args.inputs[0]);
    if (in[0] == value && throws) throw std::runtime_error("thrown");
    if (in[0] == value) return InvalidArgument("no such value");
    std::copy_n(in, kN, static_cast<float*>(args.outputs[0]));
    return {};
  });
}

TEST(Repeats, EndWithThePartThatFails) {
  for (const int failing : {0, 2, 4}) {  // the last one runs behind the others
    const auto value = static_cast<float>(1 + failing * kN);
    for (const int threads : {1, 2, 8}) {
      for (const bool throws : {false, true}) {
        Repeated repeated(Part(FailsAt(value, throws)), 5);
        Execution& execution = repeated.execution;
        EXPECT_THAT(execution.Run({.threads = threads}).ToString(),
                    HasSubstr(throws ? "thrown" : "no such value"));
        repeated.in[static_cast<size_t>(failing * kN)] = 0;
        EXPECT_TRUE(execution.Run({.threads = threads}).ok());
      }
    }
  }
}

TEST(Repeats, LeaveOutWhatIsBehindAnError) {
  int runs = 0;
  Repeated repeated(Part(ToyKernel(1,
                                   [&](const KernelArgs&, int, int64_t, int64_t) -> Status {
                                     ++runs;
                                     return InvalidArgument("no such value");
                                   })),
                    5);
  EXPECT_FALSE(repeated.execution.Run().ok());
  EXPECT_EQ(runs, 1);
}

TEST(Repeats, StopWhenTheyAreCancelled) {
  std::atomic<bool> cancel{false};
  std::atomic<int> runs{0};
  const auto part = Part(ToyKernel(1, [&](const KernelArgs& args, int, int64_t, int64_t) -> Status {
    std::copy_n(static_cast<const float*>(args.inputs[0]), kN,
                static_cast<float*>(args.outputs[0]));
    if (++runs == 2) cancel = true;
    return {};
  }));
  EXPECT_EQ(Repeated(part, 6).execution.Run({.cancel = &cancel}).code(), StatusCode::kCancelled);
  EXPECT_EQ(runs, 2);
}

TEST(Repeats, CountAsOneRunInTheProfile) {
  Repeated repeated(Part(StencilKernel(kN, 0.5f)), 5);
  Execution& execution = repeated.execution;
  Profile profile(1000);
  for (int run = 0; run < 3; ++run) {
    ASSERT_TRUE(execution.Run({.threads = 2, .profile = &profile}).ok());
  }
  std::map<uint32_t, std::map<int, int>> events;  // by run and step
  for (const ProfileEvent& event : profile.Events()) ++events[event.run][event.step];
  ASSERT_EQ(events.size(), 3u);
  for (const auto& [run, of_steps] : events) {
    ASSERT_EQ(of_steps.size(), 2u);
    for (const auto& [step, count] : of_steps) EXPECT_GE(count, 5);
  }
  const std::vector<StepTimes> times = profile.Summarize(execution.executable());
  ASSERT_EQ(times.size(), 2u);
  for (const StepTimes& step : times) {
    EXPECT_EQ(step.runs, 3);
    EXPECT_LE(step.wall_ns, step.busy_ns);
  }
}

// Ten events of three in a ring for 25: what is left of the first run is no run.
TEST(Repeats, ThatTheRingHasLostInPartDoNotCount) {
  Repeated repeated(Part(StencilKernel(kN, 0.5f)), 5);
  Execution& execution = repeated.execution;
  Profile profile(25);
  for (int run = 0; run < 3; ++run) ASSERT_TRUE(execution.Run({.profile = &profile}).ok());
  ASSERT_TRUE(profile.overflowed());
  for (const StepTimes& step : profile.Summarize(execution.executable())) EXPECT_EQ(step.runs, 2);
  EXPECT_FALSE(Profile::For(execution.executable())->overflowed());
}

}  // namespace
}  // namespace fuselite
