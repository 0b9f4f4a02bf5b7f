#include "kernels/gemm/wide_row.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/wide_row.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D64 = hn::ScalableTag<int64_t>;
using V64 = hn::Vec<D64>;
using D32 = hn::Rebind<int32_t, D64>;
using V32 = hn::Vec<D32>;
using DReal = hn::Rebind<double, D64>;
using DWhole = hn::Repartition<int32_t, DReal>;

// `n` values from element `at` of the array that there is as int64, zeros behind.
HWY_INLINE V64 LoadWide(const int64_t* wide, const int32_t* narrow, int64_t at, size_t n) {
  return wide != nullptr ? LoadUpTo(D64(), wide + at, n)
                         : hn::PromoteTo(D64(), LoadUpTo(D32(), narrow + at, n));
}

// The low 32 bits of sum * multiplier / 2^shift, rounded half up.
HWY_INLINE V32 MultiplyFixed(V64 sum, V32 multiplier, V32 shift) {
  const D64 d;
  const hn::RebindToUnsigned<D64> du;
  const hn::Repartition<uint32_t, D64> halves;
  const auto factor = hn::BitCast(halves, hn::PromoteTo(d, multiplier));
  const auto bits = hn::PromoteTo(d, shift);
  const auto low = hn::BitCast(halves, sum);
  const auto high = hn::BitCast(halves, hn::ShiftRight<32>(hn::BitCast(du, sum)));
  const auto product =
      hn::Add(hn::MulEven(low, factor), hn::ShiftLeft<32>(hn::MulEven(high, factor)));
  const auto one = hn::Set(d, 1);
  const auto half = hn::Shl(one, hn::Sub(bits, one));
  const V64 scaled = hn::Shr(hn::Add(hn::BitCast(d, product), half), bits);
  const hn::Rebind<uint32_t, D64> du32;
  return hn::BitCast(D32(), hn::TruncateTo(du32, hn::BitCast(du, scaled)));
}

// Precondition: low and high are integers beyond which nothing is asked.
HWY_INLINE V32 MultiplyReal(V64 sum, hn::Vec<DReal> scale, double low, double high) {
  const DReal d;
  const auto scaled = hn::Mul(hn::ConvertTo(d, sum), scale);
  const auto cut = hn::Min(hn::Max(scaled, hn::Set(d, low)), hn::Set(d, high));
  // The largest double below 0.5, added away from zero, carries over exactly what is rounded up.
  const auto half = hn::CopySign(hn::Set(d, 0x1.fffffffffffffp-2), cut);
  return hn::DemoteTo(D32(), hn::Add(cut, half));
}

// The nearest integers to sum * factor + addend, in the even 32-bit lanes.
HWY_INLINE hn::Vec<DWhole> NearestOf(V32 sums, hn::Vec<DReal> factor, hn::Vec<DReal> addend) {
  const DReal d;
  // Its last bit is worth 1, and integers stand in its low 32 bits.
  const auto magic = hn::Set(d, 0x1.8p52);
  const auto scaled = hn::MulAdd(hn::PromoteTo(d, sums), factor, addend);
  return hn::BitCast(DWhole(), hn::Add(scaled, magic));
}

// The channels [first, first + n) of all rows with WideScaling's factors and addends. n: at most
// twice the lanes of doubles, as many where kWhole.
template <bool kWhole>
HWY_INLINE void ScaleColumns(const WideRows& r, size_t first, size_t n) {
  const DReal d;
  const D32 d32;
  const hn::Rebind<int16_t, DWhole> d16;
  const size_t half = hn::Lanes(d);
  const bool both = kWhole || n > half;
  const size_t in_low = both ? half : n, in_high = n - half;
  // What lies in the upper half, if anything: else the lower one once more.
  const auto load = [&](auto tag, const auto* from, size_t part) HWY_ATTR {
    if (kWhole) return hn::LoadU(tag, from + part * half);
    if (part == 0 || !both) return LoadUpTo(tag, from, in_low);
    return LoadUpTo(tag, from + half, in_high);
  };
  const double *const factors = r.scaling->factors.data() + r.channel + first,
                      *const addends = r.scaling->addends.data() + r.channel + first;
  const auto factor0 = load(d, factors, 0), factor1 = load(d, factors, 1);
  const auto addend0 = load(d, addends, 0), addend1 = load(d, addends, 1);
  const auto low = hn::Set(d16, static_cast<int16_t>(r.scaling->min)),
             high = hn::Set(d16, static_cast<int16_t>(r.scaling->max));
  const int32_t* sums = r.narrow_sums + first;
  int16_t* to = r.to + first;
  for (int64_t row = 0; row < r.rows; ++row, sums += r.sums_pitch, to += r.to_pitch) {
    const auto nearest0 = NearestOf(load(d32, sums, 0), factor0, addend0);
    const auto nearest1 = NearestOf(load(d32, sums, 1), factor1, addend1);
    const auto scaled = hn::DemoteTo(d16, hn::ConcatEven(DWhole(), nearest1, nearest0));
    const auto cut = hn::Min(hn::Max(scaled, low), high);
    kWhole ? hn::StoreU(cut, d16, to) : StoreUpTo(cut, d16, to, n);
  }
}

