#include "kernels/product/byte_pairs.h"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/product/byte_pairs.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/byte_products-inl.h"

#ifndef FUSELITE_KERNELS_PRODUCT_BYTE_PAIRS_ONCE_
#define FUSELITE_KERNELS_PRODUCT_BYTE_PAIRS_ONCE_
namespace fuselite::kernels {
namespace {

constexpr int kMostOfPair = 128, kQuad = 4;
constexpr int64_t kVector = 32;  // bytes
constexpr size_t kKinds = PairCounts().of_kind.size();
constexpr uint8_t kJoined = kKinds;  // in place of a kind, and like 0 without a wide vector

}  // namespace
}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Pairs = hn::CappedTag<int16_t, 16>;

struct HalvesOfPairs {
  hn::Vec<Pairs> first, second;

  HWY_INLINE explicit HalvesOfPairs(const std::byte* weights) {
    const hn::Repartition<int8_t, Pairs> bytes;
    const auto both =
        hn::BitCast(Pairs(), hn::LoadU(bytes, reinterpret_cast<const int8_t*>(weights)));
    first = hn::ShiftRight<8>(hn::ShiftLeft<8>(both));
    second = hn::ShiftRight<8>(both);
  }
};

// Writes the loads of a vector, and returns whether it is plain. They are what the positive weights
// of each pair sum to, and the negative ones, as many bytes as the vector has, in one order for all
// vectors.
HWY_INLINE bool FindLoads(const std::byte* vector, uint8_t* loads) {
  const Pairs d;
  const hn::Rebind<uint8_t, Pairs> bytes;
  const auto zero = hn::Zero(d);
  auto most = zero;
  for (int64_t at = 0; at < kVector; at += static_cast<int64_t>(2 * hn::Lanes(d))) {
    const HalvesOfPairs of(vector + at);
    const auto above = hn::Add(hn::Max(of.first, zero), hn::Max(of.second, zero));
    const auto below = hn::Neg(hn::Add(hn::Min(of.first, zero), hn::Min(of.second, zero)));
    hn::StoreU(hn::DemoteTo(bytes, above), bytes, loads + at / 2);
    hn::StoreU(hn::DemoteTo(bytes, below), bytes, loads + (kVector + at) / 2);
    most = hn::Max(most, hn::Max(above, below));
  }
  return hn::AllFalse(d, hn::Gt(most, hn::Set(d, static_cast<int16_t>(kMostOfPair))));
}

HWY_INLINE void AddWide(const std::byte* vector, int32_t* biases) {
  const hn::RepartitionToWide<Pairs> d;
  for (int64_t at = 0; at < kVector; at += static_cast<int64_t>(2 * hn::Lanes(Pairs()))) {
    const HalvesOfPairs of(vector + at);
    const auto sums = PairSums(hn::Add(of.first, of.second));
    int32_t* const to = biases + at / kQuad;
    hn::StoreU(hn::Add(hn::LoadU(d, to), hn::ShiftLeft<7>(sums)), d, to);
  }
}

// All groups in one call: a call for each vector would take longer than its comparison.
void FindKinds(const ByteQuads& quads, uint8_t* kinds, uint8_t* loads) {
  const std::byte* vector = quads.weights;
  for (int64_t i = 0; i < quads.groups; ++i) {
    int kind = 0;
    for (int v = 0; v < quads.vectors; ++v, vector += kVector, loads += kVector) {
      kind |= static_cast<int>(!FindLoads(vector, loads)) << v;
    }
    kinds[i] = static_cast<uint8_t>(kind);
  }
}

// The first of `others` that may be joined with `group`, or how many they are.
size_t FindPartner(const uint8_t* loads, int64_t group_bytes, int32_t group,
                   std::span<const int32_t> others) {
  const hn::CappedTag<uint8_t, kVector> d;
  const auto most = hn::Set(d, static_cast<uint8_t>(kMostOfPair));
  const uint8_t* const own = loads + group * group_bytes;
  for (size_t i = 0; i < others.size(); ++i) {
    const uint8_t* const other = loads + others[i] * group_bytes;
    auto beyond = hn::Zero(d);
    for (int64_t at = 0; at < group_bytes; at += static_cast<int64_t>(hn::Lanes(d))) {
      const auto sums = hn::SaturatedAdd(hn::LoadU(d, own + at), hn::LoadU(d, other + at));
      beyond = hn::Or(beyond, hn::SaturatedSub(sums, most));
    }
    if (hn::AllTrue(d, hn::Eq(beyond, hn::Zero(d)))) return i;
  }
  return others.size();
}

