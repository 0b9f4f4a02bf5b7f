#include "kernels/elementwise/short_floats/short_float_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/short_floats/short_float_functions.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>

#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/short_floats/half_table.h"
#include "kernels/elementwise/short_floats/short_floats.h"
#include "kernels/elementwise/typed/typed_map.h"
#include "kernels/numbers/short_floats.h"
#include "kernels/simd.h"
#include "kernels/simd_math/short_floats-inl.h"
#include "kernels/simd_math/sines-inl.h"
#include "kernels/tail/float_stages-inl.h"
#include "runtime/tflite/builtin_codes.h"

#ifndef FUSELITE_KERNELS_ELEMENTWISE_SHORT_FLOAT_FUNCTIONS_ONCE_
#define FUSELITE_KERNELS_ELEMENTWISE_SHORT_FLOAT_FUNCTIONS_ONCE_
namespace fuselite::kernels {

// out[i] = f(in[i]); the two may be one.
using ShortFloatMap = void (*)(const void* in, void* out, int64_t n);

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The sine of x = m pi + r and the cosine of x = (m - 1/2) pi + r, of floats of 11 significant bits
// up to 65504: both are (-1)^m sin(r). With FMA the product by the first part of pi, of 24
// bits, leaves an exact difference, and what the second leaves out is a millionth of the smallest
// remainder at most.
template <bool kIsCosine>
HWY_INLINE FloatVec SineOfShortFloat(FloatVec x) {
#if HWY_NATIVE_FMA
  // (sin(r) / r - 1) / r^2 for |r| up to a bit more than pi / 2, relative error of the sine 9e-9:
  // those bits of the coefficients, of many tried, that give every float16 the nearest result.
  constexpr float kTail[] = {-0.166666612f, 0.00833309069f, -0.000198100461f, 2.60546835e-06f};
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> bits;
  const FloatVec whole = hn::Set(d, 0x1.8p23f);  // which leaves m in the last bits
  const FloatVec by_pi = hn::Set(d, 0x1.45f306p-2f), half = hn::Set(d, kIsCosine ? 0.5f : 0.0f);
  const FloatVec sum = hn::Add(hn::MulAdd(x, by_pi, half), whole);
  const FloatVec count = hn::Sub(hn::Sub(sum, whole), half);
  const FloatVec near = hn::NegMulAdd(count, hn::Set(d, 0x1.921fb6p+1f), x);
  const FloatVec r = hn::NegMulAdd(count, hn::Set(d, -0x1.777a5cp-24f), near);
  const FloatVec z = hn::Mul(r, r);
  const FloatVec sine = hn::MulAdd(hn::Mul(r, z), Polynomial(d, z, kTail), r);
  return hn::Xor(sine, hn::BitCast(d, hn::ShiftLeft<31>(hn::BitCast(bits, sum))));
#else
  const FloatTag d;
  const hn::RepartitionToWide<FloatTag> wide;
  const hn::Rebind<float, decltype(wide)> half;
  hn::Vec<decltype(wide)> halves[] = {hn::PromoteTo(wide, hn::LowerHalf(half, x)),
                                      hn::PromoteTo(wide, hn::UpperHalf(half, x))};
  SinesOfFloats<kIsCosine>(wide, halves);
  return hn::Combine(d, hn::DemoteTo(half, halves[1]), hn::DemoteTo(half, halves[0]));
#endif
}

struct CosOf {
  static HWY_INLINE FloatVec Vector(FloatVec x) { return SineOfShortFloat<true>(x); }
};
struct SinOf {
  static HWY_INLINE FloatVec Vector(FloatVec x) { return SineOfShortFloat<false>(x); }
};
struct FloorOf {
  static HWY_INLINE FloatVec Vector(FloatVec x) { return hn::Floor(x); }
};
// A zero comes out positive.
struct RoundOf {
  static HWY_INLINE FloatVec Vector(FloatVec x) {
    return hn::Add(hn::Round(x), hn::Zero(FloatTag()));
  }
};
// e^x, x at most 9.
struct PowerOf {
  static HWY_INLINE FloatVec Vector(FloatVec x) {
    const FloatTag d;
    const ExpParts<FloatTag, FloatVec> parts(d, AtLeast(d, x, -104.0f));
    return TimesPowerOfTwo(d, hn::Add(parts.expm1_r, hn::Set(d, 1.0f)), parts.q, parts.whole);
  }
};
// The same of a float16, below -18 at most 2^-25, which rounds to 0: one step reduces it, and the
// power of two is never denormal.
struct PowerOfHalf {
  static HWY_INLINE FloatVec Vector(FloatVec x) {
#if HWY_NATIVE_FMA
    // e^r for |r| up to ln(2) / 2. Relative error 1.1e-7: the logistic function of every float16
    // has LiteRT's result.
    constexpr float kExp[] = {1.0f,         1.0f,          0.499992281f,
                              0.166671157f, 0.0418905549f, 0.00831247773f};
    const FloatTag d;
    const hn::RebindToSigned<FloatTag> di;
    const FloatVec whole = hn::Set(d, 0x1.8p23f), bounded = AtLeast(d, x, -18.0f);
    // The number of doublings is in the last bits. A NaN of float16 has zeros there, and stays one.
    const FloatVec sum = hn::MulAdd(bounded, hn::Set(d, 0x1.715476p0f), whole);
    const FloatVec r = hn::NegMulAdd(hn::Sub(sum, whole), hn::Set(d, 0x1.62e43p-1f), bounded);
    const auto doublings = hn::ShiftLeft<23>(hn::BitCast(di, sum));
    return hn::BitCast(d, hn::Add(hn::BitCast(di, Polynomial(d, r, kExp)), doublings));
#else
    return PowerOf::Vector(x);
#endif
  }
};
// An exponential below -9, as LiteRT has it.
template <class Power>
struct LogisticBy {
  static HWY_INLINE FloatVec Vector(FloatVec x) {
    const FloatTag d;
    const FloatVec one = hn::Set(d, 1.0f);
    const auto is_small = hn::Lt(x, hn::Set(d, -9.0f));
    const FloatVec power = Power::Vector(hn::IfThenElse(is_small, x, hn::Neg(x)));
    return hn::IfThenElse(is_small, power, hn::Div(one, hn::Add(one, power)));
  }
};

// x P(x^2) / Q(x^2) up to 4.6, from where on results round to 1. Relative error of the fit 2.8e-8.
struct TanhOf {
  static HWY_INLINE FloatVec Vector(FloatVec x) {
    constexpr float kP[] = {1.0f, 0.125870749f, 0.0025482669f, 5.4346533e-06f};
    constexpr float kQ[] = {1.0f, 0.45920378f, 0.0222833939f, 0.000173898181f};
    const FloatTag d;
    const FloatVec bounded = ClampVec(x, -4.6f, 4.6f);
    const FloatVec square = hn::Mul(bounded, bounded);
    return hn::Div(hn::Mul(bounded, Polynomial(d, square, kP)), Polynomial(d, square, kQ));
  }
};

// GELU by a tanh, each operation rounded as LiteRT's are: a result rounded once differs from it in
// whole per cents where they cancel.
struct GeluTanhOf {
  static HWY_INLINE FloatVec Vector(FloatVec x) {
    const FloatTag d;
    const auto set = [](double value) HWY_ATTR {
      return hn::Set(FloatTag(), static_cast<float>(Half(static_cast<float>(value))));
    };
    const auto rounded = [](FloatVec v) HWY_ATTR { return RoundedToShort<Half>(FloatTag(), v); };
    const auto product = [&](FloatVec a, FloatVec b) HWY_ATTR { return rounded(hn::Mul(a, b)); };
    const auto sum = [&](FloatVec a, FloatVec b) HWY_ATTR { return rounded(hn::Add(a, b)); };
    const FloatVec cube = product(product(x, x), x);
    const FloatVec inner =
        product(set(M_2_SQRTPI * M_SQRT1_2), sum(x, product(set(0.044715), cube)));
    const FloatVec factor = sum(hn::Set(d, 1.0f), rounded(TanhOf::Vector(inner)));
    return hn::Mul(product(hn::Set(d, 0.5f), x), factor);
  }
};

template <class T, class F>
void MapShortFloats(const void* in, void* out, int64_t n) {
  const FloatTag d;
  const auto* const from = static_cast<const T*>(in);
  auto* const to = static_cast<T*>(out);
  ForVectors(d, static_cast<size_t>(n), [&](size_t i, size_t count) HWY_ATTR {
    StoreShortFloats(d, F::Vector(LoadShortFloats(d, from + i, count)), to + i, count);
  });
}

template <class T>
ShortFloatMap MapOf(const OpDescription& op) {
  switch (op.op->builtin_code) {
    case tflite::kTfLiteBuiltinCos: return &MapShortFloats<T, CosOf>;
    case tflite::kTfLiteBuiltinFloor: return &MapShortFloats<T, FloorOf>;
    case tflite::kTfLiteBuiltinLogistic: {
      using Power = std::conditional_t<std::is_same_v<T, Half>, PowerOfHalf, PowerOf>;
      return &MapShortFloats<T, LogisticBy<Power>>;
    }
    case tflite::kTfLiteBuiltinRound: return &MapShortFloats<T, RoundOf>;
    case tflite::kTfLiteBuiltinSin: return &MapShortFloats<T, SinOf>;
    case tflite::kTfLiteBuiltinTanh: return &MapShortFloats<T, TanhOf>;
    default: return nullptr;
  }
}

ShortFloatMap FindMap(const OpDescription& op) {
  return op.inputs[0].type == DataType::kFloat16 ? MapOf<Half>(op) : MapOf<BFloat16>(op);
}

void MapGeluTanh(const void* in, void* out, int64_t n) {
  MapShortFloats<Half, GeluTanhOf>(in, out, n);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

Result<std::unique_ptr<Kernel>> BuildMap(const OpDescription& op, const PlanContext& context) {
  constexpr auto kFindMap = FUSELITE_SIMD_TABLE(FindMap);
  FUSELITE_ASSIGN_OR_RETURN(auto* const find, kFindMap.Require(context.isa));
  const ShortFloatMap map = find(op);
  if (map == nullptr) {
    return Unsupported(op.op->name, " of ", DataTypeName(op.inputs[0].type), " has no vectors");
  }
  return MakeUnaryRows<uint16_t, uint16_t>(op,
                                           std::string(op.op->name) + " " +
                                               std::string(DataTypeName(op.inputs[0].type)) + " " +
                                               SimdName(context.isa),
                                           /*work=*/4, map);
}

// A table: by tanh GELU takes 1.1 ns with vectors, three times as long as a lookup, and by erfc 18
// ns without them.
Result<KernelPlan> PlanGelu(const OpDescription& op, const PlanContext& context) {
  constexpr auto kMapGeluTanh = FUSELITE_SIMD_TABLE(MapGeluTanh);
  FUSELITE_ASSIGN_OR_RETURN(const ShortFloatMap gelu_tanh, kMapGeluTanh.Require(context.isa));
  if (op.params.as<GeluParams>().approximate) {
    return PlanHalfTable(op, "gelu_tanh", [gelu_tanh](std::span<Half> values) {
      gelu_tanh(values.data(), values.data(), static_cast<int64_t>(values.size()));
    });
  }
  return PlanHalfTable(op, "gelu", [](std::span<Half> values) {
    std::transform(values.begin(), values.end(), values.begin(), Gelu);
  });
}

}  // namespace

Result<KernelPlan> PlanShortFloatUnaryRows(const OpDescription& op, const PlanContext& context) {
  if (!op.tail.empty()) return Unsupported("does not take a tail behind ", op.op->name);
  if (op.op->builtin_code == tflite::kTfLiteBuiltinGelu) return PlanGelu(op, context);
  return OwnPlan(BuildMap(op, context));
}

}  // namespace fuselite::kernels
#endif
