#include "kernels/l2_normalization/l2_normalization.h"
#include "kernels/numbers/fixed_point.h"
#include "kernels/rows/row_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/l2_normalization/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"
#include "kernels/simd_math/row_sums-inl.h"
#include "kernels/simd_math/uniform_scale-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A row of up to the lanes of `D` is loaded once, for its sum and for what becomes of it.
template <class D>
HWY_INLINE void ShortRow(D d, const float* in, float* out, size_t n) {
  const auto x = LoadPartial(d, in, n);
  const auto norm = hn::Max(hn::Sqrt(hn::SumOfLanes(d, hn::Mul(x, x))), hn::Set(d, 1e-6f));
  StorePartial(hn::Div(x, norm), d, out, n);
}

void L2NormalizationRow(const float* in, float* out, size_t n) {
  const hn::ScalableTag<float> d;
  if (n <= 4) {  // by vectors one takes as long as four of these
    float sum = 0;
    for (size_t i = 0; i < n; ++i) sum += in[i] * in[i];
    const float norm = std::max(std::sqrt(sum), 1e-6f);
    for (size_t i = 0; i < n; ++i) out[i] = in[i] / norm;
    return;
  }
  const hn::CappedTag<float, 8> narrow;
  if (n <= hn::Lanes(narrow)) return ShortRow(narrow, in, out, n);
  const float sum = RowSum(in, n, [](auto x) HWY_ATTR { return hn::Mul(x, x); });
  const auto norm = hn::Set(d, std::max(std::sqrt(sum), 1e-6f));
  RowMap(in, out, n, [&](auto x) HWY_ATTR { return hn::Div(x, norm); });
}

// The sum of (x - zero_point)^2, which fits into 32 bits (CheckQuantized).
template <class T>
HWY_INLINE int32_t SumOfSquares(const T* in, size_t n, int32_t zero_point) {
  const hn::ScalableTag<int32_t> d;
  const hn::Rebind<T, decltype(d)> narrow;
  const auto zero = hn::Set(d, zero_point);
  const size_t lanes = hn::Lanes(d);
  auto sum = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto x = hn::Sub(hn::PromoteTo(d, hn::LoadU(narrow, in + i)), zero);
    sum = hn::Add(sum, hn::Mul(x, x));
  }
  if (i < n) {
    const auto last = hn::Sub(hn::PromoteTo(d, LoadPartial(narrow, in + i, n - i)), zero);
    const auto x = hn::IfThenElseZero(hn::FirstN(d, n - i), last);
    sum = hn::Add(sum, hn::Mul(x, x));
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// Results are units of 1/128, as in the reference: uint8 multiplies by 128 first, int8 folds that
// into the shift. Narrowing clamps to the type's range.
template <class T>
void QuantizedRow(const T* in, T* out, size_t n, int32_t zero_point) {
  constexpr bool kSigned = std::is_signed_v<T>;
  const hn::ScalableTag<int32_t> d;
  const hn::Rebind<T, decltype(d)> narrow;
  const FixedPoint inverse = FixedInverseSqrt(SumOfSquares(in, n, zero_point));
  const UniformScale scale(inverse.multiplier, inverse.shift + (kSigned ? 7 : 0));
  const auto in_zero = hn::Set(d, zero_point), out_zero = hn::Set(d, kSigned ? 0 : 128);
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < n; i += lanes) {
    const auto x = hn::Sub(hn::PromoteTo(d, LoadUpTo(narrow, in + i, n - i)), in_zero);
    const auto y = hn::Add(scale(kSigned ? x : hn::ShiftLeft<7>(x)), out_zero);
    StoreUpTo(hn::DemoteTo(narrow, y), narrow, out + i, n - i);
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

template <class T, class Row>
std::unique_ptr<Kernel> MakeQuantized(const OpDescription& op, Isa isa, Row row) {
  const TensorInfo& in = op.inputs[0];
  return MakeQuantizedRowKernel<T, T>(
      "l2_normalization " + std::string(DataTypeName(in.type)) + " " + SimdName(isa), op, 1, 0,
      [row, n = in.shape.dim(-1), zero_point = in.quantization.zero_point()](
          const KernelArgs&, const T* x, T* y) { row(x, y, n, zero_point); });
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildL2NormalizationHighway(const OpDescription& op,
                                                            const BuildContext& context) {
  constexpr auto kInt8Row = FUSELITE_SIMD_TABLE(QuantizedRow<int8_t>);
  constexpr auto kUInt8Row = FUSELITE_SIMD_TABLE(QuantizedRow<uint8_t>);
  if (op.inputs[0].type == DataType::kInt8) {
    FUSELITE_ASSIGN_OR_RETURN(auto* const row, kInt8Row.Require(context.isa));
    return MakeQuantized<int8_t>(op, context.isa, row);
  }
  if (op.inputs[0].type == DataType::kUInt8) {
    FUSELITE_ASSIGN_OR_RETURN(auto* const row, kUInt8Row.Require(context.isa));
    return MakeQuantized<uint8_t>(op, context.isa, row);
  }
  constexpr auto kRow = FUSELITE_SIMD_TABLE(L2NormalizationRow);
  FUSELITE_ASSIGN_OR_RETURN(auto* const row, kRow.Require(context.isa));
  return MakeRowKernel(std::string("l2_normalization f32 ") + SimdName(context.isa), op,
                       ApplyTail(context.isa), 2,
                       [row, n = op.inputs[0].shape.dim(-1)](const KernelArgs&, const float* x,
                                                             float* y) { row(x, y, n); });
}

}  // namespace fuselite::kernels
#endif
