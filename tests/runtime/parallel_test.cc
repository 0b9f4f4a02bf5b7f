#include "runtime/threads/parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "runtime/support/function_ref.h"
#include "runtime/support/log.h"
#include "runtime/threads/parallel_wait.h"

namespace fuselite {
namespace {

TEST(FunctionRef, CallsFunctionsAndLambdas) {
  int calls = 0;
  const auto add = [&calls](int n) { return calls += n; };
  const FunctionRef<int(int)> ref = add;
  EXPECT_EQ(ref(2), 2);
  EXPECT_EQ(ref(3), 5);
  const FunctionRef<int(int)> copy = ref;
  EXPECT_EQ(copy(1), 6);
}

TEST(ParallelRegion, OneThreadIsTheCaller) {
  const std::thread::id caller = std::this_thread::get_id();
  int calls = 0;
  for (int threads : {1, 0, -3}) {
    EXPECT_EQ(ParallelRegion(threads,
                             [&](int thread, int count) {
                               ++calls;
                               EXPECT_EQ(thread, 0);
                               EXPECT_EQ(count, 1);
                               EXPECT_EQ(std::this_thread::get_id(), caller);
                             }),
              1);
  }
  EXPECT_EQ(calls, 3);
}

// Hosts that run models in parallel on a thread each leave all cores to those that want more.
TEST(ParallelRegion, OfOneThreadTakesNothingFromOthers) {
  const int wanted = std::max(AllowedCores(), 2);
  int used = 0;
  ParallelRegion(1, [&](int, int) { used = ParallelRegion(wanted, [](int, int) {}); });
  EXPECT_EQ(used, wanted);
}

// Later regions get what is left of the cores, and all of them once the first one has ended.
TEST(ParallelRegion, BesideAnotherHasWhatIsLeft) {
  const int cores = AllowedCores();
  SetLogLevel(LogLevel::kWarning);
  testing::internal::CaptureStderr();
  for (const int first : {2, std::max(cores - 1, 2), cores + 3}) {
    int beside = 0;
    ParallelRegion(first, [&](int thread, int) {
      if (thread == 0) beside = ParallelRegion(cores + 1, [](int, int) {});
    });
    EXPECT_EQ(beside, std::max(cores - first, 1)) << first << " of " << cores;
    EXPECT_EQ(ParallelRegion(cores + 1, [](int, int) {}), cores + 1);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "nobody has refused anything";
  SetLogLevel(LogLevel::kOff);
}

TEST(ParallelRegion, NumbersAreDistinctAndTheCallerIsZero) {
  const std::thread::id caller = std::this_thread::get_id();
  for (int round = 0; round < 200; ++round) {
    std::vector<std::atomic<int>> calls(4);
    std::atomic<bool> caller_is_zero{false};
    const int used = ParallelRegion(4, [&](int thread, int count) {
      EXPECT_EQ(count, 4);
      ++calls[static_cast<size_t>(thread)];
      if (thread == 0) caller_is_zero = std::this_thread::get_id() == caller;
    });
    EXPECT_EQ(used, 4);
    EXPECT_TRUE(caller_is_zero);
    EXPECT_EQ(calls[0], 1);
    for (const auto& count : calls) EXPECT_LE(count, 1);
  }
}

TEST(ParallelRegion, ReturnsOnlyWhenAllCallsHaveEnded) {
  for (int round = 0; round < 500; ++round) {
    std::atomic<int> inside{0};
    ParallelRegion(3, [&](int thread, int) {
      ++inside;
      if (thread != 0) std::this_thread::yield();
      --inside;
    });
    EXPECT_EQ(inside, 0);
  }
}

TEST(ParallelRegion, ManyHostThreadsAndNestedRegions) {
  std::vector<std::thread> hosts;
  std::atomic<int64_t> total{0};
  for (int host = 0; host < 16; ++host) {
    hosts.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        ParallelFor(4, 100, 1, [&](int64_t begin, int64_t end) {
          ParallelFor(2, end - begin, 1, [&](int64_t b, int64_t e) { total += e - b; });
        });
      }
    });
  }
  for (std::thread& host : hosts) host.join();
  EXPECT_EQ(total, 16 * 50 * 100);
}

