#include "kernels/product/byte_groups.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/product/byte_groups.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Vectors of 16 bytes on every target: packing waits for memory.
using Bytes = hn::Full128<uint8_t>;
using Groups = hn::Full128<uint32_t>;
using FourGroups = hn::Vec<Groups>;

HWY_INLINE FourGroups LoadGroups(const ByteGroups& form, const uint8_t* from) {
  const Bytes d;
  if (form.shape != ByteGroups::kWidePairs) {
    return hn::BitCast(Groups(), hn::Xor(hn::LoadU(d, from), hn::Set(d, form.flip)));
  }
  const hn::Half<Bytes> half;
  const hn::Full128<int16_t> d16;
  const auto values = hn::Xor(hn::LoadU(half, from), hn::Set(half, form.flip));
  const auto wide = hn::PromoteTo(d16, hn::BitCast(hn::RebindToSigned<hn::Half<Bytes>>(), values));
  return hn::BitCast(Groups(), hn::Sub(wide, hn::Set(d16, static_cast<int16_t>(form.offset))));
}

// Four groups of each of four rows as the first group of all of them, the second, ...
HWY_INLINE void TransposeGroups(FourGroups a, FourGroups b, FourGroups c, FourGroups e,
                                FourGroups* groups) {
  const Groups d;
  const hn::Full128<uint64_t> pairs;
  const auto ab01 = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
  const auto ab23 = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
  const auto ce01 = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
  const auto ce23 = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
  groups[0] = hn::BitCast(d, hn::InterleaveLower(pairs, ab01, ce01));
  groups[1] = hn::BitCast(d, hn::InterleaveUpper(pairs, ab01, ce01));
  groups[2] = hn::BitCast(d, hn::InterleaveLower(pairs, ab23, ce23));
  groups[3] = hn::BitCast(d, hn::InterleaveUpper(pairs, ab23, ce23));
}

// Sixteen bytes of four rows each, from value `first` on, four bytes of all rows at a time.
HWY_INLINE void PackSquare(const ByteGroups& form, const uint8_t* const* rows, int64_t first,
                           std::byte* to, int64_t step) {
  const Groups d;
  FourGroups groups[4];
  TransposeGroups(LoadGroups(form, rows[0] + first), LoadGroups(form, rows[1] + first),
                  LoadGroups(form, rows[2] + first), LoadGroups(form, rows[3] + first), groups);
#pragma GCC unroll 4
  for (int64_t at = 0; at < 4; ++at) {
    if (form.shape != ByteGroups::kPairs) {
      hn::Store(groups[at], d, reinterpret_cast<uint32_t*>(to + at * step));
      continue;
    }
    const hn::Full128<uint16_t> d16;
    const hn::Half<decltype(d16)> half;
    const auto both = hn::BitCast(d16, groups[at]);
    auto* const even = reinterpret_cast<uint16_t*>(to + 2 * at * step);
    auto* const odd = reinterpret_cast<uint16_t*>(to + (2 * at + 1) * step);
    hn::Store(hn::LowerHalf(half, hn::ConcatEven(d16, both, both)), half, even);
    hn::Store(hn::LowerHalf(half, hn::ConcatOdd(d16, both, both)), half, odd);
  }
}

// As PackGroups, but only the first `count` values, which fill whole squares.
void PackSquares(const ByteGroups& form, std::span<const uint8_t* const> rows, int64_t count,
                 std::byte* to, int64_t step) {
  constexpr int64_t kRows = 4;
  const int64_t groups = form.square_values() / form.values();
  for (int64_t first = 0; first < count; first += form.square_values(), to += groups * step) {
    for (size_t row = 0; row < rows.size(); row += kRows) {
      PackSquare(form, rows.data() + row, first, to + row * form.bytes(), step);
    }
  }
}

// The values of four columns added up, in 16 bits for up to kMostGroups groups.
using Sums = hn::Full128<int32_t>;
using ShortSums = hn::Full128<int16_t>;
constexpr int64_t kMostGroups = 64;

HWY_INLINE hn::Vec<ShortSums> PairSums(hn::Vec<Bytes> quads) {
  const auto pairs = hn::BitCast(ShortSums(), quads);
  return hn::Add(hn::ShiftRight<8>(hn::ShiftLeft<8>(pairs)), hn::ShiftRight<8>(pairs));
}
HWY_INLINE hn::Vec<Sums> QuadSums(hn::Vec<ShortSums> pairs) {
  const auto both = hn::BitCast(Sums(), pairs);
  return hn::Add(hn::ShiftRight<16>(hn::ShiftLeft<16>(both)), hn::ShiftRight<16>(both));
}

