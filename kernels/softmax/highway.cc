#include "kernels/make_kernel.h"
#include "kernels/softmax/softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"
#include "kernels/simd_math/simd_math-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;

float RowMax(const float* in, size_t n) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  if (n < lanes) {
    float largest = in[0];
    for (size_t i = 1; i < n; ++i) largest = in[i] > largest ? in[i] : largest;
    return largest;
  }
  // The last vector overlaps the one before: a maximum may see an element twice.
  auto largest = hn::LoadU(d, in + n - lanes);
  for (size_t i = 0; i + lanes <= n; i += lanes) largest = hn::Max(largest, hn::LoadU(d, in + i));
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

// One pass writes the exponentials and sums them; the row is still in L1 for the second.
void SoftmaxRow(const float* HWY_RESTRICT in, float* HWY_RESTRICT out, size_t n, float beta) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const auto largest = hn::Set(d, RowMax(in, n));
  const auto scale = hn::Set(d, beta);
  auto sum = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto e = VecExp(d, hn::Mul(hn::Sub(hn::LoadU(d, in + i), largest), scale));
    hn::StoreU(e, d, out + i);
    sum = hn::Add(sum, e);
  }
  if (i < n) {
    const auto mask = hn::FirstN(d, n - i);
    const auto x = LoadPartial(d, in + i, n - i);
    const auto e = hn::IfThenElseZero(mask, VecExp(d, hn::Mul(hn::Sub(x, largest), scale)));
    StorePartial(e, d, out + i, n - i);
    sum = hn::Add(sum, e);
  }
  const auto inverse = hn::Set(d, 1.0f / hn::GetLane(hn::SumOfLanes(d, sum)));
  for (i = 0; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, out + i), inverse), d, out + i);
  }
  for (; i < n; ++i) out[i] *= hn::GetLane(inverse);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

Result<std::unique_ptr<Kernel>> BuildSoftmaxHighway(const OpDescription& op,
                                                    const BuildContext& context) {
  constexpr auto kSoftmaxRow = FUSELITE_SIMD_TABLE(SoftmaxRow);
  auto* const row = kSoftmaxRow.For(context.isa);
  if (row == nullptr) return Unsupported("no vector target at isa=", IsaName(context.isa));
  const TensorInfo& in = op.inputs[0];
  if (in.type != DataType::kFloat32) return Unsupported(DataTypeName(in.type), " is not float32");
  const int64_t depth = in.shape.dim(-1);
  const int64_t rows = depth ? in.elements() / depth : 0;
  const float beta = op.params.as<SoftmaxParams>().beta;
  return MakeKernel(std::string("softmax f32 ") + SimdName(context.isa),
                    {.units = rows, .grain = GrainFor(depth)},
                    [=, in_pitch = in.pitch(), out_pitch = op.outputs[0].pitch()](
                        const KernelArgs& args, int64_t begin, int64_t end) {
                      const auto* x = static_cast<const float*>(args.inputs[0]);
                      auto* y = static_cast<float*>(args.outputs[0]);
                      for (int64_t r = begin; r < end; ++r) {
                        row(x + r * in_pitch, y + r * out_pitch, depth, beta);
                      }
                    });
}

}  // namespace fuselite::kernels
#endif
