// The index of the largest of each of many short rows of bytes: eight rows at a time in each block
// of 128 bits. A value and its index make a 16-bit key, the value above, so that the largest key
// has the first index of the largest value: indices count down. The keys of a row are folded into
// one block, and eight of these together.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_ARG_MAX_BYTE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_ARG_MAX_BYTE_ROWS_INL_H_
#undef FUSELITE_KERNELS_ARG_MAX_BYTE_ROWS_INL_H_
#else
#define FUSELITE_KERNELS_ARG_MAX_BYTE_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>

#include "kernels/arg_max/arg_max.h"
#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// How a row is read.
enum class ByteRowKind : uint8_t {
  kEight,      // fewer than 8 bytes, with what follows
  kTwoHalves,  // 8 to 15: the first and the last 8
  kOne,        // 16
  kTwo,        // up to 32: the first and the last 16
  kMany,       // 16 at a time, the last ones of the row
};

// Rows of `size` bytes, one behind the other. What is compared as int8 is each byte XORed with
// `flip`.
template <class D8, ByteRowKind kKind>
class ByteRowsOf {
 public:
  static constexpr int64_t kRows = 8 * (hn::MaxLanes(D8()) / 16);  // of a step
  static constexpr int64_t kBehind = 7;  // bytes that may be read behind the last row

  ByteRowsOf(int64_t size, uint8_t flip)
      : size_(size), pieces_(size <= 16 ? 1 : (size + 15) / 16), flip_(flip) {
    for (int64_t p = 0; p < pieces_; ++p) {
      for (size_t lane = 0; lane < hn::MaxLanes(D8()); ++lane) {
        const int64_t i = static_cast<int64_t>(lane) % 16;
        const bool last_half = kKind == ByteRowKind::kTwoHalves && i >= 8;
        indices_[p][lane] =
            static_cast<uint8_t>(255 - (last_half ? size - 16 + i : PieceAt(p) + i));
      }
    }
  }

  // The indices of the largest of kRows rows, in 16 bits each.
  HWY_INLINE auto Largest(const uint8_t* rows) const {
    const hn::RepartitionToWide<D8> du;
    const auto best = hn::BitCast(du, Fold<uint64_t>(FourRows(rows), FourRows(rows + 4 * size_)));
    return hn::AndNot(best, hn::Set(du, 0xFF));
  }

 private:
  using DKey = hn::Repartition<int16_t, D8>;
  using Keys = hn::Vec<DKey>;

  // The last of several pieces ends with the row, overlapping the one before.
  int64_t PieceAt(int64_t p) const { return HWY_MAX(int64_t{0}, HWY_MIN(16 * p, size_ - 16)); }

  HWY_INLINE Keys FourRows(const uint8_t* rows) const {
    return Fold<uint32_t>(Fold<uint16_t>(RowKeys(rows), RowKeys(rows + size_)),
                          Fold<uint16_t>(RowKeys(rows + 2 * size_), RowKeys(rows + 3 * size_)));
  }

  // One row in each block, eight rows apart.
  HWY_INLINE Keys RowKeys(const uint8_t* row) const {
    if constexpr (kKind == ByteRowKind::kEight) {
      // The lanes behind the row's have the key of none.
      const auto lane = hn::And(hn::Iota(DKey(), 0), hn::Set(DKey(), 7));
      const auto inside = hn::Lt(lane, hn::Set(DKey(), static_cast<int16_t>(size_)));
      const auto none = hn::Set(DKey(), hwy::LowestValue<int16_t>());
      return hn::IfThenElse(inside, LowerKeys(0, Pieces(D8(), row)), none);
    }
    Keys keys = PieceKeys(0, Pieces(D8(), row));
    if constexpr (kKind == ByteRowKind::kTwo) {
      return hn::Max(keys, PieceKeys(1, Pieces(D8(), row + size_ - 16)));
    }
    if constexpr (kKind == ByteRowKind::kMany) {
      for (int64_t p = 1; p < pieces_; ++p) {
        keys = hn::Max(keys, PieceKeys(p, Pieces(D8(), row + PieceAt(p))));
      }
    }
    return keys;
  }

