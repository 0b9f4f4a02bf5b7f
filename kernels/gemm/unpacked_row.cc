#include "kernels/gemm/unpacked_row.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/unpacked_row.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// kUnits sums at once, which share x.
template <int kUnits>
HWY_INLINE void FloatSums(const UnpackedRow& row, int64_t unit) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* x = static_cast<const float*>(row.x);
  const auto* w = static_cast<const float*>(row.w) + unit * row.depth;
  hn::Vec<decltype(d)> sums[kUnits];
  for (auto& sum : sums) sum = hn::Zero(d);
  int64_t k = 0;
  for (; k + lanes <= row.depth; k += lanes) {
    const auto a = hn::LoadU(d, x + k);
    for (int u = 0; u < kUnits; ++u) {
      sums[u] = hn::MulAdd(a, hn::LoadU(d, w + u * row.depth + k), sums[u]);
    }
  }
  if (k < row.depth) {
    const size_t left = row.depth - k;
    const auto a = LoadPartial(d, x + k, left);
    for (int u = 0; u < kUnits; ++u) {
      sums[u] = hn::MulAdd(a, LoadPartial(d, w + u * row.depth + k, left), sums[u]);
    }
  }
  for (int u = 0; u < kUnits; ++u) {
    static_cast<float*>(row.sums)[unit + u] = hn::GetLane(hn::SumOfLanes(d, sums[u]));
  }
}

void FloatRow(const UnpackedRow& row) {
  int64_t u = 0;
  for (; u + 8 <= row.units; u += 8) FloatSums<8>(row, u);
  for (; u < row.units; ++u) FloatSums<1>(row, u);
}

// Adds the terms from k on, as far as whole vectors of D go, to the sums. Returns where that is.
template <int kUnits, class D, class T>
HWY_INLINE int64_t AddVectors(D d16, const int16_t* x, const T* w, const UnpackedRow& row,
                              int64_t k, uint32_t* sums) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d16));
  if (k + lanes > row.depth) return k;
  const hn::Repartition<int32_t, D> d;
  const hn::Rebind<T, D> narrow;
  const auto zero = hn::Set(d16, static_cast<int16_t>(row.w_zero));
  hn::Vec<decltype(d)> low[kUnits], high[kUnits];
  for (auto& sum : low) sum = hn::Zero(d);
  for (auto& sum : high) sum = hn::Zero(d);
  for (; k + lanes <= row.depth; k += lanes) {
    const auto a = hn::LoadU(d16, x + k);
    for (int u = 0; u < kUnits; ++u) {
      const auto b = hn::Sub(hn::PromoteTo(d16, hn::LoadU(narrow, w + u * row.depth + k)), zero);
      low[u] = hn::ReorderWidenMulAccumulate(d, a, b, low[u], high[u]);
    }
  }
  for (int u = 0; u < kUnits; ++u) {
    sums[u] += static_cast<uint32_t>(hn::GetLane(hn::SumOfLanes(d, hn::Add(low[u], high[u]))));
  }
  return k;
}

template <int kUnits, class T>
HWY_INLINE void ByteSums(const UnpackedRow& row, int64_t unit) {
  const auto* x = static_cast<const int16_t*>(row.x);
  const auto* w = static_cast<const T*>(row.w) + unit * row.depth;
  uint32_t sums[kUnits] = {};
  // Short rows, and what is left of long ones, take vectors of 16 bytes.
  int64_t k = AddVectors<kUnits>(hn::ScalableTag<int16_t>(), x, w, row, 0, sums);
  k = AddVectors<kUnits>(hn::CappedTag<int16_t, 8>(), x, w, row, k, sums);
  for (int u = 0; u < kUnits; ++u) {
    for (int64_t i = k; i < row.depth; ++i) {
      sums[u] += static_cast<uint32_t>(x[i] * (w[u * row.depth + i] - row.w_zero));
    }
    static_cast<int32_t*>(row.sums)[unit + u] = static_cast<int32_t>(sums[u]);
  }
}

template <class T>
void ByteRow(const UnpackedRow& row) {
  int64_t u = 0;
  for (; u + 4 <= row.units; u += 4) ByteSums<4, T>(row, u);
  for (; u < row.units; ++u) ByteSums<1, T>(row, u);
}

const UnpackedFunctions* Unpacked() {
  static constexpr UnpackedFunctions kFunctions = {FloatRow, ByteRow<int8_t>, ByteRow<uint8_t>};
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

}  // namespace

const UnpackedFunctions* FindUnpackedFunctions(Isa isa) {
  constexpr auto kUnpacked = FUSELITE_SIMD_TABLE(Unpacked);
  auto* const unpacked = kUnpacked.For(isa);
  return unpacked == nullptr ? nullptr : unpacked();
}

const UnpackedFunctions& ScalarUnpackedFunctions() {
  static constexpr UnpackedFunctions kFunctions = {ScalarRow<float, float, float>,
                                                   ScalarRow<int16_t, int8_t, uint32_t>,
                                                   ScalarRow<int16_t, uint8_t, uint32_t>};
  return kFunctions;
}

}  // namespace fuselite::kernels
#endif
