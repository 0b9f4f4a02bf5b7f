// The order of groups of weights in which pairs of bytes saturate or do not, on every ISA.
#include "kernels/product/byte_pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/kernels/random.h"

namespace fuselite::kernels::testing {
namespace {

constexpr int kLanes = 8, kVectorBytes = 32;

// Whether some uint8 values times two weights sum to what no int16 holds.
bool Saturates(int first, int second) {
  const int most = 255 * (std::max(first, 0) + std::max(second, 0));
  const int least = 255 * (std::min(first, 0) + std::min(second, 0));
  return most > 32767 || least < -32768;
}

bool IsWide(const int8_t* vector) {
  for (int at = 0; at < kVectorBytes; at += 2) {
    if (Saturates(vector[at], vector[at + 1])) return true;
  }
  return false;
}

// Weights up to `largest`, with some pairs at the bound and just beyond.
std::vector<int8_t> RandomWeights(Random& random, size_t count, int64_t largest) {
  std::vector<int8_t> weights(count);
  for (int8_t& w : weights) w = static_cast<int8_t>(random.Int(-largest, largest));
  for (size_t at = 0; at + 1 < count; at += 2) {
    if (!random.Chance(0.02)) continue;
    const auto sign = static_cast<int>(random.Pick<int64_t>({-1, 1}));
    const auto first = static_cast<int>(random.Int(2, 127));
    const auto beyond = static_cast<int>(random.Int(0, 1));
    weights[at] = static_cast<int8_t>(sign * first);
    weights[at + 1] = static_cast<int8_t>(sign * std::min(127, 128 - first + beyond));
  }
  return weights;
}

void ExpectOrdered(Isa isa, int vectors, int64_t groups, int64_t largest, Random& random) {
  const int64_t group_bytes = vectors * kVectorBytes;
  const std::vector<int8_t> weights = RandomWeights(random, groups * group_bytes, largest);
  std::vector<int8_t> ordered(weights.size());
  std::vector<int32_t> order(groups), counts(size_t{1} << vectors, -1), biases(vectors * kLanes);
  for (int32_t& bias : biases) bias = static_cast<int32_t>(random.Int(INT32_MIN, INT32_MAX));
  std::vector<int32_t> expected = biases;
  OrderByPairs(isa, {reinterpret_cast<const std::byte*>(weights.data()), groups, vectors},
               reinterpret_cast<std::byte*>(ordered.data()), order, counts, biases);
  size_t at = 0;
  for (size_t kind = 0; kind < counts.size(); ++kind) {
    for (int32_t i = 0; i < counts[kind]; ++i, ++at) {
      ASSERT_LT(at, order.size());
      const int8_t* const group = &weights[order[at] * group_bytes];
      ASSERT_EQ(std::memcmp(&ordered[at * group_bytes], group, group_bytes), 0) << at;
      EXPECT_TRUE(i == 0 || order[at - 1] < order[at]);
      for (int v = 0; v < vectors; ++v) {
        const bool wide = IsWide(group + v * kVectorBytes);
        ASSERT_EQ(wide, (kind >> v & 1) != 0) << "group " << order[at] << " vector " << v;
        for (int b = 0; wide && b < kVectorBytes; ++b) {
          int32_t& bias = expected[v * kLanes + b / 4];
          const auto more = static_cast<uint32_t>(128 * group[v * kVectorBytes + b]);
          bias = static_cast<int32_t>(static_cast<uint32_t>(bias) + more);
        }
      }
    }
  }
  EXPECT_EQ(at, order.size());
  EXPECT_EQ(biases, expected);
}

TEST(BytePairsTest, GroupsComeKindByKind) {
  for (const Isa isa : RunnableIsas()) {
    for (const int vectors : {1, 2}) {
      for (const int64_t largest : {20, 64, 70, 100, 127}) {
        Random random(largest);
        SCOPED_TRACE(::testing::Message() << IsaName(isa) << ' ' << random.Trace());
        for (const int64_t groups : {1, 2, 33}) {
          ExpectOrdered(isa, vectors, groups, largest, random);
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(BytePairsTest, ThePartOfWideVectors) {
  constexpr size_t kRows = 64, kDepth = 100;
  std::vector<uint8_t> weights(kRows * kDepth);
  const auto part = [&] { return PartOfWide({weights.data(), kRows, kDepth}); };
  const auto byte = [](int value) { return static_cast<uint8_t>(value); };
  EXPECT_EQ(part(), 0);
  std::ranges::fill(weights, byte(64));
  EXPECT_EQ(part(), 0);
  std::ranges::fill(weights, byte(65));
  EXPECT_EQ(part(), 1);
  // One row of eight: all of its vectors.
  std::ranges::fill(weights, byte(0));
  for (size_t row = 3; row < kRows; row += 8)
    std::fill_n(&weights[row * kDepth], kDepth, byte(-100));
  EXPECT_EQ(part(), 1);
  // Half of the terms.
  std::ranges::fill(weights, byte(0));
  for (size_t row = 0; row < kRows; ++row) std::fill_n(&weights[row * kDepth], 48, byte(127));
  EXPECT_NEAR(part(), 0.48, 0.15);
  EXPECT_GE(PartOfWide({weights.data(), 8, 4}), 0);
}

TEST(BytePairsTest, WideVectorsOfWeightsWithAZeroPoint) {
  std::vector<uint8_t> weights(64 * 100, 200);
  // uint8 of the zero point 140 are int8 of 12: 60 more than that point, and 65.
  const auto part = [&] { return PartOfWide({weights.data(), 64, 100, 0x80, 12}); };
  EXPECT_EQ(part(), 0);
  std::ranges::fill(weights, uint8_t{205});
  EXPECT_EQ(part(), 1);
  std::ranges::fill(weights, uint8_t{76});
  EXPECT_EQ(part(), 0);
  std::ranges::fill(weights, uint8_t{75});
  EXPECT_EQ(part(), 1);
}

}  // namespace
}  // namespace fuselite::kernels::testing
