// Reductions of bytes along the channels that stay: what vectors of channels sum, or what is the
// largest or smallest of each. `flip` is added to bytes without a carry: 0x80 reads signed ones as
// unsigned.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_REDUCE_BYTE_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_REDUCE_BYTE_COLUMNS_INL_H_
#undef FUSELITE_KERNELS_REDUCE_BYTE_COLUMNS_INL_H_
#else
#define FUSELITE_KERNELS_REDUCE_BYTE_COLUMNS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "kernels/reduce/reduce.h"
#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"
#include "kernels/simd_math/row_bytes-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Sums of 16 bits, of even and of odd lanes, hold this many bytes: 256 * 255 < 2^16.
constexpr int64_t kByteTerms = 256;

using ByteTag = hn::ScalableTag<uint8_t>;
using HalfByteTag = hn::CappedTag<uint8_t, 32>;
using SmallByteTag = hn::FixedTag<uint8_t, 16>;

// Adds sums of 16 bits, of a vector's even and odd bytes, to totals[0 ..] from byte `skip` on.
template <class DW>
HWY_INLINE void AddSums(DW /*dw*/, hn::Vec<DW> even, hn::Vec<DW> odd, size_t skip,
                        uint32_t* totals) {
  const hn::RepartitionToWide<DW> d;
  const size_t lanes = hn::Lanes(d);
  const auto wide_even = hn::BitCast(d, even), wide_odd = hn::BitCast(d, odd);
  const auto low = hn::Set(d, 0xFFFF);
  HWY_ALIGN uint32_t sums[4 * hn::MaxLanes(d)];
  hn::StoreInterleaved4(hn::And(wide_even, low), hn::And(wide_odd, low),
                        hn::ShiftRight<16>(wide_even), hn::ShiftRight<16>(wide_odd), d, sums);
  if (skip == 0) {
    for (size_t i = 0; i < 4 * lanes; i += lanes) {
      hn::StoreU(hn::Add(hn::LoadU(d, totals + i), hn::Load(d, sums + i)), d, totals + i);
    }
  }
  for (size_t i = skip; skip > 0 && i < 4 * lanes; ++i) totals[i] += sums[i];
}

// Adds a vector's lanes of `terms` <= kByteTerms terms, each read by load(pointer), to totals[0
// ..]; the first `skip` lanes are left out.
template <class D, class Load>
HWY_INLINE void AddColumns(D d, const uint8_t* in, int64_t stride, int64_t terms, uint8_t flip,
                           size_t skip, uint32_t* totals, Load load) {
  const hn::Repartition<uint16_t, D> dw;
  const auto low = hn::Set(dw, 0xFF);
  const auto sign = hn::Set(d, flip);
  auto even = hn::Zero(dw), odd = hn::Zero(dw);
  for (int64_t t = 0; t < terms; ++t, in += stride) {
    const auto x = hn::BitCast(dw, hn::Xor(load(in), sign));
    even = hn::Add(even, hn::And(x, low));
    odd = hn::Add(odd, hn::ShiftRight<8>(x));
  }
  AddSums(dw, even, odd, skip, totals);
}

// As AddColumns(), for the maxima or minima.
template <bool kMax, class D, class Load>
HWY_INLINE void ExtremeColumns(D d, const uint8_t* in, int64_t stride, int64_t terms, uint8_t flip,
                               uint8_t* totals, Load load) {
  const auto sign = hn::Set(d, flip);
  auto total = hn::LoadU(d, totals);
  for (int64_t t = 0; t < terms; ++t, in += stride) {
    total = ExtremeOf<kMax>(total, hn::Xor(load(in), sign));
  }
  hn::StoreU(total, d, totals);
}

// f(tag, channel, skip, load) for vectors that cover channels [0, n), of 64, 32 or 16 lanes: the
// last one overlaps its predecessor by `skip` lanes where n is no multiple of 16. Fewer than 16 are
// the first of a vector whose other lanes are anything.
template <class F>
HWY_INLINE void ForColumns(size_t n, F f) {
  const ByteTag d;
  const SmallByteTag small;
  const size_t lanes = hn::Lanes(d);
  const auto load_small = [](const uint8_t* x) HWY_ATTR { return hn::LoadU(SmallByteTag(), x); };
  if (n < 16) {
    return f(small, 0, 0,
             [n](const uint8_t* x) HWY_ATTR { return LoadPartial(SmallByteTag(), x, n); });
  }
  size_t c = 0;
  for (; c + lanes <= n; c += lanes) {
    f(d, c, 0, [](const uint8_t* x) HWY_ATTR { return hn::LoadU(ByteTag(), x); });
  }
  const auto half = static_cast<size_t>(hn::Lanes(HalfByteTag()));
  const auto load_half = [](const uint8_t* x) HWY_ATTR { return hn::LoadU(HalfByteTag(), x); };
  for (; c + half <= n; c += half) f(HalfByteTag(), c, 0, load_half);
  if (c + 16 < n && n >= half) return f(HalfByteTag(), n - half, c + half - n, load_half);
  if (c + 16 <= n) {
    f(small, c, 0, load_small);
    c += 16;
  }
  if (c < n) f(small, n - 16, c + 16 - n, load_small);
}

// Adds the n <= kByteBlock channels of `count` rows to `totals`, of which there are at least 16.
HWY_INLINE void SumRows(const uint8_t* x, int64_t count, int64_t stride, uint8_t flip,
                        uint32_t* totals, size_t n) {
  for (; count > 0; count -= kByteTerms, x += kByteTerms * stride) {
    ForColumns(n, [&](auto d, size_t c, size_t skip, auto load) HWY_ATTR {
      AddColumns(d, x + c, stride, std::min(kByteTerms, count), flip, skip, totals + c, load);
    });
  }
}

