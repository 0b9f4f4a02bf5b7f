#include "kernels/unpacked/unpacked_row.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/unpacked/unpacked_row.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Lane i is the sum of the lanes of v[i], neighbours first. kVectors is a power of two; of fewer
// vectors than lanes, each has a run of lanes that are left to add.
template <int kVectors, class D, class V>
HWY_INLINE V SumsOfLanes(D d, const V* v) {
  if constexpr (kVectors == 1) {
    return *v;
  } else {
    const V low = SumsOfLanes<kVectors / 2>(d, v);
    const V high = SumsOfLanes<kVectors / 2>(d, v + kVectors / 2);
    return hn::Add(hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low));
  }
}

// The sum of all lanes in the order of SumsOfLanes, so that a sum's bits are the same whether
// others are beside it; in lane 0.
template <int kLanes, class D, class V>
HWY_INLINE V SumOfNeighbours(D d, V v) {
  if constexpr (kLanes == 1) {
    return v;
  } else {
    return SumOfNeighbours<kLanes / 2>(d, hn::Add(hn::ConcatEven(d, v, v), hn::ConcatOdd(d, v, v)));
  }
}

// The vectors of kUnits sums from `unit` on, which share x. Unrolled, so that they stay in
// registers.
template <int kUnits, class D, class V>
HWY_INLINE void VectorsOfSums(D d, const UnpackedRow& row, int64_t unit, V* sums) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* x = static_cast<const float*>(row.x);
  const auto* w = static_cast<const float*>(row.w) + unit * row.depth;
  HWY_UNROLL(16)
  for (int u = 0; u < kUnits; ++u) sums[u] = hn::Zero(d);
  int64_t k = 0;
  for (; k + lanes <= row.depth; k += lanes) {
    const auto a = hn::LoadU(d, x + k);
    HWY_UNROLL(16)
    for (int u = 0; u < kUnits; ++u) {
      sums[u] = hn::MulAdd(a, hn::LoadU(d, w + u * row.depth + k), sums[u]);
    }
  }
  if (k < row.depth) {
    const size_t left = row.depth - k;
    const auto a = LoadPartial(d, x + k, left);
    HWY_UNROLL(16)
    for (int u = 0; u < kUnits; ++u) {
      sums[u] = hn::MulAdd(a, LoadPartial(d, w + u * row.depth + k, left), sums[u]);
    }
  }
}

// kUnits sums: one, or a multiple of the lanes; kRows rows of weights are read at once.
template <int kUnits, int kRows = kUnits>
HWY_INLINE void FloatSums(const UnpackedRow& row, int64_t unit) {
  const hn::ScalableTag<float> d;
  hn::Vec<decltype(d)> sums[kUnits];
  HWY_UNROLL(2)
  for (int u = 0; u < kUnits; u += kRows) VectorsOfSums<kRows>(d, row, unit + u, sums + u);
  auto* const to = static_cast<float*>(row.sums) + unit;
  constexpr int kLanes = hn::MaxLanes(d);
  if constexpr (kUnits == 1) {
    *to = hn::GetLane(SumOfNeighbours<kLanes>(d, sums[0]));
  } else {
    HWY_UNROLL(16)
    for (int u = 0; u < kUnits; u += kLanes) {
      hn::StoreU(SumsOfLanes<kLanes>(d, sums + u), d, to + u);
    }
  }
}

// Units that are summed at once: two rows of lanes hide the latency of additions.
constexpr int kFloatUnits = HWY_MAX(8, hn::MaxLanes(hn::ScalableTag<float>()));

