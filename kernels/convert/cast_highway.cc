// CAST and DEQUANTIZE of the pairs of types that models have, a vector at a time.
#include <limits>
#include <type_traits>

#include "kernels/convert/convert.h"
#include "kernels/make_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convert/cast_highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"
#include "kernels/simd_math/short_floats-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using I = hn::ScalableTag<int32_t>;

// Half-precision bits, converted in integer arithmetic: signaling NaNs stay so.
struct Half {};

template <class T>
HWY_INLINE hn::Vec<I> LoadWide(const T* p, size_t n) {
  if constexpr (sizeof(T) == 4) {
    return LoadUpTo(I(), p, n);
  } else {
    return hn::PromoteTo(I(), LoadUpTo(hn::Rebind<T, I>(), p, n));
  }
}

// The integer part, saturated; the largest for a NaN.
template <class To>
HWY_INLINE hn::Vec<I> Saturated(hn::Vec<F> x) {
  const I d;
  const F df;
  using Limits = std::numeric_limits<To>;
  const auto below = hn::Lt(x, hn::Set(df, static_cast<float>(Limits::max() / 2 + 1) * 2));
  const auto bounded = hn::Max(x, hn::Set(df, static_cast<float>(Limits::min())));
  const auto whole = hn::ConvertTo(d, hn::IfThenElseZero(below, bounded));
  return hn::IfThenElse(hn::RebindMask(d, below), whole,
                        hn::Set(d, static_cast<int32_t>(Limits::max())));
}

template <class From>
HWY_INLINE hn::Vec<F> LoadFloat(const From* in, size_t n) {
  if constexpr (std::is_same_v<From, float>) {
    return LoadUpTo(F(), in, n);
  } else if constexpr (std::is_same_v<From, Half>) {
    return FloatOfHalf(F(), LoadWide(reinterpret_cast<const uint16_t*>(in), n));
  } else if constexpr (sizeof(From) == 8 || std::is_same_v<From, uint32_t>) {
    // Targets below AVX-512 convert these one by one.
    HWY_ALIGN float values[hn::MaxLanes(F())] = {};
    for (size_t i = 0; i < n; ++i) values[i] = static_cast<float>(in[i]);
    return hn::Load(F(), values);
  } else {
    return hn::ConvertTo(F(), LoadWide(in, n));
  }
}

template <class From, class To>
HWY_INLINE void CastVector(const From* in, To* out, size_t n) {
  const auto value = LoadFloat(in, n);
  if constexpr (std::is_same_v<To, float>) {
    StoreUpTo(value, F(), out, n);
  } else if constexpr (std::is_same_v<To, Half>) {
    const hn::Rebind<uint16_t, I> narrow;
    StoreUpTo(hn::DemoteTo(narrow, HalfOfFloat(F(), value)), narrow,
              reinterpret_cast<uint16_t*>(out), n);
  } else if constexpr (sizeof(To) == 4) {
    StoreUpTo(Saturated<To>(value), I(), out, n);
  } else {
    const hn::Rebind<To, I> narrow;
    StoreUpTo(hn::DemoteTo(narrow, Saturated<To>(value)), narrow, out, n);
  }
}

template <class T>
constexpr int64_t BytesOf() {
  return std::is_same_v<T, Half> ? 2 : sizeof(T);
}

// From and To are float, Half, or an integer on one side.
template <class From, class To>
void CastValues(const void* in, int64_t from, void* out, int64_t to, int64_t count) {
  const auto* source = static_cast<const std::byte*>(in) + from * BytesOf<From>();
  auto* target = static_cast<std::byte*>(out) + to * BytesOf<To>();
  const auto lanes = static_cast<int64_t>(hn::Lanes(I()));
  const auto some = [&](int64_t i, int64_t n) HWY_ATTR {
    CastVector(reinterpret_cast<const From*>(source + i * BytesOf<From>()),
               reinterpret_cast<To*>(target + i * BytesOf<To>()), n);
  };
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) some(i, lanes);
  if (i < count) some(i, count - i);
}

