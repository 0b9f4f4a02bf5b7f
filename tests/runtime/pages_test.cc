#include "runtime/memory/pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/channel_values.h"

namespace fuselite {
namespace {

using ::testing::Each;

TEST(PagesTest, AreClearedAndTheCallers) {
  const size_t bytes = 3 * kWorthPages + 1;
  const std::shared_ptr<std::byte> pages = TakePages(bytes);
  ASSERT_NE(pages, nullptr);
  EXPECT_THAT(std::vector<std::byte>(pages.get(), pages.get() + bytes), Each(std::byte{0}));
  pages.get()[bytes - 1] = std::byte{7};
  EXPECT_EQ(TakePages(size_t{1} << 62), nullptr);
}

// They grow from the heap into pages, and are copied and moved.
TEST(PagesTest, HoldVectorsThatGrow) {
  std::vector<std::string, PageAllocator<std::string>> names;
  constexpr int kCount = 2 * static_cast<int>(kWorthPages / sizeof(std::string));
  for (int i = 0; i < kCount; ++i)
    names.push_back("a name that no string holds in itself " + std::to_string(i));
  auto copy = names;
  const auto moved = std::move(names);
  for (int i = 0; i < kCount; ++i) {
    EXPECT_THAT(moved[i], ::testing::EndsWith(" " + std::to_string(i)));
    EXPECT_EQ(moved[i], copy[i]);
  }
}

TEST(ChannelValuesTest, ShareTheirZeros) {
  const ChannelValues<int32_t> given(std::vector<int32_t>(40)),
      repeated = ChannelValues<int32_t>::Repeated(3, 0);
  EXPECT_EQ(given.data(), repeated.data());
  EXPECT_EQ(given.size(), 40U);
  EXPECT_THAT(given, Each(0));
  const ChannelValues<int32_t> many = ChannelValues<int32_t>::Repeated(100'000, 0), one({0});
  EXPECT_NE(many.data(), given.data());
  EXPECT_THAT(many, Each(0));
  EXPECT_NE(one.data(), given.data());
  EXPECT_NE(given, many);
  const std::vector<int32_t> values = {0, 0, 5};
  EXPECT_THAT(ChannelValues<int32_t>(std::span(values)), ::testing::ElementsAre(0, 0, 5));
}

}  // namespace
}  // namespace fuselite