template <bool kMax>
HWY_INLINE void ExtremesOfRows(const uint8_t* x, int64_t count, int64_t stride, uint8_t flip,
                               uint8_t* totals, size_t n) {
  ForColumns(n, [&](auto d, size_t c, size_t, auto load) HWY_ATTR {
    ExtremeColumns<kMax>(d, x + c, stride, count, flip, totals + c, load);
  });
}

// Channels that vectors of as many lanes as a line has bytes take alone.
constexpr int64_t kManyColumns = 64, kJoinedColumns = 128;

// How many rows of few channels are taken as one of up to kJoinedColumns: few enough that four such
// rows, where there are as many, repay folding them into one.
HWY_INLINE int64_t RowsTogether(const ReducePlan& plan, int64_t n) {
  const bool dense = plan.lanes == n && plan.run_stride == n;
  if (!dense || n >= kManyColumns) return 1;
  return std::clamp(plan.run_count / 4, (15 + n) / n, kJoinedColumns / n);
}

// All terms: rows(x, count, stride). Where few channels are all of a row, several rows are taken as
// one of more channels: joined(x, count, wide, rest), with the rows that are left completed by
// `neutral` to one more such row, or null where none are left. A row of a few bytes, which vectors
// read by way of a buffer, takes as long as one of a hundred.
template <class Rows, class Joined>
HWY_INLINE void ForRows(const ReducePlan& plan, const uint8_t* in, size_t n, uint8_t neutral,
                        Rows rows, Joined joined) {
  const int64_t together = RowsTogether(plan, static_cast<int64_t>(n));
  const int64_t whole = together > 1 ? plan.run_count / together : 0;
  const int64_t wide = together * static_cast<int64_t>(n);
  for (int64_t run = 0; run < plan.runs; ++run) {
    const uint8_t* x = in + plan.RunOffset(run);
    if (whole == 0) {
      rows(x, plan.run_count, plan.run_stride);
      continue;
    }
    HWY_ALIGN uint8_t rest[kJoinedColumns];
    const int64_t left = plan.run_count * static_cast<int64_t>(n) - whole * wide;
    std::fill(std::copy_n(x + whole * wide, left, rest), rest + wide, neutral);
    joined(x, whole, static_cast<size_t>(wide), left > 0 ? rest : nullptr);
  }
}

// Adds the rows of n sums from `parts` up to `end` to totals[0, n), which stay in a register over
// all of them: through memory each row would wait for the one before. Vectors reach beyond the n
// sums of a row, for which there is room behind the last one and behind the totals.
HWY_INLINE void AddParts(const uint32_t* parts, const uint32_t* end, size_t n, uint32_t* totals) {
  const hn::CappedTag<uint32_t, 16> d;
  for (size_t c = 0; c < n; c += hn::Lanes(d)) {
    auto total = hn::LoadU(d, totals + c);
    for (const uint32_t* part = parts; part != end; part += n) {
      total = hn::Add(total, hn::LoadU(d, part + c));
    }
    hn::StoreU(total, d, totals + c);
  }
}

// As AddParts(), for the maxima or minima of bytes.
template <bool kMax>
HWY_INLINE void ExtremesOfParts(const uint8_t* parts, const uint8_t* end, size_t n,
                                uint8_t* totals) {
  const SmallByteTag d;
  for (size_t c = 0; c < n; c += hn::Lanes(d)) {
    auto total = hn::LoadU(d, totals + c);
    for (const uint8_t* part = parts; part != end; part += n) {
      total = ExtremeOf<kMax>(total, hn::LoadU(d, part + c));
    }
    hn::StoreU(total, d, totals + c);
  }
}

HWY_INLINE void SumColumns(const ReducePlan& plan, const uint8_t* in, uint8_t flip,
                           uint32_t* totals, size_t n) {
  ForRows(
      plan, in, n, flip,
      [&](const uint8_t* x, int64_t count, int64_t stride)
          HWY_ATTR { SumRows(x, count, stride, flip, totals, n); },
      [&](const uint8_t* x, int64_t count, size_t wide, const uint8_t* rest) HWY_ATTR {
        HWY_ALIGN uint32_t parts[kJoinedColumns + 16] = {};
        SumRows(x, count, static_cast<int64_t>(wide), flip, parts, wide);
        if (rest != nullptr) SumRows(rest, 1, 0, flip, parts, wide);
        AddParts(parts, parts + wide, n, totals);
      });
}

// `totals` has room for 16 bytes behind the n.
template <bool kMax>
HWY_INLINE void ExtremesOfColumns(const ReducePlan& plan, const uint8_t* in, uint8_t flip,
                                  uint8_t* totals, size_t n) {
  constexpr uint8_t kNeutral = kMax ? 0 : 255;
  std::fill(totals, totals + n + 16, kNeutral);
  ForRows(
      plan, in, n, static_cast<uint8_t>(kNeutral ^ flip),
      [&](const uint8_t* x, int64_t count, int64_t stride)
          HWY_ATTR { ExtremesOfRows<kMax>(x, count, stride, flip, totals, n); },
      [&](const uint8_t* x, int64_t count, size_t wide, const uint8_t* rest) HWY_ATTR {
        HWY_ALIGN uint8_t parts[kJoinedColumns + 16];
        std::fill(parts, parts + wide, kNeutral);
        ExtremesOfRows<kMax>(x, count, static_cast<int64_t>(wide), flip, parts, wide);
        if (rest != nullptr) ExtremesOfRows<kMax>(rest, 1, 0, flip, parts, wide);
        ExtremesOfParts<kMax>(parts, parts + wide, n, totals);
      });
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
