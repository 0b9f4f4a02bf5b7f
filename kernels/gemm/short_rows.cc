#include "kernels/gemm/short_rows.h"

#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/short_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/in_range-inl.h"
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

// The extremes of several vectors, and the largest bits of a magnitude: infinities and NaN have
// larger ones than every finite number.
struct RangeVectors {
  using D = hn::ScalableTag<float>;
  hn::Vec<D> min, max;
  hn::Vec<hn::RebindToSigned<D>> bits;

  HWY_INLINE void Extend(hn::Vec<D> x) {
    min = hn::Min(min, x);
    max = hn::Max(max, x);
    bits = hn::Max(bits, hn::BitCast(hn::RebindToSigned<D>(), hn::Abs(x)));
  }
  HWY_INLINE void Join(const RangeVectors& other) {
    min = hn::Min(min, other.min);
    max = hn::Max(max, other.max);
    bits = hn::Max(bits, other.bits);
  }
};

void ExtendRange(const float* from, int64_t n, DynamicRange* range) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> d32;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto given = hn::Set(d, range->min);
  RangeVectors a{given, hn::Set(d, range->max), hn::BitCast(d32, hn::Abs(given))};
  RangeVectors b = a;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    a.Extend(hn::LoadU(d, from + i));
    b.Extend(hn::LoadU(d, from + i + lanes));
  }
  for (; i + lanes <= n; i += lanes) a.Extend(hn::LoadU(d, from + i));
  for (; i < n; ++i) a.Extend(hn::Set(d, from[i]));
  a.Join(b);
  const bool finite = hn::AllTrue(d32, hn::Lt(a.bits, hn::Set(d32, 0x7f800000)));
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

  // Adds the offset, too.
  HWY_INLINE V32 operator()(hn::Vec<D> x) const {
    const auto steps = hn::Mul(x, inverse_);
    const auto half = hn::CopySign(hn::Set(D(), 0x1.fffffep-2f), steps);
    return hn::Add(TruncatedInRange(hn::Add(steps, half)), offset_);
  }

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

void QuantizeBytes(const float* from, int64_t n, const DynamicScale& scale, uint8_t* to) {
  const hn::ScalableTag<float> d;
  const hn::ScalableTag<int16_t> d16;
  const hn::Rebind<int8_t, decltype(d16)> pair;
  const hn::Rebind<int8_t, decltype(d)> single;
  const hn::Repartition<uint32_t, decltype(pair)> fours;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Quantizer quantize(scale);
  // Demoting two vectors takes 4 values of the one and of the other in turn.
  static constexpr uint32_t kOrders[][8] = {{0, 1}, {0, 2, 1, 3}, {0, 2, 4, 6, 1, 3, 5, 7}};
  const auto indices = hn::SetTableIndices(fours, kOrders[hn::MaxLanes(fours) / 4]);
  auto* bytes = reinterpret_cast<int8_t*>(to);
  const auto sign = [](auto tag) HWY_ATTR { return hn::Set(tag, int8_t{-128}); };
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto words = hn::ReorderDemote2To(d16, quantize(hn::LoadU(d, from + i)),
                                            quantize(hn::LoadU(d, from + i + lanes)));
    const auto q = hn::BitCast(fours, hn::DemoteTo(pair, words));
    const auto ordered = hn::BitCast(pair, hn::TableLookupLanes(q, indices));
    hn::StoreU(hn::Xor(ordered, sign(pair)), pair, bytes + i);
  }
  for (; i < n; i += lanes) {
    const auto left = static_cast<size_t>(n - i);
    const auto q = hn::DemoteTo(single, quantize(LoadUpTo(d, from + i, left)));
    StoreUpTo(hn::Xor(q, sign(single)), single, bytes + i, left);
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
