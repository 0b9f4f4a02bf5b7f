// A network of toy kernels for tests of runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/execution/executable.h"
#include "tests/runtime/toy_kernels.h"

namespace fuselite {

inline constexpr int64_t kN = 257;
inline constexpr size_t kBytes = kN * sizeof(float);

// A random network of stencils and additions of one input, with memory reuse, small steps, aliases.
inline std::shared_ptr<const Executable> RandomNetwork(unsigned seed) {
  std::mt19937 random(seed);
  ExecutableBuilder b;
  std::vector<int> values = {b.AddInput(kBytes)};
  const int out = b.AddOutput(2 * kBytes);
  const auto pick = [&] {
    return values[values.size() - 1 - random() % std::min<size_t>(values.size(), 4)];
  };
  for (int i = 0; i < 30; ++i) {
    const int next = b.AddAlias(b.AddTemporary(kBytes + 64), random() % 2 * 64, kBytes);
    const int64_t grain = random() % 3 == 0 ? kN : 1 + static_cast<int64_t>(random() % 40);
    const std::string name = "step_" + std::to_string(i);
    if (random() % 4 == 0) {
      b.AddStep(MakeStep(name, StreamingToy(StencilKernel(kN, 0.5f, grain)), {pick()}, {next}));
    } else if (random() % 2) {
      b.AddStep(MakeStep(name, StencilKernel(kN, 0.5f, grain), {pick()}, {next}));
    } else {
      b.AddStep(MakeStep(name, AddKernel(kN, grain), {pick(), random() % 5 ? pick() : -1}, {next}));
    }
    values.push_back(next);
  }
  b.AddStep(MakeStep("low", StencilKernel(kN, 1.0f), {pick()}, {b.AddAlias(out, 0, kBytes)}));
  b.AddStep(MakeStep("high", StencilKernel(kN, 2.0f), {pick()}, {b.AddAlias(out, kBytes, kBytes)}));
  return BuildOrDie(std::move(b));
}

inline std::vector<float> Ramp(float start = 0) {
  std::vector<float> values(kN);
  std::iota(values.begin(), values.end(), start);
  return values;
}

}  // namespace fuselite
