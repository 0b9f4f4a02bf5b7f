// What runs and packings take from the heap: once, and all of it is given back. Where it is
// refused, at each request in turn, who asked for it says so or does without, and asked again does
// what it would have done.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/execution/execution.h"
#include "runtime/memory/pages.h"
#include "runtime/threads/helper_cores.h"
#include "runtime/threads/parallel.h"
#include "runtime/weights/packed_store.h"
#include "tests/runtime/child.h"
#include "tests/runtime/counted_heap.h"
#include "tests/runtime/random_network.h"

namespace fuselite {
namespace {

using testing::heap_counts;
using testing::Refuses;

// How many blocks `body` took from the heap.
template <class Body>
int64_t TakenBy(Body body) {
  const int64_t before = heap_counts.taken;
  body();
  return heap_counts.taken - before;
}

// False also where the status could not be made for want of memory.
template <class Call>
bool Succeeds(Call call) {
  try {
    return call().ok();
  } catch (const std::bad_alloc&) {
    return false;
  }
}

constexpr int kRepeats = 3;

// One network, and three of another one that has their inputs and outputs.
std::vector<std::shared_ptr<const Executable>> Networks() {
  return {RandomNetwork(1), Executable::Repeat(RandomNetwork(2), kRepeats)};
}

struct Bound {
  explicit Bound(const std::shared_ptr<const Executable>& executable)
      : execution(executable), in(kRepeats * kN, 0.5f), out(2 * in.size(), -1.0f) {
    execution.BindInput(0, in.data());
    execution.BindOutput(0, out.data());
  }
  Execution execution;
  std::vector<float> in, out;
};

TEST(Memory, OfRunsIsTakenOnceAndGivenBack) {
  for (const auto& network : Networks()) {
    for (const int threads : {1, 3}) {
      const int64_t before = heap_counts.held;
      {
        Bound run(network);
        const int64_t bound = heap_counts.held;
        ASSERT_TRUE(run.execution.Run({.threads = threads}).ok());  // threads are made, too
        run.execution.ReleaseMemory();
        EXPECT_GT(TakenBy([&] { ASSERT_TRUE(run.execution.Prepare(threads).ok()); }), 0);
        EXPECT_EQ(TakenBy([&] {
                    ASSERT_TRUE(run.execution.Prepare(threads).ok());
                    ASSERT_TRUE(run.execution.Prepare(1).ok());
                    for (int i = 0; i < 20; ++i) {
                      ASSERT_TRUE(run.execution.Run({.threads = threads}).ok());
                    }
                  }),
                  0)
            << threads << " threads";
        const int64_t prepared = heap_counts.held;
        run.execution.ReleaseMemory();
        EXPECT_GE(prepared - heap_counts.held, 2) << "values and scratch";
        EXPECT_LE(heap_counts.held - bound, 40) << "lists, and a team of threads";
      }
      ReleaseIdleThreads();
      EXPECT_LE(heap_counts.held - before, 40);
    }
  }
}

// A team that is retired goes with the last of its threads.
TEST(Memory, OfTeamsIsGivenBack) {
  const auto retire = [](int teams) {
    for (int i = 0; i < teams; ++i) {
      ASSERT_EQ(ParallelRegion(3, [](int, int) {}), 3);
      ReleaseIdleThreads();
    }
  };
  const auto settles_below = [](int64_t most) {
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (testing::heap_held > most && std::chrono::steady_clock::now() < patience) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return testing::heap_held <= most;
  };
  retire(5);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const int64_t before = testing::heap_held;
  retire(50);
  EXPECT_TRUE(settles_below(before + 40)) << testing::heap_held - before;
}

// No thread has an execution of its own where threads share one repetition.
TEST(Memory, OfASharedRepetitionIsItsOwnAlone) {
  if (!HasCoreForEach(2)) GTEST_SKIP() << "there are not two cores";
  const auto network = RandomNetwork(1);
  Bound repeated(Executable::Repeat(network, 1));
  const int64_t alone = TakenBy([&] {
    Execution execution(network);
    ASSERT_TRUE(execution.Prepare(2).ok());
  });
  EXPECT_LT(TakenBy([&] { ASSERT_TRUE(repeated.execution.Prepare(2).ok()); }), 2 * alone);
}

// What fewer threads need is there until more threads have theirs.
TEST(Memory, ThatMoreThreadsAreRefusedLeavesThatOfFewer) {
  Bound run(RandomNetwork(1));
  ASSERT_TRUE(run.execution.Prepare(1).ok());
  const int64_t held = heap_counts.held;
  int refused = 0;
  bool grown = false;
  while (Refuses(refused, [&] { grown = Succeeds([&] { return run.execution.Prepare(3); }); })) {
    EXPECT_FALSE(grown) << "request " << refused;
    ASSERT_EQ(heap_counts.held, held) << "request " << refused;
    ASSERT_TRUE(run.execution.Run().ok());
    ++refused;
  }
  EXPECT_TRUE(grown);
  EXPECT_GE(refused, 2) << "scratch, and what threads meet at";
}

// Values lie where they lay; scratch is for more threads, and they have something to meet at.
TEST(Memory, OfMoreThreadsIsTheirScratchAlone) {
  const auto network = RandomNetwork(1);
  Bound one(network), two(network), both(network);
  const int64_t of_one = TakenBy([&] { ASSERT_TRUE(one.execution.Prepare(1).ok()); });
  EXPECT_EQ(TakenBy([&] { ASSERT_TRUE(two.execution.Prepare(2).ok()); }), of_one + 1);
  ASSERT_TRUE(both.execution.Prepare(1).ok());
  EXPECT_EQ(TakenBy([&] { ASSERT_TRUE(both.execution.Prepare(2).ok()); }), 2);
}

TEST(Memory, ThatIsRefusedEndsThePreparationAlone) {
  for (const auto& network : Networks()) {
    for (const int threads : {1, 3}) {
      Bound expected(network);
      ASSERT_TRUE(expected.execution.Run().ok());
      bool prepared = false;
      int64_t at = 0;
      for (; !prepared; ++at) {
        SCOPED_TRACE(::testing::Message() << threads << " threads, without request " << at);
        Bound run(network);
        const bool refused = Refuses(
            at, [&] { prepared = Succeeds([&] { return run.execution.Prepare(threads); }); });
        ASSERT_EQ(prepared, !refused);
        ASSERT_TRUE(run.execution.Run({.threads = threads}).ok());
        ASSERT_EQ(run.out, expected.out);
      }
      EXPECT_GT(at, 4);
    }
  }
}

TEST(Memory, OfThreadsThatIsRefusedLeavesTheCaller) {
  bool refused = true;
  for (int64_t at = 0; refused; ++at) {
    ReleaseIdleThreads();
    std::atomic<int> calls{0};
    int used = 0;
    refused = Refuses(at, [&] { used = ParallelRegion(3, [&](int, int) { ++calls; }); });
    EXPECT_TRUE(used == 3 || (refused && used == 1)) << used;
    EXPECT_GE(calls, 1);
    EXPECT_EQ(ParallelRegion(3, [](int, int) {}), 3) << "without request " << at;
  }
  std::optional<internal::HelperCores> cores;
  EXPECT_TRUE(Refuses(0, [&] { cores.emplace(2); }));
  cores->Rest(1);
  cores->SendElsewhere(0);
  cores->Arrive(1);
}

PackRequest RequestFor(const int& source) {
  return {.source = &source, .source_bytes = sizeof source, .layout = "layout", .bytes = 64};
}

// What nobody holds is not remembered for long, and a request that failed leaves nothing that the
// next ones stumble over.
TEST(Memory, OfPackingsThatNobodyHoldsIsGivenBack) {
  const std::unique_ptr<PackedStore> store = NewPackedStore();
  const auto pack = [&](const int& source) {
    return store->GetOrPack(RequestFor(source), [](std::byte* to) { std::memset(to, 1, 64); });
  };
  const int64_t before = heap_counts.held;
  bool refused = true;
  int requests = 0;
  for (; refused; ++requests) {
    Result<PackedWeights> packed = Internal("not asked");
    refused =
        Refuses(requests, [&] { Succeeds([&] { return (packed = pack(requests)).status(); }); });
    EXPECT_EQ(packed.ok(), !refused) << requests;
  }
  for (int source = 100; source < 2000; ++source) ASSERT_TRUE(pack(source).ok());
  EXPECT_LT(heap_counts.held - before, 500);
  for (int source = 0; source < requests; ++source) EXPECT_TRUE(pack(source).ok()) << source;
}

TEST(Pages, AreNoneOfTheHeap) {
  EXPECT_EQ(TakenBy([] {
              std::vector<std::byte, PageAllocator<std::byte>> pages(2 * kWorthPages);
              EXPECT_EQ(pages.back(), std::byte{0});
            }),
            0);
  EXPECT_THROW(internal::AllocatePages(size_t{1} << 62), std::bad_alloc);
}

// They would be given back from address 0 on.
TEST(Pages, ThatAreRefusedTakeNoOthersAlong) {
  EXPECT_EQ(InChild([] {
              constexpr uintptr_t kLow = 64 << 20;
              void* const low = mmap(reinterpret_cast<void*>(kLow), 4096, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
              if (low == MAP_FAILED) return 0;  // there is something already
              const rlimit none{1, 1};
              setrlimit(RLIMIT_AS, &none);
              { const auto pages = TakePages(size_t{1} << 40); }
              *static_cast<volatile char*>(low) = 1;
              return 0;
            }),
            "exit 0");
}

}  // namespace
}  // namespace fuselite