TEST(ParallelFor, EveryUnitOnceForAllSizes) {
  for (int threads : {1, 2, 3, 4, 63, 200}) {
    for (int64_t units : {0, 1, 2, 3, 7, 16, 100, 1001}) {
      for (int64_t grain : {0, 1, 2, 5, 1000}) {
        std::vector<std::atomic<int>> seen(static_cast<size_t>(units));
        ParallelFor(threads, units, grain, [&](int64_t begin, int64_t end) {
          ASSERT_LT(begin, end);
          for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
        });
        EXPECT_TRUE(std::ranges::all_of(seen, [](const auto& n) { return n == 1; }))
            << threads << " threads, " << units << " units, grain " << grain;
      }
    }
  }
}

// Each range but the last one waits for another thread to begin one, for a while.
TEST(ParallelFor, IsSharedByThreads) {
  std::mutex mutex;
  std::set<std::thread::id> workers;  // guarded by `mutex`
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  ParallelFor(2, 100, 1, [&](int64_t, int64_t) {
    for (bool both = false; !both && std::chrono::steady_clock::now() < patience;) {
      const std::lock_guard lock(mutex);
      workers.insert(std::this_thread::get_id());
      both = workers.size() == 2;
    }
  });
  EXPECT_EQ(workers.size(), 2u);
}

TEST(ParallelFor, SmallWorkStaysOnTheCaller) {
  const std::thread::id caller = std::this_thread::get_id();
  int calls = 0;
  ParallelFor(4, 9, 5, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(begin, 0);
    calls += static_cast<int>(end);
  });
  EXPECT_EQ(calls, 9);
}

// One list at a time, driven from one thread that plays all threads in a random order.
TEST(SharedWork, AnyOrderOfClaimsCoversTheListOnce) {
  std::mt19937 random(7);
  std::vector<WorkCell> cells(SharedWork::kCells * 8);
  for (uint32_t tag = 1; tag <= 2000; ++tag) {
    const int threads = 1 + static_cast<int>(random() % 8);
    const int64_t units = 1 + static_cast<int64_t>(random() % 300);
    const int64_t grain = 1 + static_cast<int64_t>(random() % 40);
    SCOPED_TRACE(testing::Message() << threads << " threads, " << units << " units, grain " << grain
                                    << ", tag " << tag);
    SharedWork work(cells.data(), tag, units, grain, threads);
    std::vector<int> seen(static_cast<size_t>(units)), victims(static_cast<size_t>(threads));
    std::vector<int64_t> done(static_cast<size_t>(threads)), reported(done.size());
    std::vector<int> active(static_cast<size_t>(threads));
    std::iota(active.begin(), active.end(), 0);
    int64_t finished = 0;
    while (!active.empty()) {
      EXPECT_EQ(work.Done(), finished == units);
      const size_t pick = random() % active.size();
      const auto thread = static_cast<size_t>(active[pick]);
      SharedWork::Range range;
      if (work.Claim((active[pick] + victims[thread]) % threads, range)) {
        for (int64_t i = range.begin; i < range.end; ++i) ++seen[static_cast<size_t>(i)];
        done[thread] += range.end - range.begin;
        continue;
      }
      if (done[thread] > 0) work.Finish(active[pick], done[thread]);
      finished += done[thread] - reported[thread];
      reported[thread] = done[thread];
      if (++victims[thread] < threads) continue;
      active.erase(active.begin() + static_cast<ptrdiff_t>(pick));
    }
    EXPECT_TRUE(std::ranges::all_of(seen, [](int n) { return n == 1; }));
    EXPECT_TRUE(work.Done());
  }
}