// A group of sixteen columns, of which there are four rows.
struct ColumnGroup {
  hn::Vec<Bytes> quads[4];

  HWY_INLINE ColumnGroup(hn::Vec<Bytes> a, hn::Vec<Bytes> b, hn::Vec<Bytes> c, hn::Vec<Bytes> e) {
    const Bytes d;
    const hn::Full128<uint16_t> pairs;
    const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
    const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
    const auto ce_low = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
    const auto ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
    quads[0] = hn::BitCast(d, hn::InterleaveLower(pairs, ab_low, ce_low));
    quads[1] = hn::BitCast(d, hn::InterleaveUpper(pairs, ab_low, ce_low));
    quads[2] = hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ce_high));
    quads[3] = hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ce_high));
  }
};

// PackColumnQuads of up to sixteen columns, whose rows `load` gives.
template <size_t kQuads, class Load>
HWY_INLINE void PackQuads(const ByteColumns& columns, int64_t depth, const int64_t* places,
                          std::byte* to, int64_t step, int32_t* sums, const Load& load) {
  const auto zero = hn::Zero(Bytes());
  const int64_t k_step = columns.k_step;
  const uint8_t* row = columns.values;
  std::byte* out[kQuads];
  for (size_t q = 0; q < kQuads; ++q) out[q] = to + places[q];
  for (int64_t begin = 0; begin < depth; begin += 4 * kMostGroups) {
    hn::Vec<ShortSums> pairs[kQuads];
    for (auto& pair : pairs) pair = hn::Zero(ShortSums());
    const int64_t end = std::min(depth, begin + 4 * kMostGroups);
    for (int64_t k = begin; k < end; k += 4, row += 4 * k_step) {
      const auto row_or_zero = [&](int64_t i) HWY_ATTR {
        if (k + i < depth) return load(row + i * k_step);
        return zero;
      };
      const ColumnGroup group(load(row), row_or_zero(1), row_or_zero(2), row_or_zero(3));
#pragma GCC unroll 4
      for (size_t q = 0; q < kQuads; ++q) {
        hn::Store(group.quads[q], Bytes(), reinterpret_cast<uint8_t*>(out[q]));
        pairs[q] = hn::Add(pairs[q], PairSums(group.quads[q]));
        out[q] += step;
      }
    }
    for (size_t q = 0; q < kQuads; ++q) {
      const auto sum = hn::Add(hn::LoadU(Sums(), sums + 4 * q), QuadSums(pairs[q]));
      hn::StoreU(sum, Sums(), sums + 4 * q);
    }
  }
}

template <size_t kQuads>
void PackColumns(uint8_t flip, const ByteColumns& columns, int64_t depth, const int64_t* places,
                 std::byte* to, int64_t step, int32_t* sums) {
  const Bytes d;
  const auto flips = hn::Set(d, flip);
  const auto count = static_cast<size_t>(columns.count);
  if (count == hn::Lanes(d)) {
    return PackQuads<kQuads>(columns, depth, places, to, step, sums,
                             [=](const uint8_t* row)
                                 HWY_ATTR { return hn::Xor(hn::LoadU(d, row), flips); });
  }
  const auto kept = hn::VecFromMask(d, hn::FirstN(d, count));
  PackQuads<kQuads>(columns, depth, places, to, step, sums, [=](const uint8_t* row) HWY_ATTR {
    return hn::And(kept, hn::Xor(LoadPartial(d, row, count), flips));
  });
}

void PackAllColumns(uint8_t flip, const ByteColumns& columns, int64_t depth,
                    std::span<const int64_t> places, std::byte* to, int64_t step, int32_t* sums) {
  constexpr int64_t kColumns = 16, kQuads = 4;
  const auto quads = static_cast<int64_t>(places.size());
  for (int64_t q = 0; q < quads; q += kQuads, sums += kColumns) {
    const int64_t first = std::min(4 * q, columns.count);
    const ByteColumns some{columns.values + first, columns.k_step,
                           std::min(columns.count - first, kColumns)};
    const auto pack = [&](auto* of_quads)
                          HWY_ATTR { of_quads(flip, some, depth, &places[q], to, step, sums); };
    switch (std::min(quads - q, kQuads)) {
      case 1: pack(&PackColumns<1>); break;
      case 2: pack(&PackColumns<2>); break;
      case 3: pack(&PackColumns<3>); break;
      default: pack(&PackColumns<4>); break;
    }
  }
}

// The bytes of a row in squares of sixteen, flipped, with zeros behind its values.
class RowSquares {
 public:
  RowSquares(uint8_t flip, const ByteRows& rows, int64_t depth)
      : end_(rows.values + (rows.count - 1) * rows.step + depth),
        rest_(static_cast<size_t>(depth % kSquare)),
        flips_(hn::Set(Bytes(), flip)),
        kept_(hn::VecFromMask(Bytes(), hn::FirstN(Bytes(), rest_))) {}
  static constexpr int64_t kSquare = 16;

