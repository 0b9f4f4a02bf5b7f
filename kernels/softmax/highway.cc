#include "kernels/row_kernel.h"
#include "kernels/softmax/quantized.h"
#include "kernels/softmax/softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/short_floats-inl.h"
#include "kernels/softmax/softmax-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {

void SoftmaxRowVector(const float* in, float* out, size_t n, float beta) {
  SoftmaxRow(in, out, n, beta);
}

// `floats`: room for a row.
void SoftmaxRowOfHalves(const Half* in, Half* out, int64_t n, float beta, float* floats) {
  WidenShortFloats(in, n, floats);
  SoftmaxRow(floats, floats, static_cast<size_t>(n), beta);
  NarrowToShortFloats(floats, n, out);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

// As floats, rounded once at the end.
Result<std::unique_ptr<Kernel>> BuildHalves(const OpDescription& op, int64_t n, float beta,
                                            Isa isa) {
  constexpr auto kSoftmaxHalves = FUSELITE_SIMD_TABLE(SoftmaxRowOfHalves);
  FUSELITE_ASSIGN_OR_RETURN(auto* const row, kSoftmaxHalves.Require(isa));
  return MakeQuantizedRowKernel<Half, Half>(
      std::string("softmax f16 ") + SimdName(isa), op, 8, n * sizeof(float),
      [=](const KernelArgs& args, const Half* x, Half* y) {
        row(x, y, n, beta, reinterpret_cast<float*>(args.scratch));
      });
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildSoftmaxHighway(const OpDescription& op,
                                                    const BuildContext& context) {
  const DataType type = op.inputs[0].type;
  if (type != DataType::kFloat32 && type != DataType::kFloat16) {
    return BuildQuantizedSoftmaxHighway(op, context);
  }
  const float beta = op.params.as<SoftmaxParams>().beta;
  if (!(beta >= 0)) return Unsupported("beta is ", beta);
  const int64_t n = op.inputs[0].shape.dim(-1);
  if (type == DataType::kFloat16) return BuildHalves(op, n, beta, context.isa);
  constexpr auto kSoftmaxRow = FUSELITE_SIMD_TABLE(SoftmaxRowVector);
  FUSELITE_ASSIGN_OR_RETURN(auto* const row, kSoftmaxRow.Require(context.isa));
  return MakeRowKernel(
      std::string("softmax f32 ") + SimdName(context.isa), op, ApplyTail(context.isa), 8,
      [row, beta, n](const KernelArgs&, const float* x, float* y) { row(x, y, n, beta); });
}

}  // namespace fuselite::kernels
#endif
