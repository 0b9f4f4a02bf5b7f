#include "runtime/threads/thread_choice.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

namespace fuselite {
namespace {

using std::chrono::microseconds;

// Runs that take what `time` says; how many had so many threads.
std::map<int, int> Play(ThreadChoice& choice, int most, int runs,
                        const std::function<int(int threads)>& time) {
  std::map<int, int> counts;
  for (int i = 0; i < runs; ++i) {
    const int threads = choice.Next(most);
    if (choice.measures()) choice.Report(microseconds(time(threads)));
    ++counts[threads];
  }
  return counts;
}

TEST(ThreadChoice, KeepsThreadsThatSave) {
  ThreadChoice choice;
  const auto counts = Play(choice, 2, 1000, [](int threads) { return threads == 2 ? 10 : 15; });
  EXPECT_EQ(counts, (std::map<int, int>{{1, 8}, {2, 992}}));
}

TEST(ThreadChoice, LeavesThoseThatCost) {
  ThreadChoice choice;
  const auto counts = Play(choice, 2, 1000, [](int threads) { return threads == 2 ? 20 : 15; });
  EXPECT_EQ(counts, (std::map<int, int>{{1, 988}, {2, 12}}));
}

TEST(ThreadChoice, TriesAgain) {
  ThreadChoice choice;
  bool are_far = true;
  const auto time = [&](int threads) { return threads == 1 ? 15 : are_far ? 20 : 10; };
  Play(choice, 2, 500, time);
  are_far = false;
  Play(choice, 2, 1000, time);
  EXPECT_EQ(Play(choice, 2, 400, time), (std::map<int, int>{{2, 400}}));
}

TEST(ThreadChoice, TriesQuarters) {
  ThreadChoice choice;
  std::map<int, int> counts =
      Play(choice, 16, 1028, [](int threads) { return threads == 4 ? 9 : 20; });
  EXPECT_EQ(counts, (std::map<int, int>{{1, 8}, {4, 1008}, {16, 12}}));
}

TEST(ThreadChoice, LongRunsTakeAll) {
  ThreadChoice choice;
  const auto counts = Play(choice, 2, 5000, [](int threads) { return threads == 2 ? 2000 : 100; });
  EXPECT_EQ(counts, (std::map<int, int>{{2, 5000}}));
}

TEST(ThreadChoice, LongRunsOfManyThreadsTakeAll) {
  ThreadChoice choice;
  const auto counts = Play(choice, 32, 5000, [](int threads) { return threads == 32 ? 200 : 100; });
  EXPECT_EQ(counts, (std::map<int, int>{{32, 5000}}));
}

TEST(ThreadChoice, TriesFewerOfTwoThreadsInLongRuns) {
  ThreadChoice choice;
  const auto counts = Play(choice, 2, 1000, [](int threads) { return threads == 2 ? 1230 : 900; });
  EXPECT_EQ(counts, (std::map<int, int>{{1, 988}, {2, 12}}));
}

TEST(ThreadChoice, GoesOnWhereFewerThreadsTakeLong) {
  ThreadChoice choice;
  const auto counts = Play(choice, 16, 1028, [](int threads) {
    return threads == 16 ? 100 : threads == 4 ? 300 : 50;
  });
  EXPECT_EQ(counts, (std::map<int, int>{{1, 1008}, {4, 8}, {16, 12}}));
}

TEST(ThreadChoice, BeginsAnewWithOtherThreads) {
  ThreadChoice choice;
  const auto time = [](int threads) { return 10 * threads; };
  Play(choice, 2, 500, time);
  EXPECT_EQ(Play(choice, 3, 12, time), (std::map<int, int>{{3, 12}}));
}

// What a disturbed run takes does not count.
TEST(ThreadChoice, TakesTheFastestOfATrial) {
  ThreadChoice choice;
  int run = 0;
  const auto counts = Play(choice, 2, 1000, [&](int threads) {
    return ++run % 8 != 0 ? 150 : threads == 2 ? 10 : 15;
  });
  EXPECT_EQ(counts, (std::map<int, int>{{1, 8}, {2, 992}}));
}

}  // namespace
}  // namespace fuselite
