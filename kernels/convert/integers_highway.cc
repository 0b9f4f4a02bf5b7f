// CAST between integers of any width, and to bool.
//
// The loops are plain ones that the compiler turns into vectors of each target (this file is
// compiled with -O3). Integers wrap, so that what is as wide or narrower depends on the source's
// width alone, and the target's sign never matters.
#include <cstring>

#include "kernels/convert/convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convert/integers_highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {

template <class From, class To>
void CastIntegers(const void* in, int64_t from, void* out, int64_t to, int64_t count) {
  const From* HWY_RESTRICT source = static_cast<const From*>(in) + from;
  To* HWY_RESTRICT target = static_cast<To*>(out) + to;
  if constexpr (sizeof(From) == sizeof(To)) {
    std::memcpy(target, source, count * sizeof(To));
  } else {
    for (int64_t i = 0; i < count; ++i) target[i] = static_cast<To>(source[i]);
  }
}

template <class From>
void CastToTruth(const void* in, int64_t from, void* out, int64_t to, int64_t count) {
  const From* HWY_RESTRICT source = static_cast<const From*>(in) + from;
  uint8_t* HWY_RESTRICT target = static_cast<uint8_t*>(out) + to;
  for (int64_t i = 0; i < count; ++i) target[i] = source[i] != 0 ? 1 : 0;
}

template <class From>
CastFunction* CastIntegersTo(DataType to) {
  switch (to) {
    case DataType::kBool: return CastToTruth<From>;
    case DataType::kInt8:
    case DataType::kUInt8: return CastIntegers<From, uint8_t>;
    case DataType::kInt16:
    case DataType::kUInt16: return CastIntegers<From, uint16_t>;
    case DataType::kInt32:
    case DataType::kUInt32: return CastIntegers<From, uint32_t>;
    case DataType::kInt64: return CastIntegers<From, uint64_t>;
    default: return nullptr;
  }
}

CastFunction* CastIntegersFor(DataType from, DataType to) {
  switch (from) {
    case DataType::kBool:
    case DataType::kUInt8: return CastIntegersTo<uint8_t>(to);
    case DataType::kInt8: return CastIntegersTo<int8_t>(to);
    case DataType::kUInt16: return CastIntegersTo<uint16_t>(to);
    case DataType::kInt16: return CastIntegersTo<int16_t>(to);
    case DataType::kUInt32: return CastIntegersTo<uint32_t>(to);
    case DataType::kInt32: return CastIntegersTo<int32_t>(to);
    case DataType::kInt64: return CastIntegersTo<uint64_t>(to);
    default: return nullptr;
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

CastFunction* IntegerCast(DataType from, DataType to, Isa isa) {
  constexpr auto kCast = FUSELITE_SIMD_TABLE(CastIntegersFor);
  auto* const cast_for = kCast.For(isa);
  return cast_for == nullptr ? nullptr : cast_for(from, to);
}

}  // namespace fuselite::kernels
#endif
