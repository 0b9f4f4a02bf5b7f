#include "kernels/gemm/short_rows.h"

#include <array>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/short_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/in_range-inl.h"
#include "kernels/simd_math/pack_bytes-inl.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
void WidenRow(const T* from, int64_t n, int32_t offset, int16_t* to) {
  const hn::ScalableTag<int16_t> d;
  const hn::Rebind<T, hn::ScalableTag<int16_t>> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto shift = hn::Set(d, static_cast<int16_t>(offset));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::Add(hn::PromoteTo(d, hn::LoadU(narrow, from + i)), shift), d, to + i);
  }
  for (; i < n; ++i) to[i] = static_cast<int16_t>(from[i] + offset);
}

// The extremes of several vectors, and the sum of their products by 0: NaN where any is an infinity
// or NaN, as extremes forget the latter.
struct RangeVectors {
  using D = hn::ScalableTag<float>;
  hn::Vec<D> min, max, zero;

  explicit RangeVectors(const DynamicRange& range)
      : min(hn::Set(D(), range.min)),
        max(hn::Set(D(), range.max)),
        zero(hn::Mul(min, hn::Zero(D()))) {}
  HWY_INLINE void Extend(hn::Vec<D> x) {
    min = hn::Min(min, x);
    max = hn::Max(max, x);
    zero = hn::MulAdd(x, hn::Zero(D()), zero);
  }
  HWY_INLINE void Join(const RangeVectors& other) {
    min = hn::Min(min, other.min);
    max = hn::Max(max, other.max);
    zero = hn::Add(zero, other.zero);
  }
};

void ExtendRange(const float* from, int64_t n, DynamicRange* range) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  RangeVectors a(*range), b = a;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    a.Extend(hn::LoadU(d, from + i));
    b.Extend(hn::LoadU(d, from + i + lanes));
  }
  for (; i + lanes <= n; i += lanes) a.Extend(hn::LoadU(d, from + i));
  for (; i < n; ++i) a.Extend(hn::Set(d, from[i]));
  a.Join(b);
  const bool finite = hn::AllTrue(d, hn::Eq(a.zero, hn::Zero(d)));
  const float bad = finite ? 0.0f : std::numeric_limits<float>::quiet_NaN();
  range->min = hn::GetLane(hn::MinOfLanes(d, a.min)) + bad;
  range->max = hn::GetLane(hn::MaxOfLanes(d, a.max)) + bad;
}

// The divisions of several rows at once.
void MakeScales(const DynamicRange* ranges, int64_t n, DynamicScale* to) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  const hn::Rebind<int32_t, decltype(d)> narrow32;
  constexpr int kMax = ShortRowFunctions::kMaxScales;
  HWY_ALIGN float low[kMax] = {}, high[kMax] = {}, scale[kMax], inverse[kMax];
  HWY_ALIGN int32_t offset[kMax];
  for (int64_t i = 0; i < n; ++i) {
    // Infinities are seen to below.
    low[i] = ranges[i].min < 0 ? ranges[i].min : 0.0f;
    high[i] = ranges[i].max > 0 ? ranges[i].max : 0.0f;
  }
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) {
    const auto l = hn::Load(narrow, low + i), h = hn::Load(narrow, high + i);
    const auto step = hn::Div(hn::PromoteTo(d, hn::Sub(h, l)), hn::Set(d, 255.0));
    const auto below = hn::Div(hn::PromoteTo(d, l), step);
    const auto above = hn::Div(hn::PromoteTo(d, h), step);
    const auto from_low = hn::Lt(hn::Add(hn::Set(d, 128.0), hn::Abs(below)),
                                 hn::Add(hn::Set(d, 127.0), hn::Abs(above)));
    const auto zero = hn::IfThenElse(from_low, hn::Sub(hn::Set(d, -128.0), below),
                                     hn::Sub(hn::Set(d, 127.0), above));
    const auto cut = hn::Min(hn::Max(zero, hn::Set(d, -128.0)), hn::Set(d, 127.0));
    const auto half = hn::CopySign(hn::Set(d, 0x1.fffffffffffffp-2), cut);
    const auto rounded = hn::DemoteTo(narrow, step);
    hn::Store(hn::DemoteTo(narrow32, hn::Add(cut, half)), narrow32, offset + i);
    hn::Store(rounded, narrow, scale + i);
    hn::Store(hn::Div(hn::Set(narrow, 1.0f), rounded), narrow, inverse + i);
  }
  for (int64_t i = 0; i < n; ++i) {
    const bool usual = std::isfinite(ranges[i].min) && std::isfinite(ranges[i].max) &&
                       std::isfinite(high[i] - low[i]) && low[i] != high[i] &&
                       std::isfinite(inverse[i]);
    to[i] = usual ? DynamicScale{scale[i], inverse[i], offset[i], -128}
                  : MakeDynamicScale(ranges[i], true);
  }
}

