#include "kernels/recurrent/row_functions.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/recurrent/row_functions.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"
#include "kernels/simd_math/row_sums-inl.h"
#include "kernels/simd_math/simd_math-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Loops other than tanh's the compiler vectorizes.
void ActivateRow(Activation activation, float* values, int64_t n) {
  if (activation == Activation::kTanh) {
    const hn::ScalableTag<float> d;
    return RowMap(values, values, static_cast<size_t>(n),
                  [=](auto x) HWY_ATTR { return VecTanh(d, x); });
  }
  if (activation == Activation::kNone) return;
  for (int64_t i = 0; i < n; ++i) values[i] = Activate(activation, values[i]);
}

// Filters of short memories: their products as one row, each summed in order. Four rows by 92
// filters of 5 bytes take 4.1 us so, and 10.8 where each filter has a vector, partly filled: which
// takes long with bytes, with floats little (Zen 3; LiteRT 5.2).
constexpr int64_t kShortFloats = 10, kShortBytes = 32;
template <class Load>
HWY_INLINE void RememberShort(const FilterMemory& f, Load load) {
  constexpr int64_t kProducts = 512;
  const hn::ScalableTag<float> d;
  HWY_ALIGN float products[kProducts];
  const int64_t together = kProducts / f.memory;
  for (int64_t begin = 0; begin < f.filters; begin += together) {
    const int64_t filters = HWY_MIN(together, f.filters - begin), first = begin * f.memory;
    ForVectors(d, static_cast<size_t>(filters * f.memory), [&](size_t i, size_t n) HWY_ATTR {
      const int64_t at = first + static_cast<int64_t>(i);
      StoreUpTo(hn::Mul(load(at, n), LoadUpTo(d, f.state + at, n)), d, products + i, n);
    });
    for (int64_t filter = 0; filter < filters; ++filter) {
      float sum = 0;
      for (int64_t i = 0; i < f.memory; ++i) sum += products[filter * f.memory + i];
      f.sums[begin + filter] = sum;
    }
  }
}

// `load(at, count)`: the times from element `at` on. Memories up to `longest_short` are short.
template <class Load>
HWY_INLINE void RememberBy(const FilterMemory& f, int64_t longest_short, Load load) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (f.memory <= longest_short && f.memory % lanes != 0) return RememberShort(f, load);
  for (int64_t filter = 0; filter < f.filters; ++filter) {
    const int64_t first = filter * f.memory, last = first + f.memory;
    auto sum = hn::Zero(d);
    for (int64_t i = first; i < last; i += lanes) {
      const auto n = static_cast<size_t>(HWY_MIN(lanes, last - i));
      sum = hn::MulAdd(load(i, n), LoadUpTo(d, f.state + i, n), sum);
    }
    f.sums[filter] = hn::GetLane(hn::SumOfLanes(d, sum));
  }
}

void RememberFloats(const FilterMemory& f) {
  const auto* times = static_cast<const float*>(f.times);
  RememberBy(f, kShortFloats, [=](int64_t i, size_t n) HWY_ATTR {
    return LoadUpTo(hn::ScalableTag<float>(), times + i, n);
  });
}

void RememberBytes(const FilterMemory& f) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> wide;
  const hn::Rebind<int8_t, decltype(d)> narrow;
  const auto* times = static_cast<const int8_t*>(f.times);
  const auto scale = hn::Set(d, f.scale);
  RememberBy(f, kShortBytes, [&](int64_t i, size_t n) HWY_ATTR {
    const auto bytes = LoadUpTo(narrow, times + i, n);
    return hn::Mul(hn::ConvertTo(d, hn::PromoteTo(wide, bytes)), scale);
  });
}

RecurrentFunctions Functions(const UnpackedFunctions& products,
                             const ShortRowFunctions& short_rows) {
  return {products, &short_rows, ActivateRow, RememberFloats, RememberBytes};
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

void ActivateScalars(Activation activation, float* values, int64_t n) {
  for (int64_t i = 0; i < n; ++i) values[i] = Activate(activation, values[i]);
}

template <class T>
void RememberScalars(const FilterMemory& f) {
  const auto* times = static_cast<const T*>(f.times);
  for (int64_t filter = 0; filter < f.filters; ++filter) {
    float sum = 0;
    for (int64_t i = filter * f.memory; i < (filter + 1) * f.memory; ++i) {
      const float time = std::is_same_v<T, float> ? times[i] : times[i] * f.scale;
      sum += time * f.state[i];
    }
    f.sums[filter] = sum;
  }
}

}  // namespace

RowOperand RecurrentFunctions::Prepare(const float* values, int64_t n, bool asymmetric,
                                       int16_t* quantized) const {
  if (short_rows == nullptr || quantized == nullptr || n == 0) {
    return PrepareRow(values, n, asymmetric, quantized);
  }
  DynamicRange range{values[0], values[0]};
  short_rows->extend_range(values, n, &range);
  const DynamicScale scale = MakeDynamicScale(range, asymmetric);
  short_rows->quantize(values, n, scale, quantized);
  return {values, n, quantized, scale.scale};
}

Result<RecurrentFunctions> FindRecurrentFunctions(Isa isa) {
  constexpr auto kFunctions = FUSELITE_SIMD_TABLE(Functions);
  FUSELITE_ASSIGN_OR_RETURN(auto* const functions, kFunctions.Require(isa));
  return functions(*FindUnpackedFunctions(isa), *FindShortRowFunctions(isa));
}

RecurrentFunctions ScalarRecurrentFunctions() {
  return {ScalarUnpackedFunctions(), nullptr, ActivateScalars, RememberScalars<float>,
          RememberScalars<int8_t>};
}

}  // namespace fuselite::kernels
#endif
