#include "jit/product/sum_bytes.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/random.h"

namespace fuselite::jit {
namespace {

// Every length up to several loads, at every offset from an aligned address, between other bytes.
TEST(SumBytes, IsThatOfTheRunAlone) {
  kernels::testing::Random random(1);
  SCOPED_TRACE(random.Trace());
  for (int64_t n = 0; n <= 70; ++n) {
    for (int64_t offset = 0; offset < 16; ++offset) {
      for (const uint8_t flip : {0x00, 0x80}) {
        std::vector<uint8_t> bytes(offset + n);
        for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Int(0, 255));
        int64_t expected = 0;
        for (int64_t i = 0; i < n; ++i) expected += bytes[offset + i] ^ flip;
        EXPECT_EQ(ByteSum(n, flip)(bytes.data() + offset), expected) << n << " at " << offset;
      }
    }
  }
}

// Runs that overlap, and such with gaps, on top of what was there.
TEST(SumBytes, AddsEachOfManyShortRuns) {
  kernels::testing::Random random(2);
  SCOPED_TRACE(random.Trace());
  for (int64_t n = 0; n < 16; ++n) {
    const int64_t step = random.Int(1, 90), count = random.Int(1, 9);
    const auto flip = static_cast<uint8_t>(random.Pick({0x00, 0x80}));
    std::vector<uint8_t> bytes(n + step * (count - 1));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Int(0, 255));
    const ByteSum sum(n, flip);
    std::vector<int32_t> sums(count, 7);
    sum.AddEachShort({bytes.data(), step, count}, sums.data());
    for (int64_t i = 0; i < count; ++i) {
      EXPECT_EQ(sums[i], 7 + sum(bytes.data() + i * step)) << n << " values, run " << i;
    }
  }
}

}  // namespace
}  // namespace fuselite::jit
