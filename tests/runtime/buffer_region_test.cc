#include "runtime/buffer_region.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/aligned_buffer.h"

namespace fuselite {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr bool kJoins = false;  // buffers stay apart, so that the sanitizer sees what leaves one
#else
constexpr bool kJoins = true;
#endif

// The huge page in which a buffer starts.
uintptr_t PageOf(const AlignedBuffer& buffer) {
  return reinterpret_cast<uintptr_t>(buffer.data()) / kHugePage;
}

TEST(BufferRegion, JoinsBuffersInOnePage) {
  const BufferRegion region(kHugePage);
  const AlignedBuffer a(1000), b(100'000), c(1);
  EXPECT_EQ(PageOf(a) == PageOf(b) && PageOf(b) == PageOf(c), kJoins);
  for (const AlignedBuffer* buffer : {&a, &b, &c}) {
    ASSERT_NE(buffer->data(), nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % kAlignment, 0u);
    std::memset(buffer->data(), 7, buffer->size() + kAlignment);
  }
  EXPECT_TRUE(!kJoins || b.data() >= a.data() + a.size() + kAlignment);
}

TEST(BufferRegion, EndsWithTheBufferThatReachesOverItsPages) {
  const BufferRegion region(kHugePage + 5);
  std::vector<AlignedBuffer> buffers;
  for (int i = 0; i < 5; ++i) buffers.emplace_back(kHugePage / 3);
  // With the bytes that are readable behind each, the third one's end is in the next page.
  EXPECT_EQ(PageOf(buffers[0]) == PageOf(buffers[2]), kJoins);
  for (const AlignedBuffer& buffer : buffers) {
    std::memset(buffer.data(), 1, buffer.size() + kAlignment);
  }
  EXPECT_EQ(buffers[3].data() == buffers[2].data() + buffers[2].size() + kAlignment, false);
  EXPECT_NE(PageOf(buffers[4]), PageOf(buffers[0]));
}

TEST(BufferRegion, LetsBuffersReachOverPages) {
  const BufferRegion region(4 * kHugePage);
  const AlignedBuffer small(64), large(2 * kHugePage + 1), behind(64);
  EXPECT_EQ(large.data() == small.data() + 2 * kAlignment, kJoins);
  EXPECT_EQ(PageOf(behind) == PageOf(large) + 2, kJoins);
  std::memset(large.data(), 1, large.size() + kAlignment);
}

TEST(BufferRegion, KeepsFewBytesOutside) {
  const BufferRegion none(kHugePage / 5);
  EXPECT_EQ(BufferRegion::Take(64), nullptr);
}

TEST(BufferRegion, OpensOnceForEachThread) {
  const BufferRegion region(kHugePage);
  const AlignedBuffer alone(64);
  const BufferRegion second(kHugePage);
  const AlignedBuffer inside(64);
  EXPECT_EQ(inside.data() == alone.data() + 2 * kAlignment, kJoins);
}

TEST(BufferRegion, LeavesNoGapBehindWhatWasTakenLast) {
  const BufferRegion region(kHugePage);
  const AlignedBuffer first(64);
  const std::byte* place = nullptr;
  {
    const AlignedBuffer moment(5000);
    place = moment.data();
  }
  const AlignedBuffer next(64), more(64);
  EXPECT_EQ(next.data() == place, kJoins);
  EXPECT_NE(more.data(), next.data());
}

TEST(BufferRegion, LivesAsLongAsABufferInIt) {
  std::optional<BufferRegion> region(2 * kHugePage);
  AlignedBuffer kept(5000);
  std::memset(kept.data(), 42, kept.size());
  { const AlignedBuffer gone(5000); }
  region.reset();
  EXPECT_EQ(kept.data()[4999], std::byte{42});
  const AlignedBuffer outside(5000);
  EXPECT_TRUE(!kJoins || PageOf(outside) != PageOf(kept));
  EXPECT_EQ(BufferRegion::Release(outside.data()), false);
  AlignedBuffer moved(std::move(kept));
  EXPECT_EQ(moved.data()[0], std::byte{42});
}

TEST(BufferRegion, BelongsToItsThread) {
  const BufferRegion region(kHugePage);
  AlignedBuffer own(100), of_other;
  std::thread([&] { of_other = AlignedBuffer(100); }).join();
  EXPECT_TRUE(!kJoins || PageOf(own) != PageOf(of_other));
  // Freed by another thread than the one that made it.
  std::thread([buffer = std::move(own)] { EXPECT_EQ(buffer.size(), 100u); }).join();
}

}  // namespace
}  // namespace fuselite
