#include "kernels/row_kernel.h"
#include "kernels/softmax/quantized.h"
#include "kernels/softmax/softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/short_floats.h"
#include "kernels/simd.h"
#include "kernels/simd_math/short_floats-inl.h"
#include "kernels/softmax/softmax-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {

void SoftmaxRowVector(const float* in, float* out, size_t n, float beta) {
  SoftmaxRow(in, out, n, beta);
}

// `v` in the first `count` lanes, `other` behind them.
HWY_INLINE hn::Vec<hn::ScalableTag<float>> FirstOf(size_t count, hn::Vec<hn::ScalableTag<float>> v,
                                                   hn::Vec<hn::ScalableTag<float>> other) {
  const hn::ScalableTag<float> d;
  return count < hn::Lanes(d) ? hn::IfThenElse(hn::FirstN(d, count), v, other) : v;
}

// As the reference: exponentials are rounded before they are divided, their sum is not.
void SoftmaxRowHalf(const Half* in, Half* out, size_t n, float beta) {
  const hn::ScalableTag<float> d;
  const auto lowest = hn::Set(d, -Half::kMax), scale = hn::Set(d, beta);
  auto largest = lowest, sum = hn::Zero(d);
  ForVectors(d, n, [&](size_t i, size_t count) HWY_ATTR {
    const auto x = LoadShortFloats(d, in + i, count);
    largest = StdMax(largest, FirstOf(count, x, lowest));
  });
  largest = hn::MaxOfLanes(d, largest);
  ForVectors(d, n, [&](size_t i, size_t count) HWY_ATTR {
    const auto x = LoadShortFloats(d, in + i, count);
    const auto power = VecExpNonPositive(d, hn::Mul(hn::Sub(x, largest), scale));
    StoreShortFloats(d, power, out + i, count);
    sum = hn::Add(sum, FirstOf(count, power, hn::Zero(d)));
  });
  sum = hn::SumOfLanes(d, sum);
  ForVectors(d, n, [&](size_t i, size_t count) HWY_ATTR {
    StoreShortFloats(d, hn::Div(LoadShortFloats(d, out + i, count), sum), out + i, count);
  });
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

Result<std::unique_ptr<Kernel>> BuildSoftmaxHighway(const OpDescription& op,
                                                    const BuildContext& context) {
  const TensorInfo& in = op.inputs[0];
  const bool is_half = in.type == DataType::kFloat16;
  if (!is_half && in.type != DataType::kFloat32) return BuildQuantizedSoftmaxHighway(op, context);
  const float beta = op.params.as<SoftmaxParams>().beta;
  if (!(beta >= 0)) return Unsupported("beta is ", beta);
  if (is_half) {
    constexpr auto kSoftmaxRowHalf = FUSELITE_SIMD_TABLE(SoftmaxRowHalf);
    FUSELITE_ASSIGN_OR_RETURN(auto* const row, kSoftmaxRowHalf.Require(context.isa));
    return MakeQuantizedRowKernel<Half, Half>(
        std::string("softmax f16 ") + SimdName(context.isa), op, 8, 0,
        [row, beta, n = in.shape.dim(-1)](const KernelArgs&, const Half* x, Half* y) {
          row(x, y, n, beta);
        });
  }
  constexpr auto kSoftmaxRow = FUSELITE_SIMD_TABLE(SoftmaxRowVector);
  FUSELITE_ASSIGN_OR_RETURN(auto* const row, kSoftmaxRow.Require(context.isa));
  return MakeRowKernel(std::string("softmax f32 ") + SimdName(context.isa), op,
                       ApplyTail(context.isa), 8,
                       [row, beta, n = in.shape.dim(-1)](const KernelArgs&, const float* x,
                                                         float* y) { row(x, y, n, beta); });
}

}  // namespace fuselite::kernels
#endif
