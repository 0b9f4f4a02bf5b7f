#include "runtime/support/shared_by_key.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <thread>

namespace fuselite {
namespace {

// The value of `key`, which is `key` itself, made where nobody holds it.
std::shared_ptr<const int> Get(SharedByKey<int, int>& values, int key) {
  return values.FindOrMake(key, [&] { return std::make_shared<const int>(key); });
}

TEST(SharedByKey, ValuesLiveAsLongAsSomebodyHoldsThem) {
  SharedByKey<int, int> values;
  const auto held = Get(values, 1);
  EXPECT_EQ(Get(values, 1), held);
  for (int key = 2; key < 1000; ++key) EXPECT_EQ(*Get(values, key), key);  // sweeps some times
  EXPECT_EQ(Get(values, 1), held);
  const std::weak_ptr<const int> dropped = Get(values, 2);
  EXPECT_TRUE(dropped.expired());
}

// Each thread's sweeps meet slots that the other one has filled and let go: ThreadSanitizer sees
// whether they are read as their maker left them.
TEST(SharedByKey, ThreadsSweepWhatOthersMade) {
  SharedByKey<int, int> values;
  const auto held = Get(values, 0);
  std::array<std::thread, 2> threads;
  int first = 1;
  for (std::thread& thread : threads) {
    thread = std::thread([&values, first] {
      for (int key = first; key < 2000; key += 2) EXPECT_EQ(*Get(values, key), key);
    });
    ++first;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Get(values, 0), held);
}

}  // namespace
}  // namespace fuselite
