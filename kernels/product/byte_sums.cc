#include "kernels/product/byte_sums.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/product/byte_sums.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Pairs = hn::Full128<uint64_t>;

// A vector's words of 64 bits added up to two.
template <class DW>
HWY_INLINE hn::Vec<Pairs> FoldedToPair(DW /*dw*/, hn::Vec<DW> v) {
  if constexpr (hn::MaxLanes(DW()) == 2) {
    return v;
  } else {
    const hn::Half<DW> half;
    return FoldedToPair(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

// Sums of kRows rows from `row` on, in vectors of `D`, of which `length` fills one at least. What
// is left over is in a last vector that overlaps the one before.
template <size_t kRows, class D>
HWY_INLINE void SumRows(D d, const uint8_t* row, int64_t step, int64_t length, uint8_t flip,
                        hn::Vec<Pairs>* sums) {
  const hn::Repartition<uint64_t, D> dw;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto flips = hn::Set(d, flip);
  const auto summed = hn::FirstN(d, static_cast<size_t>((lanes - length % lanes) % lanes));
  hn::Vec<decltype(dw)> totals[kRows];
  HWY_UNROLL(4)
  for (size_t r = 0; r < kRows; ++r) {
    const auto last = hn::LoadU(d, row + static_cast<int64_t>(r) * step + length - lanes);
    totals[r] = hn::SumsOf8(hn::IfThenZeroElse(summed, hn::Xor(last, flips)));
  }
  const int64_t before_last = (length - 1) / lanes * lanes;
  for (int64_t i = 0; i < before_last; i += lanes) {
    HWY_UNROLL(4)
    for (size_t r = 0; r < kRows; ++r) {
      const auto values = hn::LoadU(d, row + static_cast<int64_t>(r) * step + i);
      totals[r] = hn::Add(totals[r], hn::SumsOf8(hn::Xor(values, flips)));
    }
  }
  HWY_UNROLL(4)
  for (size_t r = 0; r < kRows; ++r) sums[r] = FoldedToPair(dw, totals[r]);
}

// Four rows at a time, so that their sums are joined together.
template <class D>
HWY_INLINE void AddSumsBy(D d, uint8_t flip, const ByteRows& rows, int64_t length, int32_t* sums) {
  const Pairs pairs;
  const hn::Full128<int32_t> d32;
  const uint8_t* row = rows.values;
  int64_t i = 0;
  for (; i + 4 <= rows.count; i += 4, row += 4 * rows.step) {
    hn::Vec<Pairs> of[4];
    SumRows<4>(d, row, rows.step, length, flip, of);
    const auto low =
        hn::Add(hn::InterleaveLower(pairs, of[0], of[1]), hn::InterleaveUpper(pairs, of[0], of[1]));
    const auto high =
        hn::Add(hn::InterleaveLower(pairs, of[2], of[3]), hn::InterleaveUpper(pairs, of[2], of[3]));
    const auto all = hn::ConcatEven(d32, hn::BitCast(d32, high), hn::BitCast(d32, low));
    hn::StoreU(hn::Add(hn::LoadU(d32, sums + i), all), d32, sums + i);
  }
  for (; i < rows.count; ++i, row += rows.step) {
    hn::Vec<Pairs> of;
    SumRows<1>(d, row, rows.step, length, flip, &of);
    sums[i] += static_cast<int32_t>(hn::GetLane(hn::SumOfLanes(pairs, of)));
  }
}

// In the widest vectors that a row fills.
void AddSums(uint8_t flip, const ByteRows& rows, int64_t length, int32_t* sums) {
  const hn::ScalableTag<uint8_t> widest;
  const hn::CappedTag<uint8_t, 32> wide;
  const hn::FixedTag<uint8_t, 16> narrow;
  if (length >= static_cast<int64_t>(hn::Lanes(widest))) {
    return AddSumsBy(widest, flip, rows, length, sums);
  }
  if (length >= static_cast<int64_t>(hn::Lanes(wide))) {
    return AddSumsBy(wide, flip, rows, length, sums);
  }
  AddSumsBy(narrow, flip, rows, length, sums);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

void AddByteSums(Isa isa, uint8_t flip, const ByteRows& rows, int64_t length, int32_t* sums) {
  constexpr auto kSums = FUSELITE_SIMD_TABLE(AddSums);
  if (auto* const vectors = kSums.For(isa)) return vectors(flip, rows, length, sums);
  for (int64_t row = 0; row < rows.count; ++row) {
    const uint8_t* const values = rows.values + row * rows.step;
    for (int64_t i = 0; i < length; ++i) sums[row] += values[i] ^ flip;
  }
}

}  // namespace fuselite::kernels
#endif  // HWY_ONCE
