// What a region and a wait between two steps cost: the figures of docs/threads.md. Time only means
// something on an idle machine.
#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/execution/execution.h"
#include "runtime/threads/parallel.h"
#include "tests/runtime/toy_kernels.h"

namespace fuselite {
namespace {

using std::chrono::steady_clock;

// A region that ends when everybody has come, or after 10 ms.
void RegionThatMeets(int threads) {
  std::atomic<int> joined{0};
  ParallelRegion(threads, [&](int, int count) {
    ++joined;
    const auto end = steady_clock::now() + std::chrono::milliseconds(10);
    while (joined < count && steady_clock::now() < end) continue;
  });
}

void HotRegion(benchmark::State& state) {
  for (auto _ : state) RegionThatMeets(static_cast<int>(state.range(0)));
}
BENCHMARK(HotRegion)->Arg(1)->Arg(2)->UseRealTime();

// Measures a region after 5 ms of idling; without waiting for the helper, as an execution does, and
// with.
void ColdRegion(benchmark::State& state) {
  const bool meet = state.range(0) != 0;
  for (auto _ : state) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const auto start = steady_clock::now();
    if (meet) {
      RegionThatMeets(2);
    } else {
      ParallelRegion(2, [](int, int) {});
    }
    state.SetIterationTime(std::chrono::duration<double>(steady_clock::now() - start).count());
  }
}
BENCHMARK(ColdRegion)->ArgName("meet")->Arg(0)->Arg(1)->UseManualTime()->Iterations(100);

// A chain of steps of which each waits for the one before; per step.
void WaitBetweenSteps(benchmark::State& state) {
  constexpr int kSteps = 100;
  constexpr size_t kBytes = 4096;
  ExecutableBuilder builder;
  const int in = builder.AddInput(kBytes), out = builder.AddOutput(kBytes);
  int last = in;
  for (int i = 0; i < kSteps; ++i) {
    const int next = i + 1 < kSteps ? builder.AddTemporary(kBytes) : out;
    ToyKernel nothing(64, [](const KernelArgs&, int, int64_t, int64_t) { return Status(); });
    builder.AddStep(MakeStep("step", std::move(nothing), {last}, {next}));
    last = next;
  }
  auto built = std::move(builder).Build();
  if (!built.ok()) return state.SkipWithError(built.status().ToString().c_str());
  Execution execution(*built);
  std::vector<std::byte> input(kBytes), output(kBytes);
  execution.BindInput(0, input.data());
  execution.BindOutput(0, output.data());
  for (auto _ : state) {
    const Status status = execution.Run({.threads = static_cast<int>(state.range(0))});
    if (!status.ok()) return state.SkipWithError(status.ToString().c_str());
  }
  state.SetItemsProcessed(state.iterations() * kSteps);
}
BENCHMARK(WaitBetweenSteps)->Arg(1)->Arg(2)->UseRealTime();

}  // namespace
}  // namespace fuselite
