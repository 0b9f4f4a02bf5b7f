#include "runtime/memory/aligned_buffer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

namespace fuselite {
namespace {

TEST(AlignUp, RoundsToTheNextMultiple) {
  EXPECT_EQ(AlignUp(0), 0u);
  EXPECT_EQ(AlignUp(1), 64u);
  EXPECT_EQ(AlignUp(64), 64u);
  EXPECT_EQ(AlignUp(65, 16), 80u);
}

TEST(AlignedBuffer, IsAlignedWritableAndReadableOneVectorBeyond) {
  for (size_t bytes : {size_t{1}, size_t{63}, size_t{64}, size_t{4097}, (size_t{2} << 20) - 1,
                       size_t{2} << 20, (size_t{5} << 20) + 3}) {
    AlignedBuffer buffer(bytes);
    ASSERT_NE(buffer.data(), nullptr) << bytes;
    EXPECT_EQ(buffer.size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kAlignment, 0u) << bytes;
    std::memset(buffer.data(), 7, bytes);
    // Readable beyond the end: an address sanitizer would complain here.
    std::byte vector[kAlignment];
    std::memcpy(vector, buffer.data() + bytes - 1, sizeof(vector));
    EXPECT_EQ(vector[0], std::byte{7});
  }
}

TEST(AlignedBuffer, LargeOnesStartAtAHugePage) {
  const AlignedBuffer buffer(size_t{3} << 20);
  ASSERT_NE(buffer.data(), nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % (size_t{2} << 20), 0u);
}

TEST(AlignedBuffer, ImpossibleSizesGiveNull) {
  for (size_t bytes : {SIZE_MAX, SIZE_MAX - 63, SIZE_MAX / 2 + 1, size_t{1} << 60}) {
    const AlignedBuffer buffer(bytes);
    EXPECT_EQ(buffer.data(), nullptr) << bytes;
    EXPECT_EQ(buffer.size(), 0u);
  }
}

TEST(AlignedBuffer, EmptyAndMoved) {
  EXPECT_EQ(AlignedBuffer().data(), nullptr);
  EXPECT_EQ(AlignedBuffer(0).size(), 0u);
  AlignedBuffer a(100);
  std::byte* const data = a.data();
  AlignedBuffer b(std::move(a));
  EXPECT_EQ(b.data(), data);
  EXPECT_EQ(b.size(), 100u);
  AlignedBuffer c(10);
  c = std::move(b);
  EXPECT_EQ(c.data(), data);
  EXPECT_EQ(c.size(), 100u);
}

}  // namespace
}  // namespace fuselite
