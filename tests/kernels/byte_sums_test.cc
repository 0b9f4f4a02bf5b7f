#include "kernels/product/byte_sums.h"

#include <vector>

#include "tests/kernels/guarded_bytes.h"
#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {
namespace {

// Rows that overlap and such with gaps, on top of what was there, up to the edge of what may be
// read.
TEST(ByteSumsTest, AreThoseOfEachRow) {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const int64_t length = kShortestSummed + random.Int(0, seed % 4 == 0 ? 2000 : 150);
    const int64_t step = random.Int(1, 2 * length), count = random.Int(1, 13);
    const auto flip = static_cast<uint8_t>(random.Pick({0x00, 0x80}));
    std::vector<uint8_t> bytes(length + step * (count - 1));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Int(0, 255));
    std::vector<int32_t> expected(count, 7);
    for (int64_t row = 0; row < count; ++row) {
      for (int64_t i = 0; i < length; ++i) expected[row] += bytes[row * step + i] ^ flip;
    }
    for (const auto edge : {GuardedBytes::Edge::kBegin, GuardedBytes::Edge::kEnd}) {
      const GuardedBytes guarded(bytes.data(), bytes.size(), edge);
      for (const Isa isa : RunnableIsas()) {
        std::vector<int32_t> sums(count, 7);
        const auto* const values = reinterpret_cast<const uint8_t*>(guarded.data());
        AddByteSums(isa, flip, {values, step, count}, length, sums.data());
        EXPECT_EQ(sums, expected) << IsaName(isa) << ", rows of " << length;
      }
    }
  }
}

}  // namespace
}  // namespace fuselite::kernels::testing
