// Quantized functions of two values, with vectors. Bytes are split into four vectors of 32-bit
// lanes by their place in the word, which takes no shuffles, and joined the same way; those of a
// rounded product into two of 16-bit lanes.
#include <type_traits>
#include <utility>

#include "kernels/elementwise/quantized/quantized_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/quantized/highway_quantized.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/elementwise/quantized/quantized_lanes-inl.h"
#include "kernels/elementwise/quantized/quotient_lanes-inl.h"
#include "kernels/elementwise/quantized/repeated_factors-inl.h"
#include "kernels/simd.h"
#include "kernels/simd_math/in_range-inl.h"
#include "kernels/simd_math/partial-inl.h"
#include "kernels/tail/integer_stages-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using ByteTag = hn::ScalableTag<uint8_t>;

// Byte kByte of every word, in 32 bits.
template <int kByte>
HWY_INLINE IntVec Plane(hn::Vec<ByteTag> v) {
  const hn::RebindToUnsigned<IntTag> d;
  auto words = hn::BitCast(d, v);
  if constexpr (kByte > 0) words = hn::ShiftRight<8 * kByte>(words);
  if constexpr (kByte < 3) words = hn::And(words, hn::Set(d, 0xFF));
  return hn::BitCast(IntTag(), words);
}

// The planes' low 16 bits, clamped, as bytes.
class JoinPlanes {
 public:
  HWY_INLINE JoinPlanes(int32_t min, int32_t max)
      : min_(hn::Set(D(), static_cast<int16_t>(min))),
        max_(hn::Set(D(), static_cast<int16_t>(max))) {}
  HWY_INLINE hn::Vec<ByteTag> operator()(IntVec p0, IntVec p1, IntVec p2, IntVec p3) const {
    const auto even = Clamp(p0, p2), odd = Clamp(p1, p3);
    return hn::BitCast(ByteTag(), hn::Or(even, hn::ShiftLeft<8>(odd)));
  }

 private:
  using D = hn::ScalableTag<int16_t>;
  HWY_INLINE hn::Vec<D> Clamp(IntVec low, IntVec high) const {
    const auto v = hn::OddEven(hn::BitCast(D(), hn::ShiftLeft<16>(high)), hn::BitCast(D(), low));
    return hn::Min(hn::Max(v, min_), max_);
  }
  hn::Vec<D> min_, max_;
};

// A step of 0 makes an operand once, of its first value.
template <bool kXSteps, bool kYSteps, class F>
HWY_INLINE void MapByteRow(const F& f, const JoinPlanes& join, uint8_t flip, const uint8_t* x,
                           const uint8_t* y, uint8_t* out, size_t n) {
  const ByteTag d;
  const IntTag di;
  const auto sign = hn::Set(d, flip);
  const auto a = f.x(hn::Set(di, *x ^ flip));
  const auto b = f.y(hn::Set(di, *y ^ flip));
  const auto map = [&](size_t i, size_t count) FUSELITE_INLINED {
    const auto v = kXSteps ? hn::Xor(LoadUpTo(d, x + i, count), sign) : sign;
    const auto w = kYSteps ? hn::Xor(LoadUpTo(d, y + i, count), sign) : sign;
    const auto plane = [&](auto byte) FUSELITE_INLINED {
      if constexpr (!kXSteps) {
        return f(a, f.y(Plane<byte.value>(w)));
      } else if constexpr (!kYSteps) {
        return f(f.x(Plane<byte.value>(v)), b);
      } else {
        return f(f.x(Plane<byte.value>(v)), f.y(Plane<byte.value>(w)));
      }
    };
    using std::integral_constant;
    auto joined = join(plane(integral_constant<int, 0>()), plane(integral_constant<int, 1>()),
                       plane(integral_constant<int, 2>()), plane(integral_constant<int, 3>()));
    if constexpr (requires { f.Correct(v, w, joined); }) {
      joined = f.Correct(kXSteps ? v : hn::Set(d, *x ^ flip), kYSteps ? w : hn::Set(d, *y ^ flip),
                         joined);
    }
    StoreUpTo(hn::Xor(joined, sign), d, out + i, count);
  };
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) map(i, lanes);
  if (i < n) map(i, n - i);
}

