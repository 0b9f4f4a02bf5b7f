#include "kernels/product/byte_pairs.h"

#include <algorithm>
#include <array>
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
constexpr int kMostVectors = 2;

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

HWY_INLINE bool IsPlain(const std::byte* vector) {
  const Pairs d;
  const auto zero = hn::Zero(d);
  auto most = zero, least = zero;
  for (int64_t at = 0; at < kVector; at += static_cast<int64_t>(2 * hn::Lanes(d))) {
    const HalvesOfPairs of(vector + at);
    most = hn::Max(most, hn::Add(hn::Max(of.first, zero), hn::Max(of.second, zero)));
    least = hn::Min(least, hn::Add(hn::Min(of.first, zero), hn::Min(of.second, zero)));
  }
  const auto bound = hn::Set(d, static_cast<int16_t>(kMostOfPair));
  return hn::AllFalse(d, hn::Gt(hn::Max(most, hn::Neg(least)), bound));
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
void FindKinds(const ByteQuads& quads, uint8_t* kinds) {
  const std::byte* vector = quads.weights;
  for (int64_t i = 0; i < quads.groups; ++i) {
    int kind = 0;
    for (int v = 0; v < quads.vectors; ++v, vector += kVector) {
      kind |= static_cast<int>(!IsPlain(vector)) << v;
    }
    kinds[i] = static_cast<uint8_t>(kind);
  }
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

// Without a branch: weights are random, and each pair of a sample would mispredict some.
bool IsPlainPair(int first, int second) {
  const int most = std::max(first, 0) + std::max(second, 0);
  const int least = std::min(first, 0) + std::min(second, 0);
  return std::max(most, -least) <= kMostOfPair;
}

void FindKindsByBytes(const ByteQuads& quads, uint8_t* kinds) {
  const auto* weights = reinterpret_cast<const int8_t*>(quads.weights);
  for (int64_t i = 0; i < quads.groups; ++i) {
    kinds[i] = 0;
    for (int64_t at = 0; at < quads.group_bytes(); at += 2, weights += 2) {
      if (!IsPlainPair(weights[0], weights[1])) kinds[i] |= 1 << at / kVector;
    }
  }
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

}  // namespace

void OrderByPairs(Isa isa, const ByteQuads& quads, std::byte* to, std::span<int32_t> order,
                  std::span<int32_t> counts, std::span<int32_t> biases) {
  constexpr auto kFindKinds = FUSELITE_SIMD_TABLE(FindKinds);
  constexpr auto kMoveGroups = FUSELITE_SIMD_TABLE(MoveGroups);
  std::vector<uint8_t> kinds(static_cast<size_t>(quads.groups));
  (isa.has_vectors() ? kFindKinds.For(isa) : FindKindsByBytes)(quads, kinds.data());
  std::ranges::fill(counts, 0);
  for (const uint8_t kind : kinds) ++counts[kind];
  std::array<int32_t, 1 << kMostVectors> next{};
  std::exclusive_scan(counts.begin(), counts.end(), next.begin(), 0);
  for (int32_t i = 0; i < quads.groups; ++i) order[next[kinds[i]]++] = i;
  (isa.has_vectors() ? kMoveGroups.For(isa) : MoveGroupsByBytes)(quads, order, kinds.data(), to,
                                                                 biases.data());
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
    return IsPlainPair(value(pair[0]), value(pair[1]));
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
