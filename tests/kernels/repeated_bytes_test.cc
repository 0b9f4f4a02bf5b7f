// Bytes that stand several times, on every ISA: to the byte, and not a byte more.
#include "kernels/source/repeated_bytes.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/kernels/guarded_bytes.h"
#include "tests/kernels/random.h"

namespace fuselite::kernels::testing {
namespace {

TEST(RepeatedBytesTest, AnyNumberOfTimes) {
  for (const Isa isa : RunnableIsas()) {
    for (int32_t times = 1; times <= 20; ++times) {
      const RepeatedBytes repeated(times, isa);
      for (int64_t n = 1; n < 70; ++n) {
        Random random(n);
        SCOPED_TRACE(::testing::Message() << n << " bytes " << times << " times " << IsaName(isa));
        std::vector<std::byte> in(n), expected;
        for (std::byte& b : in) {
          b = static_cast<std::byte>(random.Int(0, 255));
          expected.insert(expected.end(), times, b);
        }
        const std::vector<std::byte> before(expected.size(), std::byte{0xA5});
        for (const auto edge : {GuardedBytes::Edge::kBegin, GuardedBytes::Edge::kEnd}) {
          const GuardedBytes from(in.data(), in.size(), edge);
          const GuardedBytes to(before.data(), before.size(), edge);
          ASSERT_NE(from.data(), nullptr);
          ASSERT_NE(to.data(), nullptr);
          repeated.Run(reinterpret_cast<const uint8_t*>(from.data()), n,
                       reinterpret_cast<uint8_t*>(to.data()));
          ASSERT_EQ(std::vector<std::byte>(to.data(), to.data() + before.size()), expected);
        }
      }
    }
  }
}

}  // namespace
}  // namespace fuselite::kernels::testing