TEST(SharedWork, FirstUnitsAreWhereThreadsBegin) {
  for (const int64_t units : {1, 7, 64, 1000}) {
    for (const int threads : {1, 2, 3, 8}) {
      std::vector<WorkCell> cells(SharedWork::kCells * threads);
      SharedWork work(cells.data(), 1, units, 1, threads);
      EXPECT_EQ(work.FirstUnit(0), 0);
      EXPECT_EQ(work.FirstUnit(threads), units);
      for (int thread = 0; thread < threads; ++thread) {
        const int64_t first = work.FirstUnit(thread);
        if (first == work.FirstUnit(thread + 1)) continue;  // an empty part
        SharedWork::Range range;
        ASSERT_TRUE(work.Claim(thread, range));
        EXPECT_EQ(range.begin, first);
      }
    }
  }
}

// The first claim is half of a thread's part, which is sixteen blocks, or of whole grains.
TEST(SharedWork, IsDividedIntoSixteenBlocksForEachThread) {
  struct {
    int64_t units, grain, first;
  } const kLists[] = {{320, 1, 80}, {3200, 1, 800}, {3199, 1, 891},
                      {40, 1, 10},  {320, 64, 128}, {64, 64, 64}};
  for (const auto& [units, grain, first] : kLists) {
    std::vector<WorkCell> cells(SharedWork::kCells * 2);
    SharedWork work(cells.data(), 1, units, grain, 2);
    SharedWork::Range range;
    for (int thread = 0; !work.Claim(thread, range); ++thread) ASSERT_LT(thread, 2);
    EXPECT_EQ(range.end - range.begin, first) << units << " by " << grain;
  }
}

TEST(SharedWork, IsBegunWhenItsFirstPartIs) {
  std::vector<WorkCell> cells(SharedWork::kCells * 2);
  SharedWork work(cells.data(), 1, 64, 1, 2);
  SharedWork::Range range;
  ASSERT_TRUE(work.Claim(1, range));
  EXPECT_FALSE(work.Begun());
  ASSERT_TRUE(work.Claim(0, range));
  EXPECT_TRUE(work.Begun());
  EXPECT_FALSE(SharedWork(cells.data(), 2, 64, 1, 2).Begun()) << "of the run before";
}

TEST(SharedWork, AThreadThatNeverComesDelaysNobody) {
  std::vector<WorkCell> cells(SharedWork::kCells * 4);
  SharedWork work(cells.data(), 1, 64, 1, 4);
  SharedWork::Range range;
  int64_t done = 0;
  for (const int part : {2, 3, 0, 1}) {
    while (work.Claim(part, range)) done += range.end - range.begin;
  }
  EXPECT_EQ(done, 64);
  EXPECT_FALSE(work.Done());
  work.Finish(2, done);
  EXPECT_TRUE(work.Done());
}

// Two threads take turns, and sleep in each: a wake-up that is missed once hangs the test.
TEST(Sleepers, WakeForEveryChange) {
  constexpr int kTurns = 20000;
  internal::Sleepers sleepers;
  std::atomic<int> turn{0};
  const auto play = [&](int parity, std::chrono::nanoseconds spin) {
    for (int i = parity; i < kTurns; i += 2) {
      sleepers.WaitUntil([&] { return turn.load() == i; }, spin);
      turn.store(i + 1);
      sleepers.Wake();
    }
  };
  std::thread other(play, 1, std::chrono::nanoseconds(0));
  play(0, std::chrono::microseconds(1));
  other.join();
  EXPECT_EQ(turn, kTurns);
}

TEST(AllowedCores, IsPositive) {
  EXPECT_GE(AllowedCores(), 1);
  EXPECT_TRUE(HasCoreForEach(1));
  EXPECT_FALSE(HasCoreForEach(1 << 20));
}

}  // namespace
}  // namespace fuselite