// A rounded sum, and what is right for the few pairs of operands where it is not.
class CorrectedSumLanes : public RoundedSumLanes {
 public:
  HWY_INLINE explicit CorrectedSumLanes(const RoundedSum& f)
      : RoundedSumLanes(f), exceptions_(f.exceptions) {}
  HWY_INLINE hn::Vec<ByteTag> Correct(hn::Vec<ByteTag> x, hn::Vec<ByteTag> y,
                                      hn::Vec<ByteTag> sums) const {
    const ByteTag d;
    const auto same = [&](hn::Vec<ByteTag> bytes, int32_t value) HWY_ATTR {
      return hn::Eq(bytes, hn::Set(d, static_cast<uint8_t>(value)));
    };
    for (int i = 0; i < exceptions_.count; ++i) {
      const SumExceptions::Pair& pair = exceptions_.pairs[i];
      const auto here = hn::And(same(x, pair.x), same(y, pair.y));
      sums = hn::IfThenElse(here, hn::Set(d, static_cast<uint8_t>(pair.result)), sums);
    }
    return sums;
  }

 private:
  const SumExceptions& exceptions_;
};

// A rounded product in 16-bit lanes, the even and the odd bytes: factors have up to 9 bits, and
// products 17, which two multiplications give in halves. Interleaving these and packing what they
// become keep to blocks of 16 bytes, so that one undoes the other.
class ShortProduct {
 public:
  using Short = hn::ScalableTag<int16_t>;
  using ShortVec = hn::Vec<Short>;
  struct Factors {
    ShortVec even, odd;
  };

  HWY_INLINE explicit ShortProduct(const RoundedProduct& f)
      : x_zero_(hn::Set(Short(), static_cast<int16_t>(f.x_zero))),
        y_zero_(hn::Set(Short(), static_cast<int16_t>(f.y_zero))),
        zero_(hn::Set(Short(), static_cast<int16_t>(f.zero))),
        min_(hn::Set(Short(), static_cast<int16_t>(f.min))),
        max_(hn::Set(Short(), static_cast<int16_t>(f.max))),
        scale_(hn::Set(RealTag(), f.scale)),
        nudge_(hn::Set(RealTag(), f.nudge)),
        sign_(hn::Set(RealTag(), -0.0f)) {}

  HWY_INLINE Factors x(hn::Vec<ByteTag> bytes) const { return Split(bytes, x_zero_); }
  HWY_INLINE Factors y(hn::Vec<ByteTag> bytes) const { return Split(bytes, y_zero_); }
  HWY_INLINE hn::Vec<ByteTag> operator()(const Factors& a, const Factors& b) const {
    const auto even = Multiply(a.even, b.even), odd = Multiply(a.odd, b.odd);
    return hn::BitCast(ByteTag(), hn::Or(even, hn::ShiftLeft<8>(odd)));
  }

 private:
  HWY_INLINE Factors Split(hn::Vec<ByteTag> bytes, ShortVec zero) const {
    const hn::RebindToUnsigned<Short> d;
    const auto words = hn::BitCast(d, bytes);
    return {hn::Sub(hn::BitCast(Short(), hn::And(words, hn::Set(d, 0xFF))), zero),
            hn::Sub(hn::BitCast(Short(), hn::ShiftRight<8>(words)), zero)};
  }
  HWY_INLINE ShortVec Multiply(ShortVec a, ShortVec b) const {
    const Short d;
    const auto low = hn::Mul(a, b), high = hn::MulHigh(a, b);
    const auto rounded =
        hn::ReorderDemote2To(d, Round(hn::BitCast(IntTag(), hn::InterleaveLower(d, low, high))),
                             Round(hn::BitCast(IntTag(), hn::InterleaveUpper(d, low, high))));
    return hn::Min(hn::Max(hn::SaturatedAdd(rounded, zero_), min_), max_);
  }
  HWY_INLINE IntVec Round(IntVec product) const {
    const auto p = ToReal(product);
    return NearestInRange(hn::MulAdd(p, scale_, hn::OrAnd(nudge_, p, sign_)));
  }

  ShortVec x_zero_, y_zero_, zero_, min_, max_;
  RealVec scale_, nudge_, sign_;
};

