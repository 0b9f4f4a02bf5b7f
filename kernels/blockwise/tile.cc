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

// The scales of a block's units.
template <bool kHalf>
HWY_INLINE hn::Vec<DF> ScalesOf(const BlockwiseTile& t, int64_t block) {
  const DF d;
  const std::byte* const at = t.scales + block * t.scales_step;
  if constexpr (kHalf) {
    const hn::Rebind<hwy::float16_t, DF> half;
    return hn::PromoteTo(d, hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(at)));
  } else {
    return hn::LoadU(d, reinterpret_cast<const float*>(at));
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

// `sums` are those of all blocks, each times its scale.
template <int kRows>
HWY_INLINE void StoreRows(const BlockwiseTile& t, const hn::Vec<DF>* sums) {
  const DF d;
  const auto per_offset = hn::LoadU(d, reinterpret_cast<const float*>(t.per_offset));
  HWY_UNROLL(4)
  for (int r = 0; r < kRows; ++r) {
    const auto sum = hn::NegMulAdd(hn::Set(d, t.rows[r].offset), per_offset, sums[r]);
    StoreRow(t, r, hn::Mul(sum, hn::Set(d, t.rows[r].scale)));
  }
}

// Stores rows of the only block, whose sums have not met their scales yet.
template <int kRows>
HWY_INLINE void StoreExactRows(const BlockwiseTile& t, const hn::Vec<D32>* sums,
                               const hn::Vec<DF>& scales) {
  const DF d;
  const D32 d32;
  const auto per_offset = hn::LoadU(d32, reinterpret_cast<const int32_t*>(t.per_offset));
  HWY_UNROLL(4)
  for (int r = 0; r < kRows; ++r) {
    const auto offset = hn::Set(d32, static_cast<int32_t>(t.rows[r].offset));
    const auto sum = hn::Sub(sums[r], hn::Mul(offset, per_offset));
    StoreRow(t, r, hn::Mul(hn::ConvertTo(d, sum), hn::Mul(hn::Set(d, t.rows[r].scale), scales)));
  }
}

// How the integer sums of a block come about with weights of 4 bits: kBlockwiseStep of the depth at
// a time, whose pairs of products fit 16 bits.
struct Weights4 {
  static constexpr int64_t kStep = kBlockwiseStep;
  static int32_t Start(const BlockwiseRow& row, int64_t block) { return row.sums[block]; }

  // Depth [at, at + kStep); gives where the next weights are.
  template <int kRows>
  HWY_INLINE static const std::byte* Add(const BlockwiseTile& t, int64_t at,
                                         const std::byte* weights, hn::Vec<D32>* sums) {
    const D16 d16;
    const D8 d8;
    const DU8 du8;
    const auto low = hn::Set(du8, 15);
    hn::Vec<D16> partial[kRows];
    HWY_UNROLL(4)
    for (int r = 0; r < kRows; ++r) partial[r] = hn::Zero(d16);
    HWY_UNROLL(4)
    for (int64_t i = 0; i < kStep; i += 8, weights += hn::Lanes(du8)) {
      const auto both = hn::LoadU(du8, reinterpret_cast<const uint8_t*>(weights));
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
    for (int r = 0; r < kRows; ++r) sums[r] = hn::Add(sums[r], PairSums(partial[r]));
    return weights;
  }
};

// As Weights4, with weights of 8 bits, which meet values of 16.
struct Weights8 {
  static constexpr int64_t kStep = 8;
  static int32_t Start(const BlockwiseRow& /*row*/, int64_t /*block*/) { return 0; }

  template <int kRows>
  HWY_INLINE static const std::byte* Add(const BlockwiseTile& t, int64_t at,
                                         const std::byte* weights, hn::Vec<D32>* sums) {
    const D16 d16;
    const hn::Rebind<int8_t, D16> narrow;
    HWY_UNROLL(4)
    for (int64_t i = 0; i < kStep; i += 2, weights += hn::Lanes(narrow)) {
      const auto w =
          hn::PromoteTo(d16, hn::LoadU(narrow, reinterpret_cast<const int8_t*>(weights)));
      HWY_UNROLL(4)
      for (int r = 0; r < kRows; ++r) {
        const auto x = hn::BitCast(d16, Broadcast32(t.rows[r].values + 2 * (at + i)));
        sums[r] = hn::Add(sums[r], PairDots(w, x));
      }
    }
    return weights;
  }
};

template <class Weights, bool kHalf, int kRows>
HWY_INLINE void Run(const BlockwiseTile& t) {
  const DF d;
  hn::Vec<DF> sums[kRows];
  HWY_UNROLL(4)
  for (int r = 0; r < kRows; ++r) sums[r] = hn::Zero(d);
  int64_t at = 0;
  for (int64_t block = 0; block < t.blocks; ++block) {
    hn::Vec<D32> of_block[kRows];
    HWY_UNROLL(4)
    for (int r = 0; r < kRows; ++r) {
      of_block[r] = hn::Set(D32(), Weights::Start(t.rows[r], block));
    }
    const std::byte* weights = t.weights + block * t.weights_step;
    for (const int64_t end = at + t.block_size; at < end; at += Weights::kStep) {
      weights = Weights::template Add<kRows>(t, at, weights, of_block);
    }
    const auto scales = ScalesOf<kHalf>(t, block);
    if (t.exact) return StoreExactRows<kRows>(t, of_block, scales);
    HWY_UNROLL(4)
    for (int r = 0; r < kRows; ++r) {
      sums[r] = hn::MulAdd(scales, hn::ConvertTo(d, of_block[r]), sums[r]);
    }
  }
  StoreRows<kRows>(t, sums);
}

template <class Weights, bool kHalf>
void RunTile(const BlockwiseTile& t) {
  switch (t.row_count) {
    case 1: return Run<Weights, kHalf, 1>(t);
    case 2: return Run<Weights, kHalf, 2>(t);
    case 3: return Run<Weights, kHalf, 3>(t);
    default: return Run<Weights, kHalf, 4>(t);
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

constexpr BlockwiseFunctions kBlockwise = {
    .lanes = hn::MaxLanes(DF()),
    .tiles = {{{RunTile<Weights4, true>, 4}, {RunTile<Weights4, false>, 4}},
              {{RunTile<Weights8, true>, 4}, {RunTile<Weights8, false>, 4}}},
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
