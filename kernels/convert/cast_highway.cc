// CAST and DEQUANTIZE of the pairs of types that models have, a vector at a time.
#include <limits>

#include "kernels/convert/convert.h"
#include "kernels/make_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convert/cast_highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using I = hn::ScalableTag<int32_t>;

// Half-precision bits, in integer arithmetic as HalfToFloat has it: signaling NaNs stay so.
struct Half {};

template <class T>
HWY_INLINE hn::Vec<I> LoadWide(const T* p, size_t n) {
  if constexpr (sizeof(T) == 4) {
    return LoadUpTo(I(), p, n);
  } else {
    return hn::PromoteTo(I(), LoadUpTo(hn::Rebind<T, I>(), p, n));
  }
}

HWY_INLINE hn::Vec<F> FloatOfHalf(hn::Vec<I> half) {
  const I d;
  const F df;
  const auto sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(d, 0x8000)));
  const auto magnitude = hn::And(half, hn::Set(d, 0x7FFF));
  const auto normal = hn::Add(hn::ShiftLeft<13>(magnitude), hn::Set(d, 112 << 23));
  // Infinities and NaNs: exponent 255 instead of 31 + 112.
  const auto special = hn::Add(normal, hn::Set(d, 112 << 23));
  const auto subnormal =
      hn::BitCast(d, hn::Mul(hn::ConvertTo(df, magnitude), hn::Set(df, 0x1p-24f)));
  auto bits = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x0400)), subnormal, normal);
  bits = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x7BFF)), special, bits);
  return hn::BitCast(df, hn::Or(bits, sign));
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

template <class From, class To>
HWY_INLINE void CastVector(const From* in, To* out, size_t n) {
  if constexpr (std::is_same_v<From, Half>) {
    StoreUpTo(FloatOfHalf(LoadWide(reinterpret_cast<const uint16_t*>(in), n)), F(), out, n);
  } else if constexpr (std::is_same_v<To, float>) {
    StoreUpTo(hn::ConvertTo(F(), LoadWide(in, n)), F(), out, n);
  } else if constexpr (std::is_same_v<From, float>) {
    const auto value = Saturated<To>(LoadUpTo(F(), in, n));
    if constexpr (sizeof(To) == 4) {
      StoreUpTo(value, I(), out, n);
    } else {
      const hn::Rebind<To, I> narrow;
      StoreUpTo(hn::DemoteTo(narrow, value), narrow, out, n);
    }
  } else {
    static_assert(sizeof(To) == 4);
    StoreUpTo(LoadWide(in, n), I(), out, n);
  }
}

template <class From, class To>
void CastValues(const void* in, int64_t from, void* out, int64_t to, int64_t count) {
  constexpr size_t kFromBytes = std::is_same_v<From, Half> ? 2 : sizeof(From);
  const auto* source = static_cast<const std::byte*>(in) + from * kFromBytes;
  auto* const target = static_cast<To*>(out) + to;
  const auto lanes = static_cast<int64_t>(hn::Lanes(I()));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    CastVector(reinterpret_cast<const From*>(source + i * kFromBytes), target + i, lanes);
  }
  if (i < count) {
    CastVector(reinterpret_cast<const From*>(source + i * kFromBytes), target + i, count - i);
  }
}

// Whether values differ from zero.
template <class From>
void ToTruth(const void* in, int64_t from, void* out, int64_t to, int64_t count) {
  const hn::ScalableTag<From> d;
  const auto* source = static_cast<const From*>(in) + from;
  auto* target = static_cast<uint8_t*>(out) + to;
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(hn::Lanes(d))) {
    const auto zero = hn::Eq(LoadUpTo(d, source + i, count - i), hn::Zero(d));
    if constexpr (sizeof(From) == 1) {
      StoreUpTo(hn::IfThenZeroElse(zero, hn::Set(d, From{1})), d, target + i, count - i);
    } else {
      const hn::Rebind<uint8_t, I> narrow;
      const auto ones = hn::IfThenZeroElse(hn::RebindMask(I(), zero), hn::Set(I(), 1));
      StoreUpTo(hn::DemoteTo(narrow, ones), narrow, target + i, count - i);
    }
  }
}

// int32 and int64, which converters put between indices; bytes and truth values, which are counted.
template <class From>
void Lengthen(const void* in, int64_t from, void* out, int64_t to, int64_t count) {
  const hn::ScalableTag<int64_t> d;
  const hn::Rebind<int32_t, decltype(d)> words;
  const hn::Rebind<From, decltype(d)> narrow;
  const auto* source = static_cast<const From*>(in) + from;
  auto* target = static_cast<int64_t*>(out) + to;
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(hn::Lanes(d))) {
    const auto value = LoadUpTo(narrow, source + i, count - i);
    if constexpr (sizeof(From) == 4) {
      StoreUpTo(hn::PromoteTo(d, value), d, target + i, count - i);
    } else {
      StoreUpTo(hn::PromoteTo(d, hn::PromoteTo(words, value)), d, target + i, count - i);
    }
  }
}
void Shorten(const void* in, int64_t from, void* out, int64_t to, int64_t count) {
  const hn::ScalableTag<uint64_t> d;
  const hn::Rebind<uint32_t, decltype(d)> narrow;
  const auto* source = static_cast<const uint64_t*>(in) + from;
  auto* target = static_cast<uint32_t*>(out) + to;
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(hn::Lanes(d))) {
    StoreUpTo(hn::TruncateTo(narrow, LoadUpTo(d, source + i, count - i)), narrow, target + i,
              count - i);
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
    default: return nullptr;
  }
}

CastFunction* CastToInt32(DataType from) {
  switch (from) {
    case DataType::kFloat32: return CastValues<float, int32_t>;
    case DataType::kBool:
    case DataType::kUInt8: return CastValues<uint8_t, int32_t>;
    case DataType::kInt8: return CastValues<int8_t, int32_t>;
    case DataType::kInt16: return CastValues<int16_t, int32_t>;
    case DataType::kInt64: return Shorten;
    default: return nullptr;
  }
}

CastFunction* CastToInt64(DataType from) {
  switch (from) {
    case DataType::kBool:
    case DataType::kUInt8: return Lengthen<uint8_t>;
    case DataType::kInt8: return Lengthen<int8_t>;
    case DataType::kInt32: return Lengthen<int32_t>;
    default: return nullptr;
  }
}

CastFunction* CastToBool(DataType from) {
  switch (from) {
    case DataType::kFloat32: return ToTruth<float>;
    case DataType::kInt32: return ToTruth<int32_t>;
    case DataType::kInt8:
    case DataType::kUInt8: return ToTruth<uint8_t>;
    default: return nullptr;
  }
}

CastFunction* CastFor(DataType from, DataType to) {
  switch (to) {
    case DataType::kFloat32: return CastToFloat(from);
    case DataType::kInt32: return CastToInt32(from);
    case DataType::kInt64: return CastToInt64(from);
    case DataType::kBool: return CastToBool(from);
    case DataType::kInt8: return from == DataType::kFloat32 ? CastValues<float, int8_t> : nullptr;
    case DataType::kUInt8: return from == DataType::kFloat32 ? CastValues<float, uint8_t> : nullptr;
    case DataType::kInt16: return from == DataType::kFloat32 ? CastValues<float, int16_t> : nullptr;
    default: return nullptr;
  }
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
  CastFunction* const function = function_for(from, to);
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
