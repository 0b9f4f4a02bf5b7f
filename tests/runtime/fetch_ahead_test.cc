#include "runtime/cpu/fetch_ahead.h"

#include <gtest/gtest.h>

#include <vector>

namespace fuselite {
namespace {

int CountAsks(FetchAhead& ahead) {
  int asks = 0;
  while (ahead.Next()) ++asks;
  return asks;
}

TEST(FetchAheadTest, AsksForEachStageOnce) {
  const std::vector<std::byte> bytes(5000);
  int found = 0;
  const auto find = [&] {
    ++found;
    return std::span<const std::byte>(bytes);
  };
  FetchAhead ahead;
  EXPECT_FALSE(ahead.Next());
  ahead.AimAt(3, find);
  EXPECT_EQ(CountAsks(ahead), 5);  // of 1024 bytes at most
  ahead.AimAt(3, find);
  EXPECT_EQ(CountAsks(ahead), 0);
  ahead.AimAt(4, find);
  EXPECT_EQ(CountAsks(ahead), 5);
  EXPECT_EQ(found, 2);
}

TEST(FetchAheadTest, LeavesL2RoomForOthers) {
  const std::vector<std::byte> bytes(1 << 20);
  FetchAhead ahead;
  ahead.AimAt(0, [&] { return std::span<const std::byte>(bytes); });
  EXPECT_EQ(CountAsks(ahead), 256);
}

}  // namespace
}  // namespace fuselite
