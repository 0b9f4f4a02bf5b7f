// The vector code of products with weights in blocks: units lie in the lanes, the row's values are
// broadcast four at a time, and weights go from packed halves of bytes to products without a copy.
#include "kernels/blockwise/tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/blockwise/tile.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstring>

#include "kernels/simd.h"
#include "kernels/simd_math/byte_products-inl.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using D32 = hn::RebindToSigned<DF>;
using D16 = hn::Repartition<int16_t, DF>;
using D8 = hn::Repartition<int8_t, DF>;
using DU8 = hn::Repartition<uint8_t, DF>;

// The scales of a block's units; moves on behind them.
template <bool kHalf>
HWY_INLINE hn::Vec<DF> NextScales(const std::byte*& panel) {
  const DF d;
  if constexpr (kHalf) {
    const hn::Rebind<hwy::float16_t, DF> half;
    const auto scales = hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(panel));
    panel += hn::Lanes(d) * sizeof(uint16_t);
    return hn::PromoteTo(d, scales);
  } else {
    const auto scales = hn::LoadU(d, reinterpret_cast<const float*>(panel));
    panel += hn::Lanes(d) * sizeof(float);
    return scales;
  }
}

// Four bytes, in every 32 bits.
HWY_INLINE hn::Vec<D32> Broadcast32(const std::byte* from) {
  int32_t value;
  std::memcpy(&value, from, sizeof(value));
  return hn::Set(D32(), value);
}

HWY_INLINE void StoreRow(const BlockwiseTile& t, int r, hn::Vec<DF> y) {
  const DF d;
  const auto units = static_cast<size_t>(t.units);
  if (t.bias != nullptr) y = hn::Add(y, LoadUpTo(d, t.bias, units));
  // A NaN stays one, whichever operand the target's minimum and maximum prefer.
  const auto cut = hn::Min(hn::Max(y, hn::Set(d, t.min)), hn::Set(d, t.max));
  StoreUpTo(hn::IfThenElse(hn::IsNaN(y), y, cut), d, t.out + r * t.out_pitch, units);
}

// `sums` are those of all blocks, each times its scale; `panel` is behind the last of them.
template <int kRows>
HWY_INLINE void StoreRows(const BlockwiseTile& t, const hn::Vec<DF>* sums, const std::byte* panel) {
  const DF d;
  const auto per_offset = hn::LoadU(d, reinterpret_cast<const float*>(panel));
  HWY_UNROLL(4)
  for (int r = 0; r < kRows; ++r) {
    const auto sum = hn::NegMulAdd(hn::Set(d, t.rows[r].offset), per_offset, sums[r]);
    StoreRow(t, r, hn::Mul(sum, hn::Set(d, t.rows[r].scale)));
  }
}

// The same of the only block, whose sums have not met their scales yet.
template <int kRows>
HWY_INLINE void StoreExactRows(const BlockwiseTile& t, const hn::Vec<D32>* sums,
                               const hn::Vec<DF>& scales, const std::byte* panel) {
  const DF d;
  const D32 d32;
  const auto per_offset = hn::LoadU(d32, reinterpret_cast<const int32_t*>(panel));
  HWY_UNROLL(4)
  for (int r = 0; r < kRows; ++r) {
    const auto offset = hn::Set(d32, static_cast<int32_t>(t.rows[r].offset));
    const auto sum = hn::Sub(sums[r], hn::Mul(offset, per_offset));
    StoreRow(t, r, hn::Mul(hn::ConvertTo(d, sum), hn::Mul(hn::Set(d, t.rows[r].scale), scales)));
  }
}

template <int kRows, bool kHalf>
HWY_INLINE void Run4Bits(const BlockwiseTile& t) {
  const DF d;
  const D16 d16;
  const D8 d8;
  const DU8 du8;
  const auto low = hn::Set(du8, 15);
  const auto bytes = static_cast<int64_t>(hn::Lanes(du8));
  const std::byte* panel = t.panel;
  hn::Vec<DF> sums[kRows];
  HWY_UNROLL(4)
  for (int r = 0; r < kRows; ++r) sums[r] = hn::Zero(d);
  int64_t at = 0;
  for (int64_t block = 0; block < t.blocks; ++block) {
    const auto scales = NextScales<kHalf>(panel);
    hn::Vec<D32> of_block[kRows];
    HWY_UNROLL(4)
    for (int r = 0; r < kRows; ++r) of_block[r] = hn::Set(D32(), t.rows[r].sums[block]);
    for (int64_t end = at + t.block_size; at < end; at += kBlockwiseStep) {
      hn::Vec<D16> partial[kRows];
      HWY_UNROLL(4)
      for (int r = 0; r < kRows; ++r) partial[r] = hn::Zero(d16);
      HWY_UNROLL(4)
      for (int64_t i = 0; i < kBlockwiseStep; i += 8, panel += bytes) {
        const auto both = hn::LoadU(du8, reinterpret_cast<const uint8_t*>(panel));
        const auto w0 = hn::And(both, low);
        const auto w1 = hn::And(
            hn::BitCast(du8, hn::ShiftRight<4>(hn::BitCast(hn::RepartitionToWide<DU8>(), both))),
            low);
        HWY_UNROLL(4)
        for (int r = 0; r < kRows; ++r) {
          const std::byte* const x = t.rows[r].values + at + i;
          const auto p0 = PairProducts(w0, hn::BitCast(d8, Broadcast32(x)));
          const auto p1 = PairProducts(w1, hn::BitCast(d8, Broadcast32(x + 4)));
          partial[r] = hn::Add(partial[r], hn::Add(p0, p1));
        }
      }
      HWY_UNROLL(4)
      for (int r = 0; r < kRows; ++r) {
        of_block[r] = hn::Add(of_block[r], PairSums(partial[r]));
      }
    }
    if (t.exact) return StoreExactRows<kRows>(t, of_block, scales, panel);
    HWY_UNROLL(4)
    for (int r = 0; r < kRows; ++r) {
      sums[r] = hn::MulAdd(scales, hn::ConvertTo(d, of_block[r]), sums[r]);
    }
  }
  StoreRows<kRows>(t, sums, panel);
}

