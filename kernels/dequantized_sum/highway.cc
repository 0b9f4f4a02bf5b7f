#include "kernels/dequantized_sum/dequantized_sum.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dequantized_sum/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/convert/dequantize_lanes-inl.h"
#include "kernels/convert/quantize_run-inl.h"
#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"
#include "kernels/simd_math/std_max-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;

// A term's numbers in registers: memory that is written in between might hold them.
struct TermVectors {
  TermVectors() = default;
  explicit TermVectors(const SumTerm& term)
      : dequantize(term.scale, term.zero_point),
        low(hn::Set(DF(), term.range.low)),
        high(hn::Set(DF(), term.range.high)) {}

  template <class T>
  HWY_INLINE hn::Vec<DF> Real(const T* x, size_t n) const {
    return dequantize(LoadUpTo(hn::Rebind<T, DF>(), x, n));
  }
  HWY_INLINE hn::Vec<DF> Clamp(hn::Vec<DF> sum) const { return StdMin(StdMax(sum, low), high); }

  DequantizeLanes dequantize;
  hn::Vec<DF> low, high;
};

// A few terms of int8: their sums stay in registers. Finite floats need no clamp to all of them.
template <int kTerms, bool kClamps>
void SumInt8(std::span<const SumTerm> terms, const void* const* x, int64_t count, float* sums) {
  const DF d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  TermVectors vectors[kTerms];
  const int8_t* from[kTerms];
  HWY_UNROLL(4)
  for (int t = 0; t < kTerms; ++t) {
    vectors[t] = TermVectors(terms[t]);
    from[t] = static_cast<const int8_t*>(x[t]);
  }
  for (int64_t i = 0; i < count; i += lanes) {
    const auto n = static_cast<size_t>(count - i);
    auto sum = vectors[0].Real(from[0] + i, n);
    HWY_UNROLL(4)
    for (int t = 1; t < kTerms; ++t) {
      sum = hn::Add(sum, vectors[t].Real(from[t] + i, n));
      if (kClamps) sum = vectors[t].Clamp(sum);
    }
    StoreUpTo(sum, d, sums + i, n);
  }
}

// Adds a term to the sums, or puts it there as the first.
template <class Load>
HWY_INLINE void AddTerm(const TermVectors& term, int64_t count, bool first, float* sums,
                        Load real) {
  const DF d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count; i += lanes) {
    const auto n = static_cast<size_t>(count - i);
    auto sum = real(i, n);
    if (!first) sum = term.Clamp(hn::Add(LoadUpTo(d, sums + i, n), sum));
    StoreUpTo(sum, d, sums + i, n);
  }
}

void SumOfAnyTypes(std::span<const SumTerm> terms, const void* const* x, int64_t count,
                   float* sums) {
  for (size_t t = 0; t < terms.size(); ++t) {
    const TermVectors term(terms[t]);
    const auto add = [&](auto real) HWY_ATTR { AddTerm(term, count, t == 0, sums, real); };
    if (terms[t].type == DataType::kInt8) {
      const auto* const from = static_cast<const int8_t*>(x[t]);
      add([&](int64_t i, size_t n) HWY_ATTR { return term.Real(from + i, n); });
    } else if (terms[t].type == DataType::kUInt8) {
      const auto* const from = static_cast<const uint8_t*>(x[t]);
      add([&](int64_t i, size_t n) HWY_ATTR { return term.Real(from + i, n); });
    } else {
      const auto* const from = static_cast<const float*>(x[t]);
      add([&](int64_t i, size_t n) HWY_ATTR { return LoadUpTo(DF(), from + i, n); });
    }
  }
}

void SumTermsVector(std::span<const SumTerm> terms, const void* const* x, int64_t count,
                    float* sums) {
  const auto is_int8 = [](const SumTerm& term) { return term.type == DataType::kInt8; };
  const auto clamps = [](const SumTerm& term) {
    return term.range.low > DequantizedSumParams::kLowest ||
           term.range.high < DequantizedSumParams::kHighest;
  };
  if (!std::ranges::all_of(terms, is_int8)) return SumOfAnyTypes(terms, x, count, sums);
  const bool clamped = std::ranges::any_of(terms.subspan(1), clamps);
  switch (terms.size()) {
    case 2: return (clamped ? SumInt8<2, true> : SumInt8<2, false>)(terms, x, count, sums);
    case 3: return (clamped ? SumInt8<3, true> : SumInt8<3, false>)(terms, x, count, sums);
    case 4: return (clamped ? SumInt8<4, true> : SumInt8<4, false>)(terms, x, count, sums);
    default: return SumOfAnyTypes(terms, x, count, sums);
  }
}

void SumsToInt8(const float* sums, void* out, int64_t n, float scale, int32_t zero_point) {
  QuantizeToBytes(sums, static_cast<int8_t*>(out), n, scale, zero_point);
}
void SumsToUInt8(const float* sums, void* out, int64_t n, float scale, int32_t zero_point) {
  QuantizeToBytes(sums, static_cast<uint8_t*>(out), n, scale, zero_point);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

Result<std::unique_ptr<Kernel>> BuildDequantizedSumHighway(const OpDescription& op,
                                                           const BuildContext& context) {
  constexpr auto kSum = FUSELITE_SIMD_TABLE(SumTermsVector);
  constexpr auto kInt8 = FUSELITE_SIMD_TABLE(SumsToInt8);
  constexpr auto kUInt8 = FUSELITE_SIMD_TABLE(SumsToUInt8);
  FUSELITE_ASSIGN_OR_RETURN(auto* const sum, kSum.Require(context.isa));
  const auto& table = op.outputs[0].type == DataType::kInt8 ? kInt8 : kUInt8;
  FUSELITE_ASSIGN_OR_RETURN(auto* const quantize, table.Require(context.isa));
  return MakeDequantizedSum(std::string("dequantized sum ") + SimdName(context.isa), op, sum,
                            quantize);
}

}  // namespace fuselite::kernels
#endif