// Whether values differ from zero.
void ToTruth(const void* in, int64_t from, void* out, int64_t to, int64_t count) {
  const hn::Rebind<uint8_t, I> narrow;
  const auto* source = static_cast<const float*>(in) + from;
  auto* target = static_cast<uint8_t*>(out) + to;
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(hn::Lanes(I()))) {
    const auto zero = hn::Eq(LoadUpTo(F(), source + i, count - i), hn::Zero(F()));
    const auto ones = hn::IfThenZeroElse(hn::RebindMask(I(), zero), hn::Set(I(), 1));
    StoreUpTo(hn::DemoteTo(narrow, ones), narrow, target + i, count - i);
  }
}

// Whether half-precision numbers differ from zero: any bit but the sign's.
void HalvesToTruth(const void* in, int64_t from, void* out, int64_t to, int64_t count) {
  const hn::ScalableTag<uint16_t> d;
  const hn::Rebind<uint8_t, decltype(d)> narrow;
  const auto* source = static_cast<const uint16_t*>(in) + from;
  auto* target = static_cast<uint8_t*>(out) + to;
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(hn::Lanes(d))) {
    const auto magnitude = hn::And(LoadUpTo(d, source + i, count - i), hn::Set(d, 0x7FFF));
    const auto ones =
        hn::BitCast(hn::RebindToSigned<decltype(d)>(), hn::Min(magnitude, hn::Set(d, 1)));
    StoreUpTo(hn::DemoteTo(narrow, ones), narrow, target + i, count - i);
  }
}

CastFunction* CastToFloat(DataType from) {
  switch (from) {
    case DataType::kFloat16: return CastValues<Half, float>;
    case DataType::kBool:
    case DataType::kUInt8: return CastValues<uint8_t, float>;
    case DataType::kInt8: return CastValues<int8_t, float>;
    case DataType::kInt16: return CastValues<int16_t, float>;
    case DataType::kUInt16: return CastValues<uint16_t, float>;
    case DataType::kInt32: return CastValues<int32_t, float>;
    case DataType::kUInt32: return CastValues<uint32_t, float>;
    case DataType::kInt64: return CastValues<int64_t, float>;
    default: return nullptr;
  }
}

CastFunction* CastToHalf(DataType from) {
  switch (from) {
    case DataType::kFloat32: return CastValues<float, Half>;
    case DataType::kBool:
    case DataType::kUInt8: return CastValues<uint8_t, Half>;
    case DataType::kInt8: return CastValues<int8_t, Half>;
    case DataType::kInt16: return CastValues<int16_t, Half>;
    case DataType::kUInt16: return CastValues<uint16_t, Half>;
    case DataType::kInt32: return CastValues<int32_t, Half>;
    case DataType::kUInt32: return CastValues<uint32_t, Half>;
    case DataType::kInt64: return CastValues<int64_t, Half>;
    default: return nullptr;
  }
}

CastFunction* CastFromFloat(DataType to) {
  switch (to) {
    case DataType::kBool: return ToTruth;
    case DataType::kInt8: return CastValues<float, int8_t>;
    case DataType::kUInt8: return CastValues<float, uint8_t>;
    case DataType::kInt16: return CastValues<float, int16_t>;
    case DataType::kInt32: return CastValues<float, int32_t>;
    default: return nullptr;
  }
}

CastFunction* CastFor(DataType from, DataType to) {
  if (to == DataType::kFloat32) return CastToFloat(from);
  if (to == DataType::kFloat16) return CastToHalf(from);
  if (from == DataType::kFloat16 && to == DataType::kBool) return HalvesToTruth;
  return from == DataType::kFloat32 ? CastFromFloat(to) : nullptr;
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

Result<std::unique_ptr<Kernel>> BuildCastHighway(const OpDescription& op,
                                                 const BuildContext& context) {
  constexpr auto kCast = FUSELITE_SIMD_TABLE(CastFor);
  if (!op.tail.empty()) return Unsupported(op.op->name, " takes no fused tail");
  FUSELITE_ASSIGN_OR_RETURN(auto* const function_for, kCast.Require(context.isa));
  const DataType from = op.inputs[0].type, to = op.outputs[0].type;
  CastFunction* function = function_for(from, to);
  if (function == nullptr) function = IntegerCast(from, to, context.isa);
  if (function == nullptr) {
    return Unsupported("no vectors from ", DataTypeName(from), " to ", DataTypeName(to));
  }
  return MakeCast(op,
                  "cast " + std::string(DataTypeName(from)) + " " + std::string(DataTypeName(to)) +
                      " " + SimdName(context.isa),
                  function);
}

}  // namespace fuselite::kernels
#endif
