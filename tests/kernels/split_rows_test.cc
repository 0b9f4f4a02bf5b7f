// Rows of bytes in three forms, on every ISA: to the byte, and not a byte more.
#include "kernels/source/split_rows.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "tests/kernels/guarded_bytes.h"
#include "tests/kernels/random.h"

namespace fuselite::kernels::testing {
namespace {

// Rows with gaps, against inaccessible pages at either end.
void ExpectSplit(SplitRowsFunction* split, bool is_signed, int64_t row_bytes, Random& random) {
  const CopyDim rows{.size = random.Int(1, 5),
                     .in_stride = row_bytes + random.Int(0, 70),
                     .out_stride = 3 * row_bytes + random.Int(0, 3)};
  const int64_t in_bytes = (rows.size - 1) * rows.in_stride + row_bytes;
  const int64_t out_bytes = (rows.size - 1) * rows.out_stride + 3 * row_bytes;
  std::vector<std::byte> in(in_bytes), expected(out_bytes, std::byte{0xA5});
  for (std::byte& b : in) b = static_cast<std::byte>(random.Int(0, 255));
  const std::vector<std::byte> before = expected;
  for (int64_t row = 0; row < rows.size; ++row) {
    for (int64_t i = 0; i < row_bytes; ++i) {
      const std::byte byte = in[row * rows.in_stride + i];
      const int value = is_signed ? static_cast<int8_t>(byte) : static_cast<int>(byte) - 128;
      std::byte* const to = &expected[row * rows.out_stride + i];
      to[0] = static_cast<std::byte>(value + 128);
      to[row_bytes] = static_cast<std::byte>(value);
      to[2 * row_bytes] = static_cast<std::byte>(std::abs(value));
    }
  }
  for (const auto edge : {GuardedBytes::Edge::kBegin, GuardedBytes::Edge::kEnd}) {
    const GuardedBytes from(in.data(), in.size(), edge), to(before.data(), before.size(), edge);
    ASSERT_NE(from.data(), nullptr);
    ASSERT_NE(to.data(), nullptr);
    split(from.data(), to.data(), rows, row_bytes);
    ASSERT_EQ(std::vector<std::byte>(to.data(), to.data() + out_bytes), expected);
  }
}

TEST(SplitRowsTest, OfAnyLength) {
  for (const Isa isa : RunnableIsas()) {
    for (const bool is_signed : {false, true}) {
      for (int64_t row_bytes = 1; row_bytes < 140; ++row_bytes) {
        Random random(row_bytes);
        SCOPED_TRACE(::testing::Message() << IsaName(isa) << ' ' << is_signed << ' ' << row_bytes);
        ExpectSplit(SplitRowsFor(isa, is_signed), is_signed, row_bytes, random);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace fuselite::kernels::testing
