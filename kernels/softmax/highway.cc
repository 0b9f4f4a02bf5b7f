#include "kernels/row_kernel.h"
#include "kernels/softmax/quantized.h"
#include "kernels/softmax/softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/softmax/softmax-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {

void SoftmaxRowVector(const float* in, float* out, size_t n, float beta) {
  SoftmaxRow(in, out, n, beta);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

Result<std::unique_ptr<Kernel>> BuildSoftmaxHighway(const OpDescription& op,
                                                    const BuildContext& context) {
  if (op.inputs[0].type == DataType::kFloat16) return Unsupported("float16 has scalar code alone");
  if (op.inputs[0].type != DataType::kFloat32) return BuildQuantizedSoftmaxHighway(op, context);
  const float beta = op.params.as<SoftmaxParams>().beta;
  if (!(beta >= 0)) return Unsupported("beta is ", beta);
  constexpr auto kSoftmaxRow = FUSELITE_SIMD_TABLE(SoftmaxRowVector);
  FUSELITE_ASSIGN_OR_RETURN(auto* const row, kSoftmaxRow.Require(context.isa));
  const TensorInfo& in = op.inputs[0];
  return MakeRowKernel(std::string("softmax f32 ") + SimdName(context.isa), op,
                       ApplyTail(context.isa), 8,
                       [row, beta, n = in.shape.dim(-1)](const KernelArgs&, const float* x,
                                                         float* y) { row(x, y, n, beta); });
}

}  // namespace fuselite::kernels
#endif
