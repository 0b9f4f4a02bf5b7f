// Small kernels for tests of what runs kernels.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/execution/executable.h"
#include "runtime/execution/kernel.h"
#include "runtime/execution/streaming_kernel.h"

namespace fuselite {

// A kernel made of a function and numbers.
class ToyKernel : public Kernel {
 public:
  using Function =
      std::function<Status(const KernelArgs& args, int phase, int64_t begin, int64_t end)>;

  ToyKernel(int64_t units, Function run, int64_t grain = 1)
      : units_{units}, grain_(grain), run_(std::move(run)) {}
  ToyKernel& Phases(std::vector<int64_t> units) {
    units_ = std::move(units);
    return *this;
  }
  ToyKernel& Scratch(size_t scratch, size_t shared) {
    scratch_ = scratch;
    shared_ = shared;
    return *this;
  }

  std::string_view name() const override { return "toy"; }
  int phases() const override { return static_cast<int>(units_.size()); }
  int64_t units(int phase) const override { return units_[static_cast<size_t>(phase)]; }
  int64_t grain(int) const override { return grain_; }
  size_t scratch_bytes() const override { return scratch_; }
  size_t shared_bytes() const override { return shared_; }
  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const override {
    return run_(args, phase, begin, end);
  }

 private:
  std::vector<int64_t> units_;
  int64_t grain_;
  Function run_;
  size_t scratch_ = 0, shared_ = 0;
};

// A ToyKernel that says that it reads constants, some for each unit.
class StreamingToy final : public ToyKernel, public StreamingKernel {
 public:
  explicit StreamingToy(ToyKernel kernel)
      : ToyKernel(std::move(kernel)), constants_(static_cast<size_t>(units(0)) * kOfUnit) {}
  std::span<const std::byte> StreamFrom(int64_t begin) const override {
    return std::span<const std::byte>(constants_).subspan(static_cast<size_t>(begin) * kOfUnit);
  }

 private:
  static constexpr size_t kOfUnit = 200;
  std::vector<std::byte> constants_;
};

// out[i] = factor * in[i] + sum of a few neighbours (cyclic), so that a unit needs other units of
// the step before: a missing wait shows.
inline ToyKernel StencilKernel(int64_t n, float factor, int64_t grain = 1) {
  return ToyKernel(
      n,
      [n, factor](const KernelArgs& args, int, int64_t begin, int64_t end) -> Status {
        const auto* in = static_cast<const float*>(args.inputs[0]);
        auto* out = static_cast<float*>(args.outputs[0]);
        for (int64_t i = begin; i < end; ++i) {
          out[i] = factor * in[i] + 0.25f * in[(i + n / 2) % n] + 0.125f * in[(i + n - 1) % n];
        }
        return {};
      },
      grain);
}

inline ToyKernel AddKernel(int64_t n, int64_t grain = 1) {
  return ToyKernel(
      n,
      [](const KernelArgs& args, int, int64_t begin, int64_t end) -> Status {
        const auto* a = static_cast<const float*>(args.inputs[0]);
        const auto* b = static_cast<const float*>(args.inputs[1]);
        for (int64_t i = begin; i < end; ++i) {
          static_cast<float*>(args.outputs[0])[i] = a[i] + (b ? b[i] : 0.0f);
        }
        return {};
      },
      grain);
}

template <class Toy>
Step MakeStep(std::string name, Toy kernel, std::vector<int> inputs, std::vector<int> outputs,
              double cost = -1) {
  Step step;
  step.name = std::move(name);
  step.ops = "TOY";
  step.kernel = std::make_unique<const Toy>(std::move(kernel));
  step.inputs = std::move(inputs);
  step.outputs = std::move(outputs);
  step.cost = cost;
  return step;
}

inline std::shared_ptr<const Executable> BuildOrDie(ExecutableBuilder builder) {
  auto built = std::move(builder).Build();
  EXPECT_TRUE(built.ok()) << built.status().ToString();
  return built.ok() ? *built : nullptr;
}

}  // namespace fuselite