  HWY_INLINE FourGroups Whole(const uint8_t* from) const {
    return hn::BitCast(Groups(), hn::Xor(hn::LoadU(Bytes(), from), flips_));
  }
  // The last, incomplete square; bytes behind it are read where they belong to another row.
  HWY_INLINE FourGroups Rest(const uint8_t* from) const {
    const Bytes d;
    const auto bytes = end_ - from >= kSquare ? hn::LoadU(d, from) : LoadPartial(d, from, rest_);
    return hn::BitCast(Groups(), hn::And(kept_, hn::Xor(bytes, flips_)));
  }

 private:
  const uint8_t* end_;
  size_t rest_;
  hn::Vec<Bytes> flips_, kept_;
};

// The sums of groups of four rows.
class GroupSums {
 public:
  explicit GroupSums(int32_t* to) : pairs_(hn::Zero(ShortSums())), to_(to) {}
  HWY_INLINE void Add(FourGroups group) {
    pairs_ = hn::Add(pairs_, PairSums(hn::BitCast(Bytes(), group)));
  }
  // After at most kMostGroups of them.
  HWY_INLINE void Flush() {
    hn::StoreU(hn::Add(hn::LoadU(Sums(), to_), QuadSums(pairs_)), Sums(), to_);
    pairs_ = hn::Zero(ShortSums());
  }

 private:
  hn::Vec<ShortSums> pairs_;
  int32_t* to_;
};

// `rows`: four, of which null ones are zeros where there are not `kWhole` ones.
template <bool kWhole>
HWY_INLINE void PackFourRows(const RowSquares& squares, const uint8_t* const* rows, int64_t depth,
                             std::byte* to, int64_t step, int32_t* sums) {
  GroupSums total(sums);
  const auto pack = [&](int64_t k, int64_t count, const auto& load) HWY_ATTR {
    const auto row = [&](int i) HWY_ATTR {
      if (!kWhole && rows[i] == nullptr) return hn::Zero(Groups());
      return load(rows[i] + k);
    };
    FourGroups groups[4];
    TransposeGroups(row(0), row(1), row(2), row(3), groups);
#pragma GCC unroll 4
    for (int64_t g = 0; g < 4; ++g) {
      if (g >= count) break;
      hn::Store(groups[g], Groups(), reinterpret_cast<uint32_t*>(to));
      total.Add(groups[g]);
      to += step;
    }
  };
  const auto whole = [&](const uint8_t* from) HWY_ATTR { return squares.Whole(from); };
  const auto rest = [&](const uint8_t* from) HWY_ATTR { return squares.Rest(from); };
  int64_t k = 0;
  for (; k + RowSquares::kSquare <= depth; k += RowSquares::kSquare) {
    pack(k, 4, whole);
    if (k % (4 * kMostGroups) == 4 * kMostGroups - RowSquares::kSquare) total.Flush();
  }
  if (k < depth) pack(k, (depth - k + 3) / 4, rest);
  total.Flush();
}

