// Rows of bytes with their signs inverted, on every ISA: to the byte, and not a byte more.
#include "kernels/source/flipped_rows.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/kernels/guarded_bytes.h"
#include "tests/kernels/random.h"

namespace fuselite::kernels::testing {
namespace {

// Rows with gaps, against inaccessible pages at either end.
void ExpectFlipped(FlipRowsFunction* flip, int64_t row_bytes, Random& random) {
  const CopyDim rows{.size = random.Int(1, 5),
                     .in_stride = row_bytes + random.Int(0, 70),
                     .out_stride = row_bytes + random.Int(0, 3)};
  const int64_t in_bytes = (rows.size - 1) * rows.in_stride + row_bytes;
  const int64_t out_bytes = (rows.size - 1) * rows.out_stride + row_bytes;
  std::vector<std::byte> in(in_bytes), expected(out_bytes, std::byte{0xA5});
  for (std::byte& b : in) b = static_cast<std::byte>(random.Int(0, 255));
  const std::vector<std::byte> before = expected;
  for (int64_t row = 0; row < rows.size; ++row) {
    for (int64_t i = 0; i < row_bytes; ++i) {
      const auto value = static_cast<int8_t>(in[row * rows.in_stride + i]);
      expected[row * rows.out_stride + i] = static_cast<std::byte>(value + 128);
    }
  }
  for (const auto edge : {GuardedBytes::Edge::kBegin, GuardedBytes::Edge::kEnd}) {
    const GuardedBytes from(in.data(), in.size(), edge), to(before.data(), before.size(), edge);
    ASSERT_NE(from.data(), nullptr);
    ASSERT_NE(to.data(), nullptr);
    flip(from.data(), to.data(), rows, row_bytes);
    ASSERT_EQ(std::vector<std::byte>(to.data(), to.data() + out_bytes), expected);
  }
}

TEST(FlippedRowsTest, OfAnyLength) {
  std::vector<FlipRowsFunction*> functions = {FlipRowsByBytes};
  for (const Isa isa : RunnableIsas()) functions.push_back(FlipRowsFor(isa));
  for (FlipRowsFunction* const flip : functions) {
    for (int64_t row_bytes = 1; row_bytes < 260; ++row_bytes) {
      Random random(row_bytes);
      SCOPED_TRACE(row_bytes);
      ExpectFlipped(flip, row_bytes, random);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace fuselite::kernels::testing
