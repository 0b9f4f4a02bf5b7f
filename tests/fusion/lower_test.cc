#include "fusion/plan/lower.h"

#include <mutex>
#include <set>
#include <thread>

#include "fusion/compile.h"
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::HasSubstr;

// Remembers the threads that ask it, and refuses what is as large as `refused`.
class WatchedStore : public PackedStore {
 public:
  Result<PackedWeights> GetOrPack(const PackRequest& request,
                                  const std::function<void(std::byte*)>& pack) override {
    {
      const std::lock_guard lock(mutex_);
      threads.insert(std::this_thread::get_id());
      hashes.insert(request.hashes);
    }
    if (request.source_bytes == refused) return OutOfMemory("there is no room");
    return store_->GetOrPack(request, pack);
  }

  std::set<std::thread::id> threads;
  std::set<const ConstantHashes*> hashes;
  size_t refused = 0;

 private:
  std::mutex mutex_;
  std::unique_ptr<PackedStore> store_ = NewPackedStore();
};

constexpr int kWide = 768;

// Eleven layers, in all 23 MB of weights, of which some are computed and some are read twice.
GraphBuilder Wide() {
  GraphBuilder b;
  ValueId x = b.Input({3, kWide});
  const ValueId shared = b.Constant({kWide, kWide}, -0.1f, 0.1f);
  for (int i = 0; i < 10; ++i) {
    ValueId weights = i % 4 == 1 ? shared : b.Constant({kWide, kWide}, -0.1f, 0.1f);
    if (i % 4 == 2) weights = b.Op("MUL", {weights, b.Scalar(0.5f)});
    x = b.Op("FULLY_CONNECTED", {x, weights, b.Constant({kWide})});
    if (i % 3 == 0) x = b.Op("TANH", {x});
  }
  b.Output(b.Op("ADD", {b.Dense(x, 8), b.Scalar(1)}));
  return b;
}

TEST(Lower, ThreadsBuildTheSameKernelsInTheSameOrder) {
  const GraphBuilder b = Wide();
  const Outcome alone = RunGraph(b.graph(), Fused());
  ASSERT_TRUE(alone.status.ok()) << alone.status.ToString();
  for (int threads : {2, 4, 7}) {
    CompileOptions options = Fused();
    options.threads = threads;
    WatchedStore store;
    options.store = &store;
    ConstantHashes hashes;
    options.hashes = &hashes;
    const Outcome together = RunGraph(b.graph(), options);
    ASSERT_TRUE(together.status.ok()) << together.status.ToString();
    EXPECT_LE(store.threads.size(), static_cast<size_t>(threads));
    EXPECT_THAT(store.hashes, ::testing::ElementsAre(&hashes));
    EXPECT_EQ(together.outputs, alone.outputs);
    EXPECT_EQ(together.ops(), alone.ops());
    ASSERT_EQ(together.report.steps.size(), alone.report.steps.size());
    for (size_t i = 0; i < alone.report.steps.size(); ++i) {
      EXPECT_EQ(together.report.steps[i].kernel, alone.report.steps[i].kernel);
      EXPECT_EQ(together.report.steps[i].host_nodes, alone.report.steps[i].host_nodes);
    }
    EXPECT_GE(together.report.times.packing, 0);
    EXPECT_GE(together.report.times.kernels, 0);
  }
}

// Several threads come sooner or later: a helper may wake up when the caller has done everything.
TEST(Lower, MoreThanOneThreadPacksLargeWeights) {
  const GraphBuilder b = Wide();
  CompileOptions options = Fused();
  options.threads = 2;
  for (int attempt = 0; attempt < 200; ++attempt) {
    WatchedStore store;
    options.store = &store;
    ASSERT_TRUE(Compile(b.graph(), options, nullptr).ok());
    if (store.threads.size() == 2) return;
  }
  FAIL() << "one thread has packed everything 200 times";
}

TEST(Lower, SaysWhatFailedOnAnotherThread) {
  GraphBuilder b = Wide();
  b.Output(b.Dense(b.Input({1, 100}), 50));
  const NodeId last = b.graph().order().back();
  Node named = b.graph().node(last);
  named.host_nodes = {77, 78};
  b.graph().Replace(last, std::move(named));
  for (int threads : {1, 3}) {
    CompileOptions options = Fused();
    options.threads = threads;
    WatchedStore store;
    store.refused = 100 * 50 * sizeof(float);
    options.store = &store;
    const auto refused = Compile(b.graph(), options, nullptr);
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.status().message(), HasSubstr("fully_connected_77"));
    EXPECT_THAT(refused.status().message(), HasSubstr("there is no room"));
  }
}

// What moves bytes has no multiply-adds, and functions take longer than moving.
TEST(Lower, SharesWhatTakesMoreThanAMicrosecond) {
  const auto useful = [](const char* op, int elements) {
    GraphBuilder b;
    b.Output(b.Op(op, {b.Input({elements / 16, 16})}));
    auto executable = Compile(b.graph(), Fused(), nullptr);
    EXPECT_TRUE(executable.ok()) << executable.status().ToString();
    return executable.ok() ? (*executable)->useful_threads() : 0;
  };
  struct Case {
    const char* op;
    int least;  // elements that two threads share
  };
  for (const auto& [op, least] : {Case{"RELU6", 32 << 10}, {"SQRT", 16 << 10}, {"SIN", 12 << 10}}) {
    SCOPED_TRACE(op);
    EXPECT_EQ(useful(op, least / 4), 1);
    EXPECT_GE(useful(op, least), 2);
    EXPECT_GE(useful(op, 8 * least), 16);
  }
}

}  // namespace
}  // namespace fuselite::fusion::testing