  // The bytes from `at` on, and so on in each block.
  template <class D>
  HWY_INLINE hn::Vec<D> Pieces(D d, const uint8_t* at) const {
    const hn::Half<D> half;
    if constexpr (hn::MaxLanes(D()) > 16) {
      const uint8_t* const upper = at + size_ * 8 * (hn::MaxLanes(half) / 16);
      return hn::Combine(d, Pieces(half, upper), Pieces(half, at));
    } else if constexpr (kKind == ByteRowKind::kEight) {
      return hn::Combine(d, hn::Zero(half), hn::LoadU(half, at));
    } else if constexpr (kKind == ByteRowKind::kTwoHalves) {
      return hn::Combine(d, hn::LoadU(half, at + size_ - 8), hn::LoadU(half, at));
    } else {
      return hn::LoadU(d, at);
    }
  }

  HWY_INLINE Keys LowerKeys(int64_t p, hn::Vec<D8> values) const {
    const auto flipped = hn::Xor(values, hn::Set(D8(), flip_));
    return hn::BitCast(DKey(), hn::InterleaveLower(D8(), hn::Load(D8(), indices_[p]), flipped));
  }
  HWY_INLINE Keys PieceKeys(int64_t p, hn::Vec<D8> values) const {
    const auto flipped = hn::Xor(values, hn::Set(D8(), flip_));
    const auto indices = hn::Load(D8(), indices_[p]);
    return hn::Max(hn::BitCast(DKey(), hn::InterleaveLower(D8(), indices, flipped)),
                   hn::BitCast(DKey(), hn::InterleaveUpper(D8(), indices, flipped)));
  }

  // The halves of `a` and `b` folded, lanes of `Wide` by turns.
  template <class Wide>
  static HWY_INLINE Keys Fold(Keys a, Keys b) {
    const hn::Repartition<Wide, D8> d;
    const auto x = hn::BitCast(d, a), y = hn::BitCast(d, b);
    return hn::Max(hn::BitCast(DKey(), hn::InterleaveLower(d, x, y)),
                   hn::BitCast(DKey(), hn::InterleaveUpper(d, x, y)));
  }

  int64_t size_, pieces_;
  uint8_t flip_;
  HWY_ALIGN uint8_t indices_[kMaxByteRow / 16][hn::MaxLanes(D8())];
};

// Whole steps of the rows. Returns how many rows these have.
template <class D8, ByteRowKind kKind>
int64_t ArgByteRowSteps(const uint8_t* from, int64_t readable, int64_t rows, int64_t size,
                        uint8_t flip, ArgOutput out) {
  using Rows = ByteRowsOf<D8, kKind>;
  constexpr int64_t kRows = Rows::kRows;
  const auto fits = [&](int64_t row) {
    return row + kRows <= rows && (row + kRows) * size + Rows::kBehind <= readable;
  };
  if (!fits(0)) return 0;
  const Rows plan(size, flip);
  const hn::RepartitionToWide<D8> du;
  const hn::Rebind<int32_t, hn::Half<decltype(du)>> di;
  HWY_ALIGN uint16_t found[kRows];
  int64_t row = 0;
  for (; fits(row); row += kRows) {
    const auto index = plan.Largest(from + row * size);
    if (out.wide) {
      hn::Store(index, du, found);
      for (int64_t i = 0; i < kRows; ++i) out.Set(row + i, found[i]);
      continue;
    }
    auto* const to = static_cast<int32_t*>(out.data) + row;
    hn::StoreU(hn::PromoteTo(di, hn::LowerHalf(index)), di, to);
    hn::StoreU(hn::PromoteTo(di, hn::UpperHalf(hn::Half<decltype(du)>(), index)), di,
               to + kRows / 2);
  }
  return row;
}

// The steps of the widest vectors, then of narrow ones, the last of which reads a copy.
template <ByteRowKind kKind>
void ArgByteRowsOf(const uint8_t* from, int64_t readable, int64_t rows, int64_t size, uint8_t flip,
                   ArgOutput out) {
  using D16 = hn::FixedTag<uint8_t, 16>;
  int64_t row =
      ArgByteRowSteps<hn::ScalableTag<uint8_t>, kKind>(from, readable, rows, size, flip, out);
  row += ArgByteRowSteps<D16, kKind>(from + row * size, readable - row * size, rows - row, size,
                                     flip, out.From(row));
  using Rows = ByteRowsOf<D16, kKind>;
  uint8_t copy[Rows::kRows * kMaxByteRow + Rows::kBehind];
  HWY_ALIGN uint16_t found[Rows::kRows];
  while (row < rows) {
    const int64_t count = HWY_MIN(rows - row, Rows::kRows);
    std::memcpy(copy, from + row * size, count * size);
    hn::Store(Rows(size, flip).Largest(copy), hn::RepartitionToWide<D16>(), found);
    for (int64_t i = 0; i < count; ++i) out.Set(row + i, found[i]);
    row += count;
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
