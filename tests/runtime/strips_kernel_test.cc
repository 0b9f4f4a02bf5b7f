#include "runtime/execution/strips_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "runtime/memory/aligned_buffer.h"
#include "tests/runtime/toy_kernels.h"

namespace fuselite {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr size_t kWidth = 3;  // floats of a row

const float* In(const KernelArgs& args, int i) { return static_cast<const float*>(args.inputs[i]); }
float* Out(const KernelArgs& args, int i) { return static_cast<float*>(args.outputs[i]); }

// For `rows` rows: sums of rows, by a scratch and two phases, and then rows times sums plus what
// is the same for all rows.
std::shared_ptr<const Executable> SumsAndProducts(int64_t rows) {
  ExecutableBuilder b;
  const size_t bytes = static_cast<size_t>(rows) * sizeof(float);
  const int x = b.AddInput(bytes * kWidth), same = b.AddInput(kWidth * sizeof(float));
  const int sums = b.AddOutput(bytes), products = b.AddOutput(bytes * kWidth);
  const int doubled = b.AddTemporary(bytes * kWidth);
  static constexpr float kTwo = 2;
  const int two = b.AddConstant(&kTwo, sizeof(kTwo));
  const auto double_all = [](const KernelArgs& args, int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) Out(args, 0)[i] = In(args, 0)[i] * In(args, 1)[0];
    return Status();
  };
  b.AddStep(MakeStep("double", ToyKernel(rows * kWidth, double_all), {x, two, -1}, {doubled}));
  const auto sum = [](const KernelArgs& args, int phase, int64_t begin, int64_t end) {
    auto* const shared = reinterpret_cast<float*>(args.shared);
    for (int64_t r = begin; r < end; ++r) {
      const float* const row = In(args, 0) + r * kWidth;
      if (phase == 0) {
        shared[r] = std::accumulate(row, row + kWidth, 0.0f);
      } else {
        Out(args, 0)[r] = shared[r];
      }
      *reinterpret_cast<float*>(args.scratch) = -1;
    }
    return Status();
  };
  b.AddStep(
      MakeStep("sum", ToyKernel(0, sum).Phases({rows, rows}).Scratch(4, bytes), {doubled}, {sums}));
  const auto scale = [](const KernelArgs& args, int, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      for (size_t i = 0; i < kWidth; ++i) {
        const size_t at = static_cast<size_t>(r) * kWidth + i;
        Out(args, 0)[at] = In(args, 0)[at] * In(args, 1)[r] + In(args, 2)[i];
      }
    }
    return Status();
  };
  b.AddStep(MakeStep("scale", ToyKernel(rows, scale), {doubled, sums, same}, {products}));
  return BuildOrDie(std::move(b));
}

StripsKernel Strips(std::vector<StripsKernel::Strips> strips, size_t pitch = kWidth) {
  return StripsKernel(std::move(strips), {kWidth * sizeof(float), 0},
                      {sizeof(float), pitch * sizeof(float)});
}

struct Results {
  std::vector<float> sums, products;
};

Results RunUnits(const StripsKernel& kernel, size_t rows,
                 const std::vector<std::pair<int64_t, int64_t>>& ranges) {
  std::vector<float> x(rows * kWidth);
  std::iota(x.begin(), x.end(), 1.0f);
  const float same[kWidth] = {100, 200, 300};
  Results results{std::vector<float>(rows, -1), std::vector<float>(rows * kWidth, -1)};
  const AlignedBuffer scratch(kernel.scratch_bytes());
  const void* const inputs[] = {x.data(), same};
  void* const outputs[] = {results.sums.data(), results.products.data()};
  for (const auto& [begin, end] : ranges) {
    const KernelArgs args{inputs, outputs, scratch.data(), nullptr};
    EXPECT_TRUE(kernel.Run(args, 0, begin, end).ok());
  }
  return results;
}

TEST(StripsKernel, ComputesAllRowsWhateverTheRanges) {
  const StripsKernel kernel = Strips({{SumsAndProducts(2), 2, 3}, {SumsAndProducts(1), 1, 1}});
  EXPECT_EQ(kernel.phases(), 1);
  ASSERT_EQ(kernel.units(0), 4);
  EXPECT_EQ(kernel.name(), "strips of 2 rows");
  const Results whole = RunUnits(kernel, 7, {{0, 4}});
  EXPECT_THAT(whole.sums, ElementsAre(12, 30, 48, 66, 84, 102, 120));
  EXPECT_EQ(whole.products[0], 2 * 12 + 100);
  EXPECT_EQ(whole.products[20], 42 * 120 + 300);
  for (const auto& ranges : std::vector<std::vector<std::pair<int64_t, int64_t>>>{
           {{0, 1}, {1, 2}, {2, 3}, {3, 4}}, {{3, 4}, {0, 3}}, {{2, 4}, {0, 2}}}) {
    const Results parts = RunUnits(kernel, 7, ranges);
    EXPECT_EQ(parts.sums, whole.sums);
    EXPECT_EQ(parts.products, whole.products);
  }
}

TEST(StripsKernel, WritesTheRowsOfItsUnitsAlone) {
  const StripsKernel kernel = Strips({{SumsAndProducts(2), 2, 3}, {SumsAndProducts(1), 1, 1}});
  EXPECT_THAT(RunUnits(kernel, 7, {{1, 2}}).sums, ElementsAre(-1, -1, 48, 66, -1, -1, -1));
  EXPECT_THAT(RunUnits(kernel, 7, {{3, 4}}).sums, ElementsAre(-1, -1, -1, -1, -1, -1, 120));
}

TEST(StripsKernel, NamesTheStepThatFails) {
  ExecutableBuilder b;
  const auto fail = [](const KernelArgs&, int, int64_t, int64_t) {
    return InvalidArgument("no such value");
  };
  b.AddStep(MakeStep("look_up", ToyKernel(1, fail), {b.AddInput(4)}, {b.AddOutput(4)}));
  const StripsKernel kernel({{BuildOrDie(std::move(b)), 1, 2}}, {4}, {4});
  const AlignedBuffer scratch(kernel.scratch_bytes());
  float x[2] = {}, y[2] = {};
  const void* const inputs[] = {x};
  void* const outputs[] = {y};
  const Status status = kernel.Run({inputs, outputs, scratch.data(), nullptr}, 0, 0, 2);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.ToString(), HasSubstr("look_up: no such value"));
}

}  // namespace
}  // namespace fuselite
