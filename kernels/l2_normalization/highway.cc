#include "kernels/l2_normalization/l2_normalization.h"
#include "kernels/row_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/l2_normalization/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "kernels/simd.h"
#include "kernels/simd_math/row_sums-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void L2NormalizationRow(const float* in, float* out, size_t n) {
  const hn::ScalableTag<float> d;
  const float sum = RowSum(in, n, [](auto x) HWY_ATTR { return hn::Mul(x, x); });
  const auto norm = hn::Set(d, std::max(std::sqrt(sum), 1e-6f));
  RowMap(in, out, n, [&](auto x) HWY_ATTR { return hn::Div(x, norm); });
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

Result<std::unique_ptr<Kernel>> BuildL2NormalizationHighway(const OpDescription& op,
                                                            const BuildContext& context) {
  if (op.inputs[0].type != DataType::kFloat32) {
    return Unsupported(DataTypeName(op.inputs[0].type), " is not float32");
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
