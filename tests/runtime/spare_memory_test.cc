#include "runtime/memory/spare_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

namespace fuselite {
namespace {

constexpr size_t kPiece = 256 << 10;

TEST(SpareMemory, GivesTheSmallestPieceThatSuffices) {
  SpareMemory spare;
  AlignedBuffer small = spare.Take(kPiece), large = spare.Take(4 * kPiece);
  const std::byte* const at_small = small.data();
  const std::byte* const at_large = large.data();
  for (const bool large_first : {false, true}) {
    AlignedBuffer& first = large_first ? large : small;
    AlignedBuffer& second = large_first ? small : large;
    spare.Give(std::move(first));
    spare.Give(std::move(second));
    small = spare.Take(kPiece);
    large = spare.Take(2 * kPiece);
    EXPECT_EQ(small.data(), at_small);
    EXPECT_EQ(large.data(), at_large);
    EXPECT_EQ(large.size(), 4 * kPiece);
  }
}

TEST(SpareMemory, ReplacesTheLargestPieceWhereNoneSuffices) {
  SpareMemory spare;
  AlignedBuffer a = spare.Take(kPiece), b = spare.Take(2 * kPiece);
  const std::byte* const at = a.data();
  spare.Give(std::move(a));
  spare.Give(std::move(b));
  AlignedBuffer larger = spare.Take(8 * kPiece);
  EXPECT_EQ(larger.size(), 8 * kPiece);
  // The second largest stayed, and is the only one.
  AlignedBuffer left = spare.Take(kPiece);
  EXPECT_EQ(left.data(), at);
  EXPECT_EQ(left.size(), kPiece);
  EXPECT_EQ(spare.Take(kPiece / 2).size(), kPiece / 2);
}

TEST(SpareMemory, LeavesSmallPiecesToMalloc) {
  SpareMemory spare;
  spare.Give(AlignedBuffer(100));
  spare.Give(AlignedBuffer());
  spare.Give(AlignedBuffer(kPiece));
  for (const size_t bytes : {0, 1, 100}) {
    const AlignedBuffer taken = spare.Take(bytes);
    EXPECT_NE(taken.data(), nullptr);
    EXPECT_EQ(taken.size(), bytes);
  }
  EXPECT_EQ(spare.Take(1).size(), 1u);
  EXPECT_EQ(spare.Take(kPiece - 1).size(), kPiece);
}

TEST(SpareMemory, HasNothingWhereMemoryIsExhausted) {
  SpareMemory spare;
  spare.Give(AlignedBuffer(kPiece));
  const AlignedBuffer refused = spare.Take(size_t{1} << 50);
  EXPECT_EQ(refused.data(), nullptr);
  EXPECT_EQ(refused.size(), 0u);
}

}  // namespace
}  // namespace fuselite
