#include "kernels/layer_norm/layer_norm.h"
#include "kernels/row_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/layer_norm/highway.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>

#include "kernels/simd.h"
#include "kernels/simd_math/row_sums-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The sum of all squares as LiteRT's MEAN of x * x adds them up: of an only row one by one, of
// several rows in eight sums, then by halves. Where a row is quantized next, as decoders' are, the
// last bit of its scale becomes steps of others behind it.
HWY_INLINE float SumOfSquares(const float* x, size_t n, bool only_row) {
  const hn::FixedTag<float, 4> d;
  auto low = hn::Zero(d), high = low;
  size_t i = 0;
  const auto square = [&](size_t at) HWY_ATTR {
    const auto v = hn::LoadU(d, x + at);
    return hn::Mul(v, v);
  };
  for (; !only_row && i + 8 <= n; i += 8) {
    low = hn::Add(low, square(i));
    high = hn::Add(high, square(i + 4));
  }
  const auto four = hn::Add(low, high);
  const auto two = hn::Add(four, hn::Shuffle1032(four));
  float sum = hn::GetLane(hn::Add(two, hn::Shuffle2301(two)));
  for (; i < n; ++i) sum += x[i] * x[i];
  return sum;
}

// Of an only row, whose sum takes as long as memory for these numbers.
HWY_INLINE void AskFor(const float* x, size_t n) {
  for (size_t i = 0; i < n; i += 64 / sizeof(float)) hwy::Prefetch(x + i);
}

// gamma and beta may be null.
void LayerNormRow(const float* x, const float* gamma, const float* beta, float* y, size_t n,
                  const LayerNormParams& params, bool only_row) {
  const hn::ScalableTag<float> d;
  const auto terms = static_cast<float>(n);
  if (only_row && gamma != nullptr) AskFor(gamma, n);
  const float mean =
      params.keeps_mean ? 0.0f : RowSum(x, n, [](auto v) HWY_ATTR { return v; }) / terms;
  const auto centre = hn::Set(d, mean);
  const float squares =
      params.keeps_mean ? SumOfSquares(x, n, only_row) : RowSum(x, n, [&](auto v) HWY_ATTR {
        const auto difference = hn::Sub(v, centre);
        return hn::Mul(difference, difference);
      });
  const auto inverse = hn::Set(d, 1.0f / std::sqrt(squares / terms + params.epsilon));
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < n; i += lanes) {
    const size_t count = n - i < lanes ? n - i : lanes;
    auto v = hn::Mul(hn::Sub(LoadUpTo(d, x + i, count), centre), inverse);
    if (gamma != nullptr) v = hn::Mul(v, LoadUpTo(d, gamma + i, count));
    if (beta != nullptr) v = hn::Add(v, LoadUpTo(d, beta + i, count));
    StoreUpTo(v, d, y + i, count);
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

Result<std::unique_ptr<Kernel>> BuildLayerNormHighway(const OpDescription& op,
                                                      const BuildContext& context) {
  constexpr auto kRow = FUSELITE_SIMD_TABLE(LayerNormRow);
  FUSELITE_ASSIGN_OR_RETURN(auto* const row, kRow.Require(context.isa));
  return MakeRowKernel(
      std::string("layer_norm f32 ") + SimdName(context.isa), op, ApplyTail(context.isa), 4,
      [row, n = op.inputs[0].shape.dim(-1), params = op.params.as<LayerNormParams>(),
       only_row = op.inputs[0].elements() == op.inputs[0].shape.dim(-1), scaled = op.has_input(1),
       shifted = op.has_input(2)](const KernelArgs& args, const float* x, float* y) {
        row(x, scaled ? static_cast<const float*>(args.inputs[1]) : nullptr,
            shifted ? static_cast<const float*>(args.inputs[2]) : nullptr, y, n, params, only_row);
      });
}

}  // namespace fuselite::kernels
#endif