// Lane i is the sum of unit i, each of kDepth terms that follow those of the one before.
template <int kDepth>
HWY_INLINE auto ShallowSums(const float* x, const float* w) {
  const hn::ScalableTag<float> d;
  hn::Vec<decltype(d)> terms[4];
  if constexpr (kDepth == 2) hn::LoadInterleaved2(d, w, terms[0], terms[1]);
  if constexpr (kDepth == 3) hn::LoadInterleaved3(d, w, terms[0], terms[1], terms[2]);
  if constexpr (kDepth == 4) hn::LoadInterleaved4(d, w, terms[0], terms[1], terms[2], terms[3]);
  auto sum = hn::Mul(hn::Set(d, x[0]), terms[0]);
  HWY_UNROLL(4)
  for (int k = 1; k < kDepth; ++k) sum = hn::MulAdd(hn::Set(d, x[k]), terms[k], sum);
  return sum;
}

// Units of two to four terms, of which a vector for each unit would hold little: a vector holds one
// term of several units. Points by a rotation are such a product.
template <int kDepth>
HWY_INLINE void ShallowFloatRow(const UnpackedRow& row) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto *x = static_cast<const float*>(row.x), *w = static_cast<const float*>(row.w);
  auto* const sums = static_cast<float*>(row.sums);
  int64_t u = 0;
  for (; u + lanes <= row.units; u += lanes) {
    hn::StoreU(ShallowSums<kDepth>(x, w + u * kDepth), d, sums + u);
  }
  if (u == row.units) return;
  const int64_t left = row.units - u;
  HWY_ALIGN float last[kDepth * hn::MaxLanes(d)] = {};
  std::copy_n(w + u * kDepth, left * kDepth, last);
  StorePartial(ShallowSums<kDepth>(x, last), d, sums + u, left);
}

void FloatRow(const UnpackedRow& row) {
  switch (row.depth) {
    case 2: return ShallowFloatRow<2>(row);
    case 3: return ShallowFloatRow<3>(row);
    case 4: return ShallowFloatRow<4>(row);
    default: break;
  }
  // Sixteen rows of 512 floats, or of a multiple, begin in one set or two of L1, which have 8 lines
  // each on a Zen 4 and 12 on others: 1000 rows of 1024 come from its L3 in 68 us by eight, and in
  // 135 by sixteen. Where they do not, eight at once take 4% longer.
  const bool share_sets = row.depth % 512 == 0;
  int64_t u = 0;
  for (; u + kFloatUnits <= row.units; u += kFloatUnits) {
    share_sets ? FloatSums<kFloatUnits, HWY_MIN(8, kFloatUnits)>(row, u)
               : FloatSums<kFloatUnits>(row, u);
  }
  for (; u < row.units; ++u) FloatSums<1>(row, u);
}

// kVectors of units from `unit` on, in the last of which `left` lanes count.
template <int kVectors>
HWY_INLINE void FloatsAcross(const UnpackedRow& row, int64_t unit, size_t left) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* x = static_cast<const float*>(row.x);
  const auto* w = static_cast<const float*>(row.w) + unit;
  constexpr int kLast = kVectors - 1;
  hn::Vec<decltype(d)> sums[kVectors];
  HWY_UNROLL(8)
  for (auto& sum : sums) sum = hn::Zero(d);
  for (int64_t k = 0; k < row.depth; ++k, w += row.term_step) {
    const auto a = hn::Set(d, x[k]);
    HWY_UNROLL(8)
    for (int v = 0; v < kLast; ++v) {
      sums[v] = hn::MulAdd(a, hn::LoadU(d, w + v * lanes), sums[v]);
    }
    sums[kLast] = hn::MulAdd(a, LoadUpTo(d, w + kLast * lanes, left), sums[kLast]);
  }
  auto* const to = static_cast<float*>(row.sums) + unit;
  HWY_UNROLL(8)
  for (int v = 0; v < kLast; ++v) hn::StoreU(sums[v], d, to + v * lanes);
  StoreUpTo(sums[kLast], d, to + kLast * lanes, left);
}