void ScaleExactly(const WideRows& rows) {
  const auto n = static_cast<size_t>(rows.n), most = hn::Lanes(DWhole());
  size_t i = 0;
  for (; i + most <= n; i += most) ScaleColumns<true>(rows, i, most);
  if (i < n) ScaleColumns<false>(rows, i, n - i);
}

void ScaleRow(const WideRows& row) {
  const D64 d;
  const D32 d32;
  const hn::Rebind<int16_t, D64> d16;
  const WideScaling& s = *row.scaling;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int32_t low = s.min - s.zero_point, high = s.max - s.zero_point;
  const auto zero = hn::Set(d32, s.zero_point);
  const bool biased = row.bias != nullptr || row.narrow_bias != nullptr;
  for (int64_t i = 0; i < row.n; i += lanes) {
    const auto left = static_cast<size_t>(row.n - i);
    const int64_t c = row.channel + i;
    V64 sum = LoadWide(row.sums, row.narrow_sums, i, left);
    if (biased) sum = hn::Add(sum, LoadWide(row.bias, row.narrow_bias, c, left));
    V32 scaled;
    if (s.real.empty()) {
      const V32 product = MultiplyFixed(sum, LoadUpTo(d32, s.multipliers.data() + c, left),
                                        LoadUpTo(d32, s.shifts.data() + c, left));
      scaled = hn::Min(hn::Max(product, hn::Set(d32, low)), hn::Set(d32, high));
    } else {
      scaled = MultiplyReal(sum, LoadUpTo(DReal(), s.real.data() + c, left), low, high);
    }
    StoreUpTo(hn::DemoteTo(d16, hn::Add(scaled, zero)), d16, row.to + i, left);
  }
}

void ScaleRows(const WideRows& rows) {
  if (rows.narrow_sums != nullptr && !rows.scaling->factors.empty()) return ScaleExactly(rows);
  for (int64_t row = 0; row < rows.rows; ++row) ScaleRow(rows.Row(row));
}

void AddWide(const int32_t* sums, int64_t n, int shift, bool first, int64_t* totals) {
  const D64 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) {
    const auto left = static_cast<size_t>(n - i);
    V64 sum = hn::ShiftLeftSame(hn::PromoteTo(d, LoadUpTo(D32(), sums + i, left)), shift);
    if (!first) sum = hn::Add(sum, LoadUpTo(d, totals + i, left));
    StoreUpTo(sum, d, totals + i, left);
  }
}

constexpr WideRowFunctions kWideRow = {.scale = ScaleRows, .add = AddWide};

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

void UseDoubles(std::span<const int64_t> biases, WideScaling* scaling) {
  constexpr double kLargestSum = 0x1p31, kLargestResult = 0x1p30, kExact = 0x1p53;
  std::vector<double> factors, addends;
  for (size_t c = 0; c < scaling->multipliers.size(); ++c) {
    const double m = scaling->multipliers[c], bias = static_cast<double>(biases[c]);
    const double zero_point = std::ldexp(scaling->zero_point, scaling->shifts[c]);
    const double largest = (kLargestSum + std::abs(bias)) * m + std::abs(zero_point);
    if (largest >= std::ldexp(kLargestResult, scaling->shifts[c])) return;
    if (2 * largest + 1 >= kExact) return;
    factors.push_back(std::ldexp(m, -scaling->shifts[c]));
    addends.push_back(std::ldexp(2 * (bias * m + zero_point) + 1, -scaling->shifts[c] - 1));
  }
  scaling->factors = std::move(factors);
  scaling->addends = std::move(addends);
}

namespace {

void ScaleWideRow(const WideRows& row) {
  const WideScaling& s = *row.scaling;
  for (int64_t i = 0; i < row.n; ++i) {
    const int64_t c = row.channel + i;
    const int64_t bias = row.bias != nullptr          ? row.bias[c]
                         : row.narrow_bias != nullptr ? row.narrow_bias[c]
                                                      : 0;
    const int64_t given = row.sums != nullptr ? row.sums[i] : row.narrow_sums[i];
    // Wraps around, as sums of 64 bits do.
    const auto sum =
        static_cast<int64_t>(static_cast<uint64_t>(given) + static_cast<uint64_t>(bias));
    if (s.real.empty()) {
      const int64_t scaled = MultiplyWide(sum, {s.multipliers[c], s.shifts[c]});
      row.to[i] = static_cast<int16_t>(std::clamp<int64_t>(scaled + s.zero_point, s.min, s.max));
    } else {
      const double scaled = std::round(static_cast<double>(sum) * s.real[c]) + s.zero_point;
      row.to[i] = static_cast<int16_t>(std::clamp<double>(scaled, s.min, s.max));
    }
  }
}

}  // namespace

void ScaleWideRows(const WideRows& rows) {
  for (int64_t row = 0; row < rows.rows; ++row) ScaleWideRow(rows.Row(row));
}

const WideRowFunctions* FindWideRowFunctions(Isa isa) {
  static constexpr auto kTable = FUSELITE_SIMD_TABLE(kWideRow);
  return kTable.For(isa);
}

}  // namespace fuselite::kernels
#endif
