#include "kernels/product/byte_pairs.h"

#include <algorithm>
#include <cstring>
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

bool IsPlain(const std::byte* vector) {
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

void AddWide(const std::byte* vector, int32_t* biases) {
  const hn::RepartitionToWide<Pairs> d;
  for (int64_t at = 0; at < kVector; at += static_cast<int64_t>(2 * hn::Lanes(Pairs()))) {
    const HalvesOfPairs of(vector + at);
    const auto sums = PairSums(hn::Add(of.first, of.second));
    int32_t* const to = biases + at / kQuad;
    hn::StoreU(hn::Add(hn::LoadU(d, to), hn::ShiftLeft<7>(sums)), d, to);
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

bool IsPlainPair(int first, int second) {
  return std::max(first, 0) + std::max(second, 0) <= kMostOfPair &&
         std::min(first, 0) + std::min(second, 0) >= -kMostOfPair;
}

bool IsPlainByBytes(const std::byte* vector) {
  for (int64_t at = 0; at < kVector; at += 2) {
    if (!IsPlainPair(static_cast<int8_t>(vector[at]), static_cast<int8_t>(vector[at + 1]))) {
      return false;
    }
  }
  return true;
}

void AddWideByBytes(const std::byte* vector, int32_t* biases) {
  for (int64_t at = 0; at < kVector; ++at) {
    const auto more = static_cast<uint32_t>(128 * static_cast<int8_t>(vector[at]));
    int32_t& bias = biases[at / kQuad];
    bias = static_cast<int32_t>(static_cast<uint32_t>(bias) + more);
  }
}

}  // namespace

void OrderByPairs(Isa isa, const ByteQuads& quads, std::byte* to, std::span<int32_t> order,
                  std::span<int32_t> counts, std::span<int32_t> biases) {
  constexpr auto kIsPlain = FUSELITE_SIMD_TABLE(IsPlain);
  constexpr auto kAddWide = FUSELITE_SIMD_TABLE(AddWide);
  const auto is_plain = isa.has_vectors() ? kIsPlain.For(isa) : IsPlainByBytes;
  const auto add_wide = isa.has_vectors() ? kAddWide.For(isa) : AddWideByBytes;
  const auto group = [&](int64_t i) { return quads.weights + i * quads.group_bytes(); };
  std::vector<uint8_t> kinds(static_cast<size_t>(quads.groups));
  std::ranges::fill(counts, 0);
  for (int64_t i = 0; i < quads.groups; ++i) {
    for (int v = 0; v < quads.vectors; ++v) {
      const std::byte* const vector = group(i) + v * kVector;
      if (is_plain(vector)) continue;
      kinds[i] |= static_cast<uint8_t>(1 << v);
      add_wide(vector, biases.data() + v * (kVector / kQuad));
    }
    ++counts[kinds[i]];
  }
  auto next = order.begin();
  for (size_t kind = 0; kind < counts.size(); ++kind) {
    for (int32_t i = 0; i < quads.groups; ++i) {
      if (kinds[i] == kind) *next++ = i;
    }
  }
  for (const int32_t i : order) {
    std::memcpy(to, group(i), static_cast<size_t>(quads.group_bytes()));
    to += quads.group_bytes();
  }
}

double PartOfWide(const int8_t* weights, int64_t rows, int64_t depth) {
  // Primes, that the samples lie everywhere.
  constexpr int64_t kSamples = 64, kGroupStep = 7919, kBlockStep = 10007;
  constexpr int64_t kLanes = kVector / kQuad;
  const int64_t groups = depth / kQuad, blocks = rows / kLanes;
  int wide = 0;
  for (int64_t i = 0; i < kSamples; ++i) {
    const int8_t* const quads =
        weights + i * kBlockStep % blocks * kLanes * depth + i * kGroupStep % groups * kQuad;
    bool plain = true;
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const int8_t* const quad = quads + lane * depth;
      plain &= IsPlainPair(quad[0], quad[1]) && IsPlainPair(quad[2], quad[3]);
    }
    wide += plain ? 0 : 1;
  }
  return static_cast<double>(wide) / kSamples;
}

}  // namespace fuselite::kernels
#endif
