// SOFTMAX of int16 with vectors: a vector gathers the pieces of its exponentials.
#include <algorithm>

#include "kernels/rows/row_kernel.h"
#include "kernels/softmax/quantized.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax/int16_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/interpolate-inl.h"
#include "kernels/simd_math/partial-inl.h"
#include "kernels/simd_math/uniform_scale-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Ints = hn::ScalableTag<int32_t>;
using Narrow = hn::Rebind<int16_t, Ints>;

HWY_INLINE int32_t LargestOf(const int16_t* in, int64_t n) {
  const hn::ScalableTag<int16_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto largest = hn::Set(d, in[0]);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) largest = hn::Max(largest, hn::LoadU(d, in + i));
  const int16_t of_rest = *std::max_element(in + std::min(i, n - 1), in + n);
  return std::max(of_rest, hn::GetLane(hn::MaxOfLanes(d, largest)));
}

HWY_INLINE void StoreNarrow(hn::Vec<Ints> v, int16_t* out, int64_t count) {
  StoreUpTo(hn::DemoteTo(Narrow(), v), Narrow(), out, count);
}

// Exponentials of the row's values less its largest one, with 15 fraction bits; gives their sum.
HWY_INLINE int32_t Exponentials(const Int16Softmax& softmax, const int16_t* in, int16_t* out) {
  const Ints d;
  const UniformScale scale(softmax.scale.multiplier, softmax.scale.shift);
  const auto largest = hn::Set(d, LargestOf(in, softmax.n));
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sum = hn::Zero(d);
  for (int64_t i = 0; i < softmax.n; i += lanes) {
    const int64_t left = softmax.n - i;
    const auto difference =
        scale(hn::Sub(hn::PromoteTo(d, LoadUpTo(Narrow(), in + i, left)), largest));
    const auto bounded = hn::Max(hn::Min(difference, hn::Zero(d)), hn::Set(d, -65535));
    const auto x = hn::Add(bounded, hn::Set(d, 32767));
    // Exponentials are not negative.
    const auto e = hn::And(Interpolate(softmax.exp->middle_piece(), x), hn::Set(d, 0xffff));
    StoreNarrow(e, out + i, left);
    sum = hn::Add(sum, left < lanes ? hn::IfThenElseZero(hn::FirstN(d, left), e) : e);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

void Int16SoftmaxRow(const Int16Softmax& softmax, const int16_t* in, int16_t* out) {
  const Ints d;
  const InverseOfSum inverse = Int16Softmax::InverseOf(Exponentials(softmax, in, out));
  const auto factor = hn::Set(d, inverse.factor);
  const auto half = hn::Set(d, 1 << (inverse.shift - 1));
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < softmax.n; i += lanes) {
    const int64_t left = softmax.n - i;
    const auto e = hn::PromoteTo(d, LoadUpTo(Narrow(), out + i, left));
    StoreNarrow(hn::ShiftRightSame(hn::Add(hn::Mul(e, factor), half), inverse.shift), out + i,
                left);
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

Result<std::unique_ptr<Kernel>> BuildInt16SoftmaxHighway(const OpDescription& op, Isa isa) {
  constexpr auto kRow = FUSELITE_SIMD_TABLE(Int16SoftmaxRow);
  FUSELITE_ASSIGN_OR_RETURN(auto* const row, kRow.Require(isa));
  // By vectors rows of one to four values take 60 ns, value by value 16 to 40 (Zen 3).
  constexpr int64_t kShort = 4;
  const bool is_short = op.inputs[0].shape.dim(-1) <= kShort;
  return MakeQuantizedRowKernel<int16_t, int16_t>(
      std::string("softmax int16 ") + (is_short ? "short rows" : SimdName(isa)), op, 1, 0,
      [softmax = Int16Softmax(op), row = is_short ? &Int16SoftmaxScalarRow : row](
          const KernelArgs&, const int16_t* x, int16_t* y) { row(softmax, x, y); });
}

}  // namespace fuselite::kernels
#endif