// Halves away from zero: the largest float below 0.5, added away from zero, carries over exactly
// what is to be rounded up. No value lies so far beyond the range that the scale was made of that
// it would leave the type's, which what narrows saturates to.
class Quantizer {
 public:
  using D = hn::ScalableTag<float>;
  using V32 = hn::Vec<hn::RebindToSigned<D>>;
  explicit Quantizer(const DynamicScale& scale)
      : inverse_(hn::Set(D(), scale.inverse)),
        offset_(hn::Set(hn::RebindToSigned<D>(), scale.offset)) {}

  HWY_INLINE V32 Steps(hn::Vec<D> x) const {
    const auto half = hn::CopySign(hn::Set(D(), 0x1.fffffep-2f), x);
    return TruncatedInRange(hn::Add(hn::Mul(x, inverse_), half));
  }
  // With the offset.
  HWY_INLINE V32 operator()(hn::Vec<D> x) const { return hn::Add(Steps(x), offset_); }

 private:
  hn::Vec<D> inverse_;
  V32 offset_;
};

void QuantizeShorts(const float* from, int64_t n, const DynamicScale& scale, int16_t* to) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<int16_t, decltype(d)> d16;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Quantizer quantize(scale);
  const auto offset = hn::Set(d16, static_cast<int16_t>(scale.offset));
  const auto max = hn::Set(d16, int16_t{127}), min = hn::Set(d16, int16_t{-128});
  for (int64_t i = 0; i < n; i += lanes) {
    const auto q = hn::DemoteTo(d16, quantize(LoadUpTo(d, from + i, static_cast<size_t>(n - i))));
    const auto cut = hn::Min(hn::Max(q, min), max);
    StoreUpTo(hn::Sub(cut, offset), d16, to + i, static_cast<size_t>(n - i));
  }
}

// Where four vectors of four bytes each lie after they were narrowed by pairs within blocks of 16
// bytes: dword i of the bytes in order.
template <size_t kBlocks>
constexpr std::array<uint32_t, 4 * kBlocks> OrderOfFour() {
  std::array<uint32_t, 4 * kBlocks> order{};
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = static_cast<uint32_t>(i % kBlocks * 4 + i / kBlocks);
  }
  return order;
}

void QuantizeBytes(const float* from, int64_t n, const DynamicScale& scale, uint8_t* to) {
  const hn::ScalableTag<float> d;
  const hn::ScalableTag<int16_t> d16;
  const hn::ScalableTag<uint8_t> d8;
  const hn::Rebind<int8_t, decltype(d)> single;
  const hn::ScalableTag<uint32_t> fours;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Quantizer quantize(scale);
  static constexpr auto kOrder = OrderOfFour<hn::MaxLanes(d8) / 16>();
  const auto order = hn::SetTableIndices(fours, kOrder.data());
  const auto offset = hn::Set(d16, static_cast<int16_t>(scale.offset + 128));
  const auto words = [&](const float* x) HWY_ATTR {
    const auto steps = hn::ReorderDemote2To(d16, quantize.Steps(hn::LoadU(d, x)),
                                            quantize.Steps(hn::LoadU(d, x + lanes)));
    return hn::SaturatedAdd(steps, offset);
  };
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto bytes = PackBytes(d8, words(from + i), words(from + i + 2 * lanes));
    const auto ordered = hn::TableLookupLanes(hn::BitCast(fours, bytes), order);
    hn::StoreU(hn::BitCast(d8, ordered), d8, to + i);
  }
  const auto sign = hn::Set(single, int8_t{-128});
  for (; i < n; i += lanes) {
    const auto left = static_cast<size_t>(n - i);
    const auto q = hn::DemoteTo(single, quantize(LoadUpTo(d, from + i, left)));
    StoreUpTo(hn::Xor(q, sign), single, reinterpret_cast<int8_t*>(to) + i, left);
  }
}

constexpr ShortRowFunctions kShortRows = {.widen_s8 = WidenRow<int8_t>,
                                          .widen_u8 = WidenRow<uint8_t>,
                                          .extend_range = ExtendRange,
                                          .make_scales = MakeScales,
                                          .quantize = QuantizeShorts,
                                          .quantize_u8 = QuantizeBytes};

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

const ShortRowFunctions* FindShortRowFunctions(Isa isa) {
  static constexpr auto kTable = FUSELITE_SIMD_TABLE(kShortRows);
  return kTable.For(isa);
}

}  // namespace fuselite::kernels
#endif
