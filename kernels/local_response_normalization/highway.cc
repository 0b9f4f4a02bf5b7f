#include "kernels/local_response_normalization/local_response_normalization.h"
#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/local_response_normalization/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <string>

#include "kernels/floor_pow/pow_block-inl.h"
#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;

// x^-beta of the betas that networks have, by roots, a third of the time of any other's:
// TensorFlow's default and AlexNet's.
HWY_INLINE bool IsByRoots(float beta) { return beta == 0.5f || beta == 0.75f; }
HWY_INLINE hn::Vec<D> PowerByRoots(hn::Vec<D> x, float beta) {
  const auto root = hn::Sqrt(x);
  return hn::Div(hn::Set(D(), 1), beta == 0.5f ? root : hn::Mul(root, hn::Sqrt(root)));
}

// One pixel. `squares` has room for n + 2 radius + a vector of floats, of which the radius in front
// and all behind are zeros.
void LocalResponseRow(const LocalResponseParams& params, const float* in, int64_t n, int64_t radius,
                      float* squares, float* out) {
  const D d;
  const auto size = static_cast<size_t>(n);
  ForVectors(d, size, [&](size_t i, size_t count) HWY_ATTR {
    const auto x = LoadUpTo(d, in + i, count);
    StoreUpTo(hn::Mul(x, x), d, squares + radius + i, count);
  });
  const auto bias = hn::Set(d, params.bias), alpha = hn::Set(d, params.alpha);
  const bool by_roots = IsByRoots(params.beta);
  ForVectors(d, size, [&](size_t i, size_t count) HWY_ATTR {
    auto sum = hn::Zero(d);
    for (int64_t k = 0; k < 2 * radius; ++k) sum = hn::Add(sum, hn::LoadU(d, squares + i + k));
    const auto base = hn::Add(bias, hn::Mul(alpha, sum));
    StoreUpTo(by_roots ? PowerByRoots(base, params.beta) : base, d, out + i, count);
  });
  const float exponent = -params.beta;
  for (int64_t i = 0; i < n && !by_roots; i += kPowBlock) {
    PowBlock(out + i, 1, &exponent, 0, out + i, std::min(kPowBlock, n - i));
  }
  ForVectors(d, size, [&](size_t i, size_t count) HWY_ATTR {
    const auto y = hn::Mul(LoadUpTo(d, in + i, count), LoadUpTo(d, out + i, count));
    StoreUpTo(y, d, out + i, count);
  });
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

Result<std::unique_ptr<Kernel>> BuildLocalResponseHighway(const OpDescription& op,
                                                          const BuildContext& context) {
  constexpr auto kRow = FUSELITE_SIMD_TABLE(LocalResponseRow);
  constexpr int64_t kVector = 16;  // floats
  FUSELITE_ASSIGN_OR_RETURN(auto* const row, kRow.Require(context.isa));
  if (!op.tail.empty()) return Unsupported("LOCAL_RESPONSE_NORMALIZATION takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  const Shape& in = op.inputs[0].shape;
  const auto params = op.params.as<LocalResponseParams>();
  const int64_t n = in[3], radius = std::min<int64_t>(params.radius, n);
  const int64_t room = n + 2 * radius + kVector;
  return MakeKernel(std::string("local_response_normalization f32 ") + SimdName(context.isa),
                    {.units = in.elements(0, 3),
                     .grain = GrainFor((16 + 2 * radius) * n / 4),
                     .scratch_bytes = static_cast<size_t>(room) * sizeof(float)},
                    [=](const KernelArgs& args, int64_t begin, int64_t end) {
                      auto* const squares = reinterpret_cast<float*>(args.scratch);
                      std::fill_n(squares, room, 0.0f);
                      for (int64_t pixel = begin; pixel < end; ++pixel) {
                        row(params, static_cast<const float*>(args.inputs[0]) + pixel * n, n,
                            radius, squares, static_cast<float*>(args.outputs[0]) + pixel * n);
                      }
                    });
}

}  // namespace fuselite::kernels
#endif