void FloatRowAcross(const UnpackedRow& row) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  constexpr int64_t kMost = 4;
  for (int64_t u = 0; u < row.units; u += kMost * lanes) {
    const int64_t units = std::min(kMost * lanes, row.units - u), vectors = (units - 1) / lanes;
    const auto left = static_cast<size_t>(units - vectors * lanes);
    switch (vectors) {
      case 0: FloatsAcross<1>(row, u, left); break;
      case 1: FloatsAcross<2>(row, u, left); break;
      case 2: FloatsAcross<3>(row, u, left); break;
      default: FloatsAcross<4>(row, u, left); break;
    }
  }
}

// Adds the first of `terms` terms, as far as whole vectors of D go, to the sums. Returns how many.
template <int kUnits, class D, class T>
HWY_INLINE int64_t AddVectors(D d16, const int16_t* x, const T* w, int64_t terms,
                              const UnpackedRow& row, int32_t* sums) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d16));
  if (lanes > terms) return 0;
  const hn::Repartition<int32_t, D> d;
  const hn::Rebind<T, D> narrow;
  const auto zero = hn::Set(d16, static_cast<int16_t>(row.w_zero));
  hn::Vec<decltype(d)> low[kUnits], high[kUnits];
  HWY_UNROLL(16)
  for (auto& sum : low) sum = hn::Zero(d);
  HWY_UNROLL(16)
  for (auto& sum : high) sum = hn::Zero(d);
  int64_t k = 0;
  for (; k + lanes <= terms; k += lanes) {
    const auto a = hn::LoadU(d16, x + k);
    HWY_UNROLL(16)
    for (int u = 0; u < kUnits; ++u) {
      const auto b = hn::Sub(hn::PromoteTo(d16, hn::LoadU(narrow, w + u * row.depth + k)), zero);
      low[u] = hn::ReorderWidenMulAccumulate(d, a, b, low[u], high[u]);
    }
  }
  HWY_UNROLL(16)
  for (int u = 0; u < kUnits; ++u) low[u] = hn::Add(low[u], high[u]);
  if constexpr (kUnits == 1) {
    const auto sum = hn::GetLane(hn::SumOfLanes(d, low[0]));
    *sums = static_cast<int32_t>(static_cast<uint32_t>(*sums) + static_cast<uint32_t>(sum));
  } else {
    constexpr int kLanes = hn::MaxLanes(d);
    HWY_UNROLL(16)
    for (int u = 0; u < kUnits; u += kLanes) {
      const auto added = SumsOfLanes<kLanes>(d, low + u);
      hn::StoreU(hn::Add(hn::LoadU(d, sums + u), added), d, sums + u);
    }
  }
  return k;
}

// The terms of the narrowest vectors.
constexpr int64_t kLeastTerms = 8;

// kUnits sums at once: one, or a multiple of the lanes. `last`: the last kLeastTerms of x, with
// zeros for those that vectors have before them; null where there are none left.
template <int kUnits, class T>
HWY_INLINE void ByteSums(const UnpackedRow& row, const int16_t* last, int64_t unit) {
  const auto* x = static_cast<const int16_t*>(row.x);
  const auto* w = static_cast<const T*>(row.w) + unit * row.depth;
  auto* const sums = static_cast<int32_t*>(row.sums) + unit;
  std::fill_n(sums, kUnits, 0);
  // Short rows, and what is left of long ones, take narrower vectors.
  int64_t k = 0;
  const auto add = [&](auto d) HWY_ATTR {
    k += AddVectors<kUnits>(d, x + k, w + k, row.depth - k, row, sums);
  };
  add(hn::ScalableTag<int16_t>());
  add(hn::CappedTag<int16_t, 16>());
  const hn::CappedTag<int16_t, kLeastTerms> least;
  add(least);
  if (last != nullptr) {
    AddVectors<kUnits>(least, last, w + row.depth - kLeastTerms, kLeastTerms, row, sums);
  }
}

