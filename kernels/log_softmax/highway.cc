#include "kernels/log_softmax/quantized.h"
#include "kernels/rows/row_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/log_softmax/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>

#include "kernels/simd.h"
#include "kernels/simd_math/row_sums-inl.h"
#include "kernels/simd_math/simd_math-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void LogSoftmaxRow(const float* in, float* out, size_t n) {
  if (n == 1) {
    // 0, or a NaN where the value is none that is finite; by vectors it takes 24 ns.
    *out = *in - *in;
    return;
  }
  const hn::ScalableTag<float> d;
  const auto largest = hn::Set(d, RowMax(in, n));
  const float sum = RowSum(in, n, [&](auto x) HWY_ATTR { return VecExp(d, hn::Sub(x, largest)); });
  const auto log_sum = hn::Set(d, std::log(sum));
  RowMap(in, out, n, [&](auto x) HWY_ATTR { return hn::Sub(hn::Sub(x, largest), log_sum); });
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

Result<std::unique_ptr<Kernel>> BuildLogSoftmaxHighway(const OpDescription& op,
                                                       const BuildContext& context) {
  if (op.inputs[0].type != DataType::kFloat32) return BuildQuantizedLogSoftmaxHighway(op, context);
  constexpr auto kRow = FUSELITE_SIMD_TABLE(LogSoftmaxRow);
  FUSELITE_ASSIGN_OR_RETURN(auto* const row, kRow.Require(context.isa));
  return MakeRowKernel(std::string("log_softmax f32 ") + SimdName(context.isa), op,
                       ApplyTail(context.isa), 8,
                       [row, n = op.inputs[0].shape.dim(-1)](const KernelArgs&, const float* x,
                                                             float* y) { row(x, y, n); });
}

}  // namespace fuselite::kernels
#endif