template <int kRows, bool kHalf>
HWY_INLINE void Run8Bits(const BlockwiseTile& t) {
  const DF d;
  const D16 d16;
  const hn::Rebind<int8_t, D16> narrow;
  const auto bytes = static_cast<int64_t>(hn::Lanes(narrow));
  const std::byte* panel = t.panel;
  hn::Vec<DF> sums[kRows];
  HWY_UNROLL(4)
  for (int r = 0; r < kRows; ++r) sums[r] = hn::Zero(d);
  int64_t at = 0;
  for (int64_t block = 0; block < t.blocks; ++block) {
    const auto scales = NextScales<kHalf>(panel);
    hn::Vec<D32> of_block[kRows];
    HWY_UNROLL(4)
    for (int r = 0; r < kRows; ++r) of_block[r] = hn::Zero(D32());
    for (int64_t end = at + t.block_size; at < end; at += 8) {
      HWY_UNROLL(4)
      for (int64_t i = 0; i < 8; i += 2, panel += bytes) {
        const auto w =
            hn::PromoteTo(d16, hn::LoadU(narrow, reinterpret_cast<const int8_t*>(panel)));
        HWY_UNROLL(4)
        for (int r = 0; r < kRows; ++r) {
          const auto x = hn::BitCast(d16, Broadcast32(t.rows[r].values + 2 * (at + i)));
          of_block[r] = hn::Add(of_block[r], PairDots(w, x));
        }
      }
    }
    if (t.exact) return StoreExactRows<kRows>(t, of_block, scales, panel);
    HWY_UNROLL(4)
    for (int r = 0; r < kRows; ++r) {
      sums[r] = hn::MulAdd(scales, hn::ConvertTo(d, of_block[r]), sums[r]);
    }
  }
  StoreRows<kRows>(t, sums, panel);
}

template <bool kHalf>
void RunTile4(const BlockwiseTile& t) {
  switch (t.row_count) {
    case 1: return Run4Bits<1, kHalf>(t);
    case 2: return Run4Bits<2, kHalf>(t);
    case 3: return Run4Bits<3, kHalf>(t);
    default: return Run4Bits<4, kHalf>(t);
  }
}

template <bool kHalf>
void RunTile8(const BlockwiseTile& t) {
  switch (t.row_count) {
    case 1: return Run8Bits<1, kHalf>(t);
    case 2: return Run8Bits<2, kHalf>(t);
    case 3: return Run8Bits<3, kHalf>(t);
    default: return Run8Bits<4, kHalf>(t);
  }
}

void SignBytes(uint8_t* values, int64_t blocks, int64_t block_size, int32_t* sums) {
  const hn::CappedTag<uint8_t, kBlockwiseStep> d;
  const hn::Repartition<uint64_t, decltype(d)> d64;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto sign = hn::Set(d, 0x80);
  for (int64_t block = 0; block < blocks; ++block) {
    auto sum = hn::Zero(d64);
    for (int64_t i = 0; i < block_size; i += lanes, values += lanes) {
      const auto v = hn::LoadU(d, values);
      sum = hn::Add(sum, hn::SumsOf8(v));
      hn::StoreU(hn::Xor(v, sign), d, values);
    }
    const auto total = static_cast<int64_t>(hn::GetLane(hn::SumOfLanes(d64, sum)));
    sums[block] = static_cast<int32_t>(-8 * (total - 128 * block_size));
  }
}

constexpr BlockwiseFunctions kBlockwise = {.lanes = hn::MaxLanes(DF()),
                                           .tiles = {{{RunTile4<true>, 4}, {RunTile4<false>, 4}},
                                                     {{RunTile8<true>, 4}, {RunTile8<false>, 4}}},
                                           .sign_bytes = SignBytes};

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

const BlockwiseFunctions* FindBlockwise(Isa isa) {
  static constexpr auto kTable = FUSELITE_SIMD_TABLE(kBlockwise);
#if defined(__x86_64__)
  static const BlockwiseFunctions kDotProducts = WithDotProducts(*kTable.For(Isa::kAvx512));
  if (isa.has(Feature::kAvx512Vnni)) return &kDotProducts;
#endif
  return kTable.For(isa);
}

}  // namespace fuselite::kernels
#endif
