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

// Whether the sums of two neighbouring products of both vectors fit 16 bits together.
bool MayJoin(const int8_t* first, const int8_t* second) {
  for (int at = 0; at < kVectorBytes; at += 2) {
    int above = 0, below = 0;
    for (const int8_t w : {first[at], first[at + 1], second[at], second[at + 1]}) {
      (w > 0 ? above : below) += 255 * w;
    }
    if (above > 32767 || below < -32768) return false;
  }
  return true;
}

class OrderTest {
 public:
  OrderTest(Isa isa, int vectors, int64_t groups, int64_t largest, Random& random)
      : group_bytes_(vectors * kVectorBytes),
        weights_(RandomWeights(random, groups * group_bytes_, largest)),
        ordered_(weights_.size()),
        order_(groups),
        biases_(vectors * kLanes) {
    for (int32_t& bias : biases_) bias = static_cast<int32_t>(random.Int(INT32_MIN, INT32_MAX));
    expected_ = biases_;
    counts_ =
        OrderByPairs(isa, {reinterpret_cast<const std::byte*>(weights_.data()), groups, vectors},
                     reinterpret_cast<std::byte*>(ordered_.data()), order_, biases_);
  }

  void ExpectOrdered() {
    std::vector<int32_t> sorted = order_;
    std::ranges::sort(sorted);
    for (int32_t i = 0; i < std::ssize(sorted); ++i) ASSERT_EQ(sorted[i], i);
    for (size_t at = 0; at < order_.size(); ++at) {
      ASSERT_EQ(std::memcmp(&ordered_[at * group_bytes_], Group(at), group_bytes_), 0) << at;
    }
    ExpectJoined();
    size_t at = 2 * static_cast<size_t>(counts_.joined);
    for (size_t kind = 0; kind < counts_.of_kind.size(); ++kind) {
      for (int32_t i = 0; i < counts_.of_kind[kind]; ++i, ++at) {
        ASSERT_LT(at, order_.size());
        EXPECT_TRUE(i == 0 || order_[at - 1] < order_[at]);
        ExpectKind(at, kind);
      }
    }
    EXPECT_EQ(at, order_.size());
    EXPECT_EQ(biases_, expected_);
  }

  const PairCounts& counts() const { return counts_; }

 private:
  const int8_t* Group(size_t at) const { return &weights_[order_[at] * group_bytes_]; }

  void ExpectJoined() {
    for (size_t at = 0; at < 2 * static_cast<size_t>(counts_.joined); at += 2) {
      ExpectKind(at, 0);
      ExpectKind(at + 1, 0);
      for (int64_t v = 0; v < group_bytes_; v += kVectorBytes) {
        EXPECT_TRUE(MayJoin(Group(at) + v, Group(at + 1) + v)) << order_[at];
      }
    }
  }

  // Takes what wide vectors add to the biases along.
  void ExpectKind(size_t at, size_t kind) {
    for (int64_t v = 0; v * kVectorBytes < group_bytes_; ++v) {
      const int8_t* const vector = Group(at) + v * kVectorBytes;
      const bool wide = IsWide(vector);
      ASSERT_EQ(wide, (kind >> v & 1) != 0) << "group " << order_[at] << " vector " << v;
      for (int b = 0; wide && b < kVectorBytes; ++b) {
        int32_t& bias = expected_[v * kLanes + b / 4];
        const auto more = static_cast<uint32_t>(128 * vector[b]);
        bias = static_cast<int32_t>(static_cast<uint32_t>(bias) + more);
      }
    }
  }

  int64_t group_bytes_;
  std::vector<int8_t> weights_, ordered_;
  std::vector<int32_t> order_, biases_, expected_;
  PairCounts counts_;
};

TEST(BytePairsTest, GroupsComeKindByKind) {
  for (const Isa isa : RunnableIsas()) {
    for (const int vectors : {1, 2}) {
      for (const int64_t largest : {20, 32, 45, 64, 70, 100, 127}) {
        Random random(largest);
        SCOPED_TRACE(::testing::Message() << IsaName(isa) << ' ' << random.Trace());
        for (const int64_t groups : {1, 2, 33}) {
          OrderTest(isa, vectors, groups, largest, random).ExpectOrdered();
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

// On every ISA as many, and of small weights nearly all.
TEST(BytePairsTest, GroupsAreJoined) {
  for (const int vectors : {1, 2}) {
    for (const int64_t largest : {10, 30, 50, 70}) {
      std::vector<int32_t> joined;
      for (const Isa isa : RunnableIsas()) {
        Random random(largest);
        joined.push_back(OrderTest(isa, vectors, 101, largest, random).counts().joined);
      }
      EXPECT_EQ(std::ranges::count(joined, joined[0]), std::ssize(joined)) << largest;
      if (largest == 10) {
        EXPECT_GT(joined[0], 30) << vectors;
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