// `count` bytes, XORed with `sign`.
HWY_INLINE hn::Vec<ByteTag> LoadBytes(const uint8_t* from, size_t count, hn::Vec<ByteTag> sign) {
  return hn::Xor(LoadUpTo(ByteTag(), from, count), sign);
}

// Each byte of x by one of y.
void MultiplyRows(const RoundedProduct& rounded, uint8_t flip, const RowBlock& b) {
  const ByteTag d;
  const auto sign = hn::Set(d, flip);
  const ShortProduct f(rounded);
  const size_t n = b.n, lanes = hn::Lanes(d);
  const auto* x = static_cast<const uint8_t*>(b.x);
  const auto* y = static_cast<const uint8_t*>(b.y);
  auto* out = static_cast<uint8_t*>(b.out);
  const auto multiply = [&](size_t i, size_t count) FUSELITE_INLINED {
    const auto products = f(f.x(LoadBytes(x + i, count, sign)), f.y(LoadBytes(y + i, count, sign)));
    StoreUpTo(hn::Xor(products, sign), d, out + i, count);
  };
  for (int64_t r = 0; r < b.rows; ++r) {
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) multiply(i, lanes);
    if (i < n) multiply(i, n - i);
    x += b.x_stride;
    y += b.y_stride;
    out += b.out_stride;
  }
}

template <class F>
HWY_INLINE void MapBytes(const F& f, uint8_t flip, int32_t min, int32_t max, const RowBlock& b) {
  const JoinPlanes join(min, max);
  const auto* x = static_cast<const uint8_t*>(b.x);
  const auto* y = static_cast<const uint8_t*>(b.y);
  auto* out = static_cast<uint8_t*>(b.out);
  for (int64_t row = 0; row < b.rows; ++row) {
    if (b.y_step == 0) {
      MapByteRow<true, false>(f, join, flip, x, y, out, b.n);
    } else if (b.x_step == 0) {
      MapByteRow<false, true>(f, join, flip, x, y, out, b.n);
    } else {
      MapByteRow<true, true>(f, join, flip, x, y, out, b.n);
    }
    x += b.x_stride;
    y += b.y_stride;
    out += b.out_stride;
  }
}

// Rows by one row of divisors, as softmax over another dimension than the innermost divides: what a
// divisor becomes, by two gathers, serves all rows.
void DivideByRow(const QuotientLanes& f, uint8_t flip, int32_t min, int32_t max,
                 const RowBlock& b) {
  const ByteTag d;
  const JoinPlanes join(min, max);
  const auto sign = hn::Set(d, flip);
  const size_t lanes = hn::Lanes(d), n = b.n;
  for (size_t i = 0; i < n; i += lanes) {
    const size_t count = n - i < lanes ? n - i : lanes;
    const auto w = LoadBytes(static_cast<const uint8_t*>(b.y) + i, count, sign);
    const QuotientLanes::Divisor divisors[] = {f.y(Plane<0>(w)), f.y(Plane<1>(w)), f.y(Plane<2>(w)),
                                               f.y(Plane<3>(w))};
    const auto* x = static_cast<const uint8_t*>(b.x) + i;
    auto* out = static_cast<uint8_t*>(b.out) + i;
    for (int64_t row = 0; row < b.rows; ++row) {
      const auto v = LoadBytes(x, count, sign);
      const auto joined = join(f(f.x(Plane<0>(v)), divisors[0]), f(f.x(Plane<1>(v)), divisors[1]),
                               f(f.x(Plane<2>(v)), divisors[2]), f(f.x(Plane<3>(v)), divisors[3]));
      StoreUpTo(hn::Xor(joined, sign), d, out, count);
      x += b.x_stride;
      out += b.out_stride;
    }
  }
}

template <class F>
HWY_INLINE void MapShorts(const F& f, const RowBlock& b) {
  const IntTag d;
  const auto* x = static_cast<const int16_t*>(b.x);
  const auto* y = static_cast<const int16_t*>(b.y);
  auto* out = static_cast<int16_t*>(b.out);
  for (int64_t row = 0; row < b.rows; ++row) {
    ForVectors(b.n, [&](size_t i, size_t count) FUSELITE_INLINED {
      const auto v = b.x_step ? LoadInt(x + i, count) : hn::Set(d, static_cast<int32_t>(*x));
      const auto w = b.y_step ? LoadInt(y + i, count) : hn::Set(d, static_cast<int32_t>(*y));
      StoreInt(f(f.x(v), f.y(w)), out + i, count);
    });
    x += b.x_stride;
    y += b.y_stride;
    out += b.out_stride;
  }
}

