#include "runtime/memory/buffer_region.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/memory/aligned_buffer.h"
#include "runtime/support/sanitizers.h"

namespace fuselite {
namespace {

constexpr bool kJoins = !kAddressSanitizer;

// The huge page in which a buffer starts.
uintptr_t PageOf(const AlignedBuffer& buffer) {
  return reinterpret_cast<uintptr_t>(buffer.data()) / kHugePage;
}

void Fill(const AlignedBuffer& buffer, int value) {
  ASSERT_NE(buffer.data(), nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kAlignment, 0u);
  std::memset(buffer.data(), value, buffer.size() + kAlignment);
}

TEST(BufferRegion, JoinsBuffersInOnePage) {
  BufferRegion region(kHugePage);
  const AlignedBuffer a = region.Take(1000), b = region.Take(100'000), c = region.Take(1);
  EXPECT_EQ(PageOf(a) == PageOf(b) && PageOf(b) == PageOf(c), kJoins);
  for (const AlignedBuffer* buffer : {&a, &b, &c}) Fill(*buffer, 7);
  if (!kJoins) return;
  EXPECT_EQ(b.data(), a.data() + AlignUp(a.size()) + kAlignment);
  EXPECT_EQ(c.data(), b.data() + AlignUp(b.size()) + kAlignment);
}

TEST(BufferRegion, TakesALastPageThatIsMostlyFilled) {
  BufferRegion most(kHugePage + kHugePage * 3 / 4), half(kHugePage + kHugePage / 2);
  for (BufferRegion* region : {&most, &half}) {
    const AlignedBuffer first = region->Take(kHugePage), last = region->Take(1000);
    Fill(last, 1);
    const bool joins = last.data() == first.data() + first.size() + kAlignment;
    EXPECT_EQ(joins, kJoins && region == &most);
  }
}

TEST(BufferRegion, EndsWithTheBufferThatReachesOverItsPages) {
  BufferRegion region(kHugePage + 5);
  std::vector<AlignedBuffer> buffers;
  for (int i = 0; i < 5; ++i) buffers.push_back(region.Take(kHugePage / 3));
  // With the bytes that are readable behind each, the third one's end is in the next page.
  EXPECT_EQ(PageOf(buffers[0]) == PageOf(buffers[2]), kJoins);
  for (const AlignedBuffer& buffer : buffers) Fill(buffer, 1);
  EXPECT_NE(buffers[3].data(), buffers[2].data() + buffers[2].size() + kAlignment);
  EXPECT_NE(PageOf(buffers[4]), PageOf(buffers[0]));
}

TEST(BufferRegion, LetsBuffersReachOverPages) {
  BufferRegion region(4 * kHugePage);
  const AlignedBuffer small = region.Take(64), large = region.Take(2 * kHugePage + 1);
  const AlignedBuffer behind = region.Take(64);
  EXPECT_EQ(large.data() == small.data() + 2 * kAlignment, kJoins);
  EXPECT_EQ(PageOf(behind) == PageOf(large) + 2, kJoins);
  Fill(large, 1);
}

TEST(BufferRegion, GivesBuffersOfTheirOwnWithoutRoom) {
  BufferRegion few(kHugePage / 5), one(kHugePage);
  const AlignedBuffer a = few.Take(64), b = few.Take(64), large = one.Take(3 * kHugePage);
  // Each is an allocation of its own, which an allocator may place anywhere, even behind the other.
  for (const AlignedBuffer* buffer : {&a, &b, &large}) Fill(*buffer, 3);
  for (const size_t bytes : {size_t{1} << 50, SIZE_MAX, SIZE_MAX - 2 * kAlignment}) {
    EXPECT_EQ(one.Take(bytes).data(), nullptr) << bytes;
  }
  BufferRegion two(2 * kHugePage);
  const AlignedBuffer first = two.Take(kHugePage + 1), beyond = two.Take(2 * kHugePage);
  EXPECT_NE(beyond.data(), first.data() + AlignUp(first.size()) + kAlignment);
}

TEST(BufferRegion, LivesAsLongAsABufferInIt) {
  std::optional<BufferRegion> region(2 * kHugePage);
  AlignedBuffer kept = region->Take(5000);
  std::memset(kept.data(), 42, kept.size());
  { const AlignedBuffer gone = region->Take(5000); }
  region.reset();
  EXPECT_EQ(kept.data()[4999], std::byte{42});
  AlignedBuffer moved(std::move(kept));
  EXPECT_EQ(moved.data()[0], std::byte{42});
  // Freed by another thread than the one that made it.
  std::thread([buffer = std::move(moved)] { EXPECT_EQ(buffer.size(), 5000u); }).join();
}

}  // namespace
}  // namespace fuselite