void MoveGroups(const ByteQuads& quads, std::span<const int32_t> order, const uint8_t* kinds,
                std::byte* to, int32_t* biases) {
  const hn::CappedTag<uint8_t, kVector> d;
  for (const int32_t i : order) {
    const std::byte* const group = quads.weights + i * quads.group_bytes();
    for (int64_t at = 0; at < quads.group_bytes(); at += static_cast<int64_t>(hn::Lanes(d))) {
      const auto* const from = reinterpret_cast<const uint8_t*>(group + at);
      hn::StoreU(hn::LoadU(d, from), d, reinterpret_cast<uint8_t*>(to + at));
    }
    for (int v = 0; v < quads.vectors; ++v) {
      if (kinds[i] >> v & 1) AddWide(group + v * kVector, biases + v * (kVector / kQuad));
    }
    to += quads.group_bytes();
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

// What the positive weights of a pair sum to, and the negative ones. Without a branch: weights are
// random, and each pair of a sample would mispredict some.
struct LoadsOfPair {
  int above, below;

  LoadsOfPair(int first, int second)
      : above(std::max(first, 0) + std::max(second, 0)),
        below(-std::min(first, 0) - std::min(second, 0)) {}
  bool plain() const { return std::max(above, below) <= kMostOfPair; }
};

void FindKindsByBytes(const ByteQuads& quads, uint8_t* kinds, uint8_t* loads) {
  const auto* weights = reinterpret_cast<const int8_t*>(quads.weights);
  for (int64_t i = 0; i < quads.groups; ++i, loads += quads.group_bytes()) {
    kinds[i] = 0;
    for (int64_t at = 0; at < quads.group_bytes(); at += 2, weights += 2) {
      const LoadsOfPair of(weights[0], weights[1]);
      if (!of.plain()) kinds[i] |= 1 << at / kVector;
      loads[at] = static_cast<uint8_t>(of.above);
      loads[at + 1] = static_cast<uint8_t>(of.below);
    }
  }
}

size_t FindPartnerByBytes(const uint8_t* loads, int64_t group_bytes, int32_t group,
                          std::span<const int32_t> others) {
  const std::span own(loads + group * group_bytes, static_cast<size_t>(group_bytes));
  const auto may_join = [&](int32_t other) {
    const auto fits = [](uint8_t x, uint8_t y) { return x + y <= kMostOfPair; };
    return std::equal(own.begin(), own.end(), loads + other * group_bytes, fits);
  };
  return static_cast<size_t>(std::ranges::find_if(others, may_join) - others.begin());
}

void MoveGroupsByBytes(const ByteQuads& quads, std::span<const int32_t> order, const uint8_t* kinds,
                       std::byte* to, int32_t* biases) {
  for (const int32_t i : order) {
    const std::byte* const group = quads.weights + i * quads.group_bytes();
    to = std::copy_n(group, quads.group_bytes(), to);
    for (int64_t at = 0; at < quads.group_bytes(); ++at) {
      if ((kinds[i] >> at / kVector & 1) == 0) continue;
      const auto more = static_cast<uint32_t>(128 * static_cast<int8_t>(group[at]));
      int32_t& bias = biases[at / kQuad];
      bias = static_cast<int32_t>(static_cast<uint32_t>(bias) + more);
    }
  }
}

// Joins groups of kind 0. A group is tried with the last ones that found no partner: with 8 of them
// layers of posenet join 25% to 73% of their groups, with 4 15% to 64%.
class Joiner {
 public:
  Joiner(Isa isa, const uint8_t* loads, int64_t group_bytes)
      : find_(isa.has_vectors() ? FUSELITE_SIMD_TABLE(FindPartner).For(isa) : FindPartnerByBytes),
        loads_(loads),
        group_bytes_(group_bytes) {}

  // Returns the groups that are joined, two by two; their kinds become kJoined.
  std::vector<int32_t> Join(std::span<uint8_t> kinds) {
    std::vector<int32_t> joined;
    if (std::ranges::count(kinds, 0) < std::ssize(kinds) / kLeastPart) return joined;
    for (int32_t i = 0; i < std::ssize(kinds) && failures_ <= kMostFailures; ++i) {
      if (kinds[i] != 0) continue;
      const int32_t other = TakePartner(i);
      if (other < 0) continue;
      joined.insert(joined.end(), {other, i});
      kinds[other] = kinds[i] = kJoined;
    }
    return joined;
  }

 private:
  // Negative: there is none, and `group` waits for one.
  int32_t TakePartner(int32_t group) {
    const size_t at = find_(loads_, group_bytes_, group, std::span(waiting_).first(count_));
    if (at < count_) {
      const int32_t partner = waiting_[at];
      const auto first = waiting_.begin() + static_cast<ptrdiff_t>(at);
      std::copy(first + 1, waiting_.begin() + static_cast<ptrdiff_t>(count_--), first);
      failures_ = 0;
      return partner;
    }
    if (count_ == waiting_.size()) {
      ++failures_;
      std::rotate(waiting_.begin(), waiting_.begin() + 1, waiting_.end());
      --count_;
    }
    waiting_[count_++] = group;
    return -1;
  }

  // Where fewer than this part of all groups are of kind 0, or so many of these in turn find no
  // partner, the search takes longer than it saves.
  static constexpr int kLeastPart = 3, kMostFailures = 16;

  size_t (*find_)(const uint8_t*, int64_t, int32_t, std::span<const int32_t>);
  const uint8_t* loads_;
  int64_t group_bytes_;
  std::array<int32_t, 8> waiting_{};
  size_t count_ = 0;
  int failures_ = 0;
};

}  // namespace

PairCounts OrderByPairs(Isa isa, const ByteQuads& quads, std::byte* to, std::span<int32_t> order,
                        std::span<int32_t> biases) {
  constexpr auto kFindKinds = FUSELITE_SIMD_TABLE(FindKinds);
  constexpr auto kMoveGroups = FUSELITE_SIMD_TABLE(MoveGroups);
  std::vector<uint8_t> kinds(static_cast<size_t>(quads.groups));
  const auto loads = std::make_unique_for_overwrite<uint8_t[]>(
      static_cast<size_t>(quads.groups * quads.group_bytes()));
  (isa.has_vectors() ? kFindKinds.For(isa) : FindKindsByBytes)(quads, kinds.data(), loads.get());
  const std::vector<int32_t> joined = Joiner(isa, loads.get(), quads.group_bytes()).Join(kinds);
  PairCounts counts{.joined = static_cast<int32_t>(joined.size() / 2)};
  for (const uint8_t kind : kinds) {
    if (kind != kJoined) ++counts.of_kind[kind];
  }
  std::ranges::copy(joined, order.begin());
  std::array<int32_t, kKinds> next{};
  std::exclusive_scan(counts.of_kind.begin(), counts.of_kind.end(), next.begin(),
                      static_cast<int32_t>(joined.size()));
  for (int32_t i = 0; i < quads.groups; ++i) {
    if (kinds[i] != kJoined) order[next[kinds[i]]++] = i;
  }
  (isa.has_vectors() ? kMoveGroups.For(isa) : MoveGroupsByBytes)(quads, order, kinds.data(), to,
                                                                 biases.data());
  return counts;
}

double PartOfWide(const SampledWeights& weights) {
  // Places are spread over the depth, and by a prime over the rows. Groups side by side are samples
  // of one place: they share lines of the cache.
  constexpr int64_t kPlaces = 8, kSamples = 8, kBlockStep = 10007;
  constexpr int64_t kLanes = kVector / kQuad;
  const int64_t depth = weights.depth, groups = depth / kQuad, blocks = weights.rows / kLanes;
  const int64_t samples = std::min(groups, kSamples);
  const auto value = [&](uint8_t byte) {
    return static_cast<int8_t>(byte ^ weights.flip) - weights.zero_point;
  };
  const auto plain_pair = [&](const uint8_t* pair) {
    return LoadsOfPair(value(pair[0]), value(pair[1])).plain();
  };
  int wide = 0;
  for (int64_t i = 0; i < kPlaces; ++i) {
    const int64_t first_group = i * (groups - samples) / (kPlaces - 1);
    const uint8_t* const place =
        weights.values + i * kBlockStep % blocks * kLanes * depth + first_group * kQuad;
    for (int64_t k = 0; k < samples; ++k) {
      bool plain = true;
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        const uint8_t* const quad = place + lane * depth + k * kQuad;
        plain &= plain_pair(quad) & plain_pair(quad + 2);
      }
      wide += plain ? 0 : 1;
    }
  }
  return static_cast<double>(wide) / static_cast<double>(kPlaces * samples);
}

}  // namespace fuselite::kernels
#endif