HWY_INLINE SumLanes LanesOf(const QuantizedSum& f) { return SumLanes(f); }
HWY_INLINE ProductLanes LanesOf(const QuantizedProduct& f) { return ProductLanes(f); }
HWY_INLINE PreluLanes LanesOf(const QuantizedPrelu& f) { return PreluLanes(f); }
HWY_INLINE SquaredDifferenceLanes LanesOf(const QuantizedSquaredDifference& f) {
  return SquaredDifferenceLanes(f);
}
HWY_INLINE QuotientLanes LanesOf(const TabledQuotient& f) { return QuotientLanes(f); }

template <class Function>
void RunRows(const QuantizedRowFunction& rows, const Function& f, const RowBlock& block) {
  int32_t min, max;
  if constexpr (requires { f.sum; }) {
    min = f.sum.q.min, max = f.sum.q.max;
  } else if constexpr (requires { f.q; }) {
    min = f.q.min, max = f.q.max;
  } else {
    min = f.min, max = f.max;
  }
  if constexpr (std::is_same_v<Function, TabledQuotient>) {
    const bool by_row = block.x_step == 1 && block.y_step == 1 && block.y_stride == 0;
    if (by_row && block.rows > 1) return DivideByRow(LanesOf(f), rows.flip, min, max, block);
  }
  if (rows.type != DataType::kInt16) return MapBytes(LanesOf(f), rows.flip, min, max, block);
  if constexpr (std::is_same_v<Function, QuantizedSum> ||
                std::is_same_v<Function, QuantizedProduct>) {
    MapShorts(LanesOf(f), block);
  }
}

void RunRows(const QuantizedRowFunction& rows, const RoundedSum& f, const RowBlock& block) {
  const auto run = [&](const auto& lanes)
                       HWY_ATTR { MapBytes(lanes, rows.flip, f.min, f.max, block); };
  f.exceptions.count > 0 ? run(CorrectedSumLanes(f)) : run(RoundedSumLanes(f));
}

// The first operand's scale is the larger one as a rule: rows, of which the second is the mean.
void RunRows(const QuantizedRowFunction& rows, const RoundedSquaredDifference& f,
             const RowBlock& block) {
  const OperandScale x = SquaredDifferenceLanes(f.exact).x_scale;
  const auto run = [&](const auto& x_scale) HWY_ATTR {
    MapBytes(RoundedSquaredDifferenceLanes(f, x_scale), rows.flip, f.min, f.max, block);
  };
  if (x.is_shift()) return run(OperandShift(f.exact.sum.q.x_offset, x.left()));
  run(x);
}

// Operands change places where the first is one row, or one value in each row.
void RunRows(const QuantizedRowFunction& rows, RoundedProduct f, RowBlock block) {
  if (block.x_step == 0 || (block.x_stride == 0 && block.y_step == 1)) {
    std::swap(f.x_zero, f.y_zero);
    std::swap(block.x, block.y);
    std::swap(block.x_stride, block.y_stride);
    std::swap(block.x_step, block.y_step);
  }
  if (block.y_step == 1 && (block.y_stride != 0 || block.rows == 1)) {
    return MultiplyRows(f, rows.flip, block);
  }
  rows.flip != 0 ? MultiplyByRepeated<int8_t>(f, rows.flip, block)
                 : MultiplyByRepeated<uint8_t>(f, rows.flip, block);
}

void QuantizedRowsVector(const QuantizedRowFunction& rows, const RowBlock& block) {
  std::visit([&](const auto& f) { RunRows(rows, f, block); }, rows.function);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

QuantizedRowsFunction* QuantizedRows(Isa isa) {
  constexpr auto kRows = FUSELITE_SIMD_TABLE(QuantizedRowsVector);
  return kRows.For(isa);
}

}  // namespace fuselite::kernels
#endif