// Units of fewer terms than the narrowest vector has, each of which reads as many: what lies behind
// its own meets zeros in x. The last ones have no others behind them, and are copied.
template <class T>
HWY_INLINE void ShortByteRow(const UnpackedRow& row) {
  constexpr int kUnits = hn::MaxLanes(hn::ScalableTag<int32_t>());
  const hn::CappedTag<int16_t, kLeastTerms> d;
  int16_t x[kLeastTerms] = {};
  std::copy_n(static_cast<const int16_t*>(row.x), row.depth, x);
  T copy[kUnits * kLeastTerms] = {};
  for (int64_t u = 0; u < row.units; u += kUnits) {
    const int64_t n = std::min<int64_t>(kUnits, row.units - u);
    const T* w = static_cast<const T*>(row.w) + u * row.depth;
    if ((row.units - u) * row.depth < (kUnits - 1) * row.depth + kLeastTerms) {
      w = std::copy_n(w, n * row.depth, copy) - n * row.depth;
    }
    int32_t sums[kUnits] = {};
    AddVectors<kUnits>(d, x, w, kLeastTerms, row, sums);
    std::copy_n(sums, n, static_cast<int32_t*>(row.sums) + u);
  }
}

template <class T>
void ByteRow(const UnpackedRow& row) {
  if (row.depth < kLeastTerms) return ShortByteRow<T>(row);
  constexpr int kUnits = hn::MaxLanes(hn::ScalableTag<int32_t>());
  int16_t terms[kLeastTerms] = {};
  const int64_t left = row.depth % kLeastTerms;
  const auto* x = static_cast<const int16_t*>(row.x);
  std::copy_n(x + row.depth - left, left, terms + kLeastTerms - left);
  const int16_t* const last = left != 0 ? terms : nullptr;
  int64_t u = 0;
  for (; u + kUnits <= row.units; u += kUnits) ByteSums<kUnits, T>(row, last, u);
  for (; u < row.units; ++u) ByteSums<1, T>(row, last, u);
}

const UnpackedFunctions* Unpacked() {
  static constexpr UnpackedFunctions kFunctions = {FloatRow, FloatRowAcross, ByteRow<int8_t>,
                                                   ByteRow<uint8_t>};
  return &kFunctions;
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

// T is the type of x, W of the weights. S holds sums that wrap around where they are integers.
template <class T, class W, class S>
void ScalarRow(const UnpackedRow& row) {
  const auto* x = static_cast<const T*>(row.x);
  const auto* w = static_cast<const W*>(row.w);
  for (int64_t u = 0; u < row.units; ++u, w += row.depth) {
    S sum = 0;
    for (int64_t k = 0; k < row.depth; ++k) {
      if constexpr (std::is_same_v<W, float>) {
        sum += x[k] * w[k];
      } else {
        sum += static_cast<S>(x[k] * (w[k] - row.w_zero));
      }
    }
    std::memcpy(static_cast<std::byte*>(row.sums) + u * sizeof(S), &sum, sizeof(S));
  }
}

void ScalarRowAcross(const UnpackedRow& row) {
  const auto *x = static_cast<const float*>(row.x), *w = static_cast<const float*>(row.w);
  for (int64_t u = 0; u < row.units; ++u) {
    float sum = 0;
    for (int64_t k = 0; k < row.depth; ++k) sum += x[k] * w[k * row.term_step + u];
    static_cast<float*>(row.sums)[u] = sum;
  }
}

}  // namespace

const UnpackedFunctions* FindUnpackedFunctions(Isa isa) {
  constexpr auto kUnpacked = FUSELITE_SIMD_TABLE(Unpacked);
  auto* const unpacked = kUnpacked.For(isa);
  return unpacked == nullptr ? nullptr : unpacked();
}

const UnpackedFunctions& ScalarUnpackedFunctions() {
  static constexpr UnpackedFunctions kFunctions = {ScalarRow<float, float, float>, ScalarRowAcross,
                                                   ScalarRow<int16_t, int8_t, uint32_t>,
                                                   ScalarRow<int16_t, uint8_t, uint32_t>};
  return kFunctions;
}

}  // namespace fuselite::kernels
#endif
