#include "runtime/hand_over.h"

#include <gtest/gtest.h>

#include <thread>

#include "runtime/parallel.h"

namespace fuselite {
namespace {

TEST(HandOver, IsMeasuredByTwoThreads) {
  if (AllowedCores() < 2) GTEST_SKIP() << "needs two cores";
  double ns = 0;
  // A thread that is not awake in time is a measurement less.
  for (int i = 0; i < 1000 && ns == 0; ++i) {
    HandOver hand_over;
    ParallelRegion(2, [&](int thread, int threads) {
      if (threads < 2) return;
      if (thread == 0) {
        ns = hand_over.Serve();
      } else {
        hand_over.Return();
      }
    });
  }
  EXPECT_GT(ns, 0);
  EXPECT_LT(ns, 10e3);  // longer than a thread's patience
}

TEST(HandOver, DoesNotWaitForWhoDoesNotCome) {
  HandOver hand_over;
  EXPECT_EQ(hand_over.Serve(), 0);
  hand_over.Return();  // comes late, and finds it over
}

TEST(HandOver, EndsWhereNobodyServes) {
  HandOver hand_over;
  std::thread(&HandOver::Return, &hand_over).join();
}

}  // namespace
}  // namespace fuselite
