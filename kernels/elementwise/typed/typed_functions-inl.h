// Functions of two integers, truth values or floats (TypedFunction): on vectors and, with the same
// bits, on single values.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_ELEMENTWISE_TYPED_FUNCTIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_ELEMENTWISE_TYPED_FUNCTIONS_INL_H_
#undef FUSELITE_KERNELS_ELEMENTWISE_TYPED_FUNCTIONS_INL_H_
#else
#define FUSELITE_KERNELS_ELEMENTWISE_TYPED_FUNCTIONS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "kernels/elementwise/typed/shifts.h"
#include "kernels/simd.h"
#include "kernels/simd_math/std_max-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#define FUSELITE_ROW_FUNCTION(Name, vector, scalar) \
  struct Name {                                     \
    template <class D, class V>                     \
    static HWY_INLINE auto Vectors(D d, V x, V y) { \
      (void)d;                                      \
      return vector;                                \
    }                                               \
    template <class T>                              \
    static HWY_INLINE auto Values(T x, T y) {       \
      return scalar;                                \
    }                                               \
  };

// Sums and products of integers wrap around: they are computed without sign, and so wide that
// nothing makes a signed int of them.
template <class T>
HWY_INLINE auto Bits(T x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<uint64_t>(x);
  } else {
    return x;
  }
}

FUSELITE_ROW_FUNCTION(AddOf, hn::Add(x, y), static_cast<T>(Bits(x) + Bits(y)))
FUSELITE_ROW_FUNCTION(SubOf, hn::Sub(x, y), static_cast<T>(Bits(x) - Bits(y)))
FUSELITE_ROW_FUNCTION(MulOf, hn::Mul(x, y), static_cast<T>(Bits(x) * Bits(y)))
FUSELITE_ROW_FUNCTION(MaximumOf, StdMax(x, y), std::max(x, y))
FUSELITE_ROW_FUNCTION(MinimumOf, StdMin(x, y), std::min(x, y))
FUSELITE_ROW_FUNCTION(SquaredDifferenceOf, hn::Mul(hn::Sub(x, y), hn::Sub(x, y)),
                      static_cast<T>((Bits(x) - Bits(y)) * (Bits(x) - Bits(y))))
FUSELITE_ROW_FUNCTION(AndOf, hn::And(x, y), static_cast<T>(x& y))
FUSELITE_ROW_FUNCTION(OrOf, hn::Or(x, y), static_cast<T>(x | y))
FUSELITE_ROW_FUNCTION(EqualOf, hn::Eq(x, y), x == y)
FUSELITE_ROW_FUNCTION(NotEqualOf, hn::Not(hn::Eq(x, y)), x != y)
FUSELITE_ROW_FUNCTION(LessOf, hn::Lt(x, y), x < y)
FUSELITE_ROW_FUNCTION(LessEqualOf, hn::Le(x, y), x <= y)

#undef FUSELITE_ROW_FUNCTION

// Highway has no order-or-equality of integers.
struct IntegerLessEqualOf {
  template <class D, class V>
  static HWY_INLINE auto Vectors(D, V x, V y) {
    return hn::Not(hn::Lt(y, x));
  }
  template <class T>
  static HWY_INLINE bool Values(T x, T y) {
    return x <= y;
  }
};

// The low 64 bits of a product of 64: those of the low halves, and the crosswise ones above them.
struct WideMulOf {
  template <class D, class V>
  static HWY_INLINE auto Vectors(D d, V x, V y) {
    const hn::Repartition<uint32_t, D> halves;
    const hn::RebindToUnsigned<D> du;
    const auto a = hn::BitCast(du, x), b = hn::BitCast(du, y);
    const auto low = [&](auto v) HWY_ATTR { return hn::BitCast(halves, v); };
    const auto high = [&](auto v) HWY_ATTR { return hn::BitCast(halves, hn::ShiftRight<32>(v)); };
    const auto across = hn::Add(hn::MulEven(high(a), low(b)), hn::MulEven(low(a), high(b)));
    return hn::BitCast(d, hn::Add(hn::MulEven(low(a), low(b)), hn::ShiftLeft<32>(across)));
  }
  template <class T>
  static HWY_INLINE T Values(T x, T y) {
    return static_cast<T>(Bits(x) * Bits(y));
  }
};

// Bytes are multiplied as lanes of 16 bits, the upper ones of each pair beside the lower ones.
struct ByteMulOf {
  template <class D, class V>
  static HWY_INLINE auto Vectors(D d, V x, V y) {
    const hn::Repartition<uint16_t, D> pairs;
    const auto a = hn::BitCast(pairs, x), b = hn::BitCast(pairs, y);
    const auto low = hn::Set(pairs, uint16_t{0x00FF});
    const auto upper = hn::Mul(hn::ShiftRight<8>(a), hn::AndNot(low, b));
    return hn::BitCast(d, hn::Or(hn::And(hn::Mul(a, b), low), upper));
  }
  template <class T>
  static HWY_INLINE T Values(T x, T y) {
    return static_cast<T>(Bits(x) * Bits(y));
  }
};

// x times 2^y, or 0 where y is no place of the type. Only AVX-512 shifts lanes of 8 and 16 bits by
// numbers of their own.
template <class MulOf>
struct ScaledByPowerOf {
  template <class D, class V>
  static HWY_INLINE auto Vectors(D d, V x, V y) {
    using T = hn::TFromD<D>;
    alignas(16) static constexpr uint8_t kPowers[16] = {1, 2, 4, 8, 16, 32, 64, 128};
    const hn::RebindToUnsigned<D> du;
    using U = hn::TFromD<decltype(du)>;
    const hn::Repartition<uint8_t, D> bytes;
    const auto power = [&](auto places) HWY_ATTR {  // within a byte, from its place 0 on; else 0
      const auto found =
          hn::TableLookupBytes(hn::LoadDup128(bytes, kPowers), hn::BitCast(bytes, places));
      const auto is_place = hn::Lt(places, hn::Set(du, U{8}));
      return hn::IfThenElseZero(is_place, hn::BitCast(du, found));
    };
    const auto places = hn::BitCast(du, y);
    auto powers = power(places);
    if constexpr (sizeof(T) == 2) {
      powers = hn::And(powers, hn::Set(du, U{0xFF}));  // the upper byte looked up a place, too
      const auto above = power(hn::Sub(places, hn::Set(du, U{8})));
      powers = hn::Or(powers, hn::ShiftLeft<8>(above));
    }
    return MulOf::Vectors(d, x, hn::BitCast(d, powers));
  }
  template <class T>
  static HWY_INLINE T Values(T x, T y) {
    return ShiftedLeft(x, y);
  }
};
struct ShiftLeftOf {
  template <class D, class V>
  static HWY_INLINE auto Vectors(D d, V x, V y) {
    using T = hn::TFromD<D>;
    const hn::RebindToUnsigned<D> du;
    const auto places = hn::BitCast(du, y);
    const auto most = hn::Set(du, static_cast<hn::TFromD<decltype(du)>>(8 * sizeof(T) - 1));
    const auto moved = hn::Shl(hn::BitCast(du, x), hn::Min(places, most));
    return hn::BitCast(d, hn::IfThenZeroElse(hn::Gt(places, most), moved));
  }
  template <class T>
  static HWY_INLINE T Values(T x, T y) {
    return ShiftedLeft(x, y);
  }
};

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
