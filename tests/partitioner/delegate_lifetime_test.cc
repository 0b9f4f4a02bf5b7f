// What a delegate keeps of its graphs, and how runs are ended from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "partitioner/delegate.h"
#include "tests/partitioner/fake_host.h"

namespace fuselite::partitioner {
namespace {

using testing::FakeHost;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kWidth = 64;

Options OneThread() {
  Options options = *ParseOptions({}, [](const char*) { return nullptr; });
  options.num_threads = 1;
  return options;
}

// A graph of layers of 64x64, applied and prepared.
std::unique_ptr<FakeHost> Open(Delegate& delegate, int layers,
                               std::unique_ptr<FakeHost> host = std::make_unique<FakeHost>()) {
  int value = host->AddTensor({1, kWidth});
  for (int i = 0; i < layers; ++i) {
    const int output = host->AddTensor({1, kWidth});
    const int weights =
        host->AddConstant({kWidth, kWidth}, std::vector<float>(kWidth * kWidth, 0.01f));
    host->AddNode("FULLY_CONNECTED", {value, weights, -1}, {output});
    value = output;
  }
  host->SetOutputs({value});
  EXPECT_EQ(host->Apply(delegate.c_struct()), tflite::kTfLiteOk);
  EXPECT_EQ(host->Prepare(), tflite::kTfLiteOk);
  return host;
}

TEST(DelegateLifetimeTest, GraphsWithoutKernelsAreForgotten) {
  Delegate delegate(OneThread());
  std::unique_ptr<FakeHost> first = Open(delegate, 2);
  std::unique_ptr<FakeHost> second = Open(delegate, 3);
  EXPECT_THAT(delegate.Explain().graphs, SizeIs(2));
  auto other = std::make_unique<FakeHost>();  // not where the first one was
  first.reset();
  EXPECT_THAT(delegate.Explain().graphs, SizeIs(2)) << "may be between two shapes";
  std::unique_ptr<FakeHost> third = Open(delegate, 4, std::move(other));
  const Explanation explanation = delegate.Explain();
  ASSERT_THAT(explanation.graphs, SizeIs(2));
  EXPECT_THAT(explanation.graphs[0].verdicts, SizeIs(3));
  EXPECT_THAT(explanation.graphs[1].verdicts, SizeIs(4));
}

// Two threads begin graphs with one delegate; the host makes the kernels of the first one last.
TEST(DelegateLifetimeTest, GraphsWhoseKernelsAreToComeAreKept) {
  DelegateState state(OneThread());
  const tflite::TfLiteContext first{}, second{}, third{};
  GraphReport report;
  report.partitions.emplace_back();
  {
    const LiveKernels::ToCome to_come(state.kernels(), &first);
    state.SetGraph(&first, report, {});
    state.SetGraph(&second, report, {});
    EXPECT_THAT(state.Explain().graphs, SizeIs(2));
  }
  state.SetGraph(&third, report, {});
  EXPECT_THAT(state.Explain().graphs, SizeIs(1));
}

TEST(DelegateLifetimeTest, AGraphThatIsAppliedAgainForgetsNobody) {
  Delegate delegate(OneThread());
  std::unique_ptr<FakeHost> first = Open(delegate, 2);
  std::unique_ptr<FakeHost> second = Open(delegate, 3);
  first->DropKernels();
  second->DropKernels();
  ASSERT_EQ(second->Apply(delegate.c_struct()), tflite::kTfLiteOk);
  EXPECT_THAT(delegate.Explain().graphs, SizeIs(2));
}

TEST(DelegateLifetimeTest, CancelEndsTheRunsUnderWay) {
  Delegate delegate(OneThread());
  std::unique_ptr<FakeHost> host = Open(delegate, 50);
  delegate.state()->kernels().Cancel();
  EXPECT_EQ(host->Invoke(), tflite::kTfLiteOk) << "was not under way";
  std::atomic<bool> ended{false};
  std::thread runner([&] {
    while (host->Invoke() != tflite::kTfLiteCancelled) {
    }
    ended = true;
  });
  while (!ended) delegate.state()->kernels().Cancel();
  runner.join();
  EXPECT_THAT(host->errors, IsEmpty());
  EXPECT_EQ(host->Invoke(), tflite::kTfLiteOk);
}

}  // namespace
}  // namespace fuselite::partitioner
