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

// Sixteen bytes of four rows each, from value `first` on, four bytes of all rows at a time.
HWY_INLINE void PackSquare(const ByteGroups& form, const uint8_t* const* rows, int64_t first,
                           std::byte* to, int64_t step) {
  const Groups d;
  const hn::Full128<uint64_t> pairs;
  const auto a = LoadGroups(form, rows[0] + first), b = LoadGroups(form, rows[1] + first);
  const auto c = LoadGroups(form, rows[2] + first), e = LoadGroups(form, rows[3] + first);
  const auto ab01 = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
  const auto ab23 = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
  const auto ce01 = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
  const auto ce23 = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
  const auto store = [&](auto bytes, int64_t at) HWY_ATTR {
    if (form.shape != ByteGroups::kPairs) {
      hn::Store(bytes, pairs, reinterpret_cast<uint64_t*>(to + at * step));
      return;
    }
    const hn::Full128<uint16_t> d16;
    const hn::Half<decltype(d16)> half;
    const auto both = hn::BitCast(d16, bytes);
    auto* const even = reinterpret_cast<uint16_t*>(to + 2 * at * step);
    auto* const odd = reinterpret_cast<uint16_t*>(to + (2 * at + 1) * step);
    hn::Store(hn::LowerHalf(half, hn::ConcatEven(d16, both, both)), half, even);
    hn::Store(hn::LowerHalf(half, hn::ConcatOdd(d16, both, both)), half, odd);
  };
  store(hn::InterleaveLower(pairs, ab01, ce01), 0);
  store(hn::InterleaveUpper(pairs, ab01, ce01), 1);
  store(hn::InterleaveLower(pairs, ab23, ce23), 2);
  store(hn::InterleaveUpper(pairs, ab23, ce23), 3);
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

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

constexpr auto kPackSquares = FUSELITE_SIMD_TABLE(PackSquares);
constexpr auto kPackColumns = FUSELITE_SIMD_TABLE(PackAllColumns);

void PackColumnsOneByOne(uint8_t flip, const ByteColumns& columns, int64_t depth,
                         std::span<const int64_t> places, std::byte* to, int64_t step,
                         int32_t* sums) {
  for (int64_t k = 0; k < depth + 3 - (depth + 3) % 4; ++k) {
    std::byte* const group = to + k / 4 * step;
    for (int64_t i = 0; i < 4 * static_cast<int64_t>(places.size()); ++i) {
      const bool absent = k >= depth || i >= columns.count;
      const auto value =
          absent ? int8_t{} : static_cast<int8_t>(columns.values[k * columns.k_step + i] ^ flip);
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
  auto* const pack = vectors != nullptr ? vectors : &PackColumnsOneByOne;
  pack(flip, columns, depth, places, to, step, sums);
}

}  // namespace fuselite::kernels
#endif  // HWY_ONCE