void PackAllRows(uint8_t flip, const ByteRows& rows, int64_t depth, std::span<const int64_t> places,
                 std::byte* to, int64_t step, int32_t* sums) {
  const RowSquares squares(flip, rows, depth);
  for (size_t q = 0; q < places.size(); ++q, sums += 4) {
    const auto first = static_cast<int64_t>(4 * q);
    const uint8_t* of_quad[4];
    for (int64_t i = 0; i < 4; ++i) {
      const bool absent = first + i >= rows.count;
      of_quad[i] = absent ? nullptr : rows.values + (first + i) * rows.step;
    }
    if (first + 4 <= rows.count) {
      PackFourRows<true>(squares, of_quad, depth, to + places[q], step, sums);
    } else {
      PackFourRows<false>(squares, of_quad, depth, to + places[q], step, sums);
    }
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

constexpr auto kPackSquares = FUSELITE_SIMD_TABLE(PackSquares);
constexpr auto kPackColumns = FUSELITE_SIMD_TABLE(PackAllColumns);
constexpr auto kPackRows = FUSELITE_SIMD_TABLE(PackAllRows);

// Value k of row or column i is values[k * k_step + i * step].
struct ByteMatrix {
  const uint8_t* values;
  int64_t k_step, step, count;
};

void PackOneByOne(uint8_t flip, const ByteMatrix& matrix, int64_t depth,
                  std::span<const int64_t> places, std::byte* to, int64_t step, int32_t* sums) {
  for (int64_t k = 0; k < depth + 3 - (depth + 3) % 4; ++k) {
    std::byte* const group = to + k / 4 * step;
    for (int64_t i = 0; i < 4 * static_cast<int64_t>(places.size()); ++i) {
      int8_t value = 0;
      if (k < depth && i < matrix.count) {
        value = static_cast<int8_t>(matrix.values[k * matrix.k_step + i * matrix.step] ^ flip);
      }
      group[places[i / 4] + i % 4 * 4 + k % 4] = static_cast<std::byte>(value);
      sums[i] += value;
    }
  }
}

// The values [first, count) of one row.
void PackRest(const ByteGroups& form, const uint8_t* row, int64_t first, int64_t count,
              std::byte* to, int64_t step) {
  for (; first < count; first += form.values(), to += step) {
    std::byte group[4] = {};
    const int64_t values = std::min<int64_t>(form.values(), count - first);
    for (int64_t i = 0; i < values; ++i) {
      const auto value = static_cast<int8_t>(row[first + i] ^ form.flip);
      if (form.shape == ByteGroups::kWidePairs) {
        const auto wide = static_cast<int16_t>(value - form.offset);
        std::memcpy(group + i * sizeof(wide), &wide, sizeof(wide));
      } else {
        group[i] = static_cast<std::byte>(value);
      }
    }
    std::memcpy(to, group, form.bytes());
  }
}

using PackSquaresFunction = void(const ByteGroups& form, std::span<const uint8_t* const> rows,
                                 int64_t count, std::byte* to, int64_t step);

constexpr size_t kMostSquareRows = 16;

// The values behind the last square of up to `kMostSquareRows` rows, filled up to one more with
// what becomes zero.
void PackLastSquare(PackSquaresFunction* pack_squares, const ByteGroups& form,
                    std::span<const uint8_t* const> rows, int64_t first, int64_t count,
                    std::byte* to, int64_t step) {
  constexpr size_t kMostValues = 16, kMostGroups = 8, kMostBytes = 64;
  const auto zero = static_cast<uint8_t>(static_cast<uint8_t>(form.offset) ^ form.flip);
  uint8_t values[kMostSquareRows][kMostValues];
  const uint8_t* filled[kMostSquareRows];
  for (size_t row = 0; row < rows.size(); ++row) {
    std::fill_n(values[row], kMostValues, zero);
    std::copy_n(rows[row] + first, count - first, values[row]);
    filled[row] = values[row];
  }
  alignas(16) std::byte square[kMostGroups * kMostBytes];
  pack_squares(form, std::span(filled).first(rows.size()), form.square_values(), square,
               kMostBytes);
  const std::byte* group = square;
  for (; first < count; first += form.values(), group += kMostBytes, to += step) {
    std::memcpy(to, group, rows.size() * form.bytes());
  }
}

}  // namespace

void PackGroups(Isa isa, const ByteGroups& form, std::span<const uint8_t* const> rows,
                int64_t count, std::byte* to, int64_t step) {
  int64_t packed = 0;
  auto* const pack_squares = kPackSquares.For(isa);
  if (pack_squares != nullptr) {
    packed = count / form.square_values() * form.square_values();
    pack_squares(form, rows, packed, to, step);
  }
  if (packed == count) return;
  std::byte* rest = to + packed / form.values() * step;
  const bool has_zero = form.offset == static_cast<int8_t>(form.offset);
  if (pack_squares != nullptr && has_zero && rows.size() <= kMostSquareRows) {
    return PackLastSquare(pack_squares, form, rows, packed, count, rest, step);
  }
  for (size_t row = 0; row < rows.size(); ++row) {
    PackRest(form, rows[row], packed, count, rest + row * form.bytes(), step);
  }
}

void PackColumnQuads(Isa isa, uint8_t flip, const ByteColumns& columns, int64_t depth,
                     std::span<const int64_t> places, std::byte* to, int64_t step, int32_t* sums) {
  auto* const vectors = kPackColumns.For(isa);
  if (vectors != nullptr) return vectors(flip, columns, depth, places, to, step, sums);
  PackOneByOne(flip, {columns.values, columns.k_step, 1, columns.count}, depth, places, to, step,
               sums);
}

void PackRowQuads(Isa isa, uint8_t flip, const ByteRows& rows, int64_t depth,
                  std::span<const int64_t> places, std::byte* to, int64_t step, int32_t* sums) {
  auto* const vectors = kPackRows.For(isa);
  if (vectors != nullptr) return vectors(flip, rows, depth, places, to, step, sums);
  PackOneByOne(flip, {rows.values, 1, rows.step, rows.count}, depth, places, to, step, sums);
}

}  // namespace fuselite::kernels
#endif  // HWY_ONCE
