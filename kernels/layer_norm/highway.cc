#include "kernels/layer_norm/layer_norm.h"
#include "kernels/rows/row_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/layer_norm/highway.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

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

// Prefetches numbers that an only row needs after its sum, which takes as long as memory for them.
HWY_INLINE void AskFor(const float* x, size_t n) {
  for (size_t i = 0; i < n; i += 64 / sizeof(float)) hwy::Prefetch(x + i);
}

// A row's elements in whole vectors and what is left. Loops over rows keep the mask of the rest.
struct RowLength {
  explicit RowLength(size_t n, size_t lanes) : whole(n / lanes * lanes), rest(n - whole) {}
  size_t whole, rest;
};

// y[i] = (x[i] - centre) * inverse * gamma[i] + beta[i].
template <bool kScaled, bool kShifted>
HWY_INLINE void ScaleAndShift(const float* x, float centre, float inverse, const float* gamma,
                              const float* beta, float* y, RowLength n) {
  const hn::ScalableTag<float> d;
  const auto mean = hn::Set(d, centre), scale = hn::Set(d, inverse);
  for (size_t i = 0; i < n.whole; i += hn::Lanes(d)) {
    auto v = hn::Mul(hn::Sub(hn::LoadU(d, x + i), mean), scale);
    if constexpr (kScaled) v = hn::Mul(v, hn::LoadU(d, gamma + i));
    if constexpr (kShifted) v = hn::Add(v, hn::LoadU(d, beta + i));
    hn::StoreU(v, d, y + i);
  }
  if (n.rest == 0) return;
  const size_t i = n.whole;
  auto v = hn::Mul(hn::Sub(LoadPartial(d, x + i, n.rest), mean), scale);
  if constexpr (kScaled) v = hn::Mul(v, LoadPartial(d, gamma + i, n.rest));
  if constexpr (kShifted) v = hn::Add(v, LoadPartial(d, beta + i, n.rest));
  StorePartial(v, d, y + i, n.rest);
}

// f(scaled, shifted): whether there are gamma and beta, as constants of the compiler.
template <class F>
HWY_INLINE void WithOperands(const float* gamma, const float* beta, F f) {
  using std::bool_constant;
  const auto shift = [&](auto scaled) HWY_ATTR {
    beta ? f(scaled, bool_constant<true>()) : f(scaled, bool_constant<false>());
  };
  gamma ? shift(bool_constant<true>()) : shift(bool_constant<false>());
}

// gamma and beta may be null.
void LayerNormRow(const float* x, const float* gamma, const float* beta, float* y, size_t n,
                  const LayerNormParams& params, bool only_row) {
  const auto terms = static_cast<float>(n);
  if (only_row && gamma != nullptr) AskFor(gamma, n);
  const float mean =
      params.keeps_mean ? 0.0f : RowSum(x, n, [](auto v) HWY_ATTR { return v; }) / terms;
  const float squares =
      params.keeps_mean ? SumOfSquares(x, n, only_row) : RowSum(x, n, [&](auto v) HWY_ATTR {
        const auto difference = hn::Sub(v, hn::Set(hn::ScalableTag<float>(), mean));
        return hn::Mul(difference, difference);
      });
  const float inverse = 1.0f / std::sqrt(squares / terms + params.epsilon);
  const RowLength length(n, hn::Lanes(hn::ScalableTag<float>()));
  WithOperands(gamma, beta, [&](auto scaled, auto shifted) HWY_ATTR {
    ScaleAndShift<scaled.value, shifted.value>(x, mean, inverse, gamma, beta, y, length);
  });
}

// The sums, in their order, of the lanes of as many vectors as each has lanes; `sums` is used up.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V SumOfEach(D d, V* sums) {
  for (size_t count = hn::MaxLanes(d) / 2; count > 0; count /= 2) {
    for (size_t i = 0; i < count; ++i) {
      const V a = sums[2 * i], b = sums[2 * i + 1];
      sums[i] = hn::Add(hn::ConcatEven(d, b, a), hn::ConcatOdd(d, b, a));
    }
  }
  return sums[0];
}

// f(x[i]) of a row in the lanes of one vector, added up.
template <class D, class F>
HWY_INLINE hn::Vec<D> LaneSums(D d, const float* x, RowLength n, F f) {
  auto sum = hn::Zero(d);
  for (size_t i = 0; i < n.whole; i += hn::Lanes(d)) sum = hn::Add(sum, f(hn::LoadU(d, x + i)));
  if (n.rest == 0) return sum;
  const auto last = f(LoadPartial(d, x + n.whole, n.rest));
  return hn::Add(sum, hn::IfThenElseZero(hn::FirstN(d, n.rest), last));
}

// As many rows as a vector has lanes at most, a mean and a variance in each lane.
template <bool kScaled, bool kShifted>
void NormalizeRows(const SourceRows& x, const ResultRows& y, const float* gamma, const float* beta,
                   RowLength n, float terms, float epsilon) {
  const hn::ScalableTag<float> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const float* rows[kLanes];
  for (size_t r = 0; r < kLanes; ++r) {  // the last one again where there are fewer
    rows[r] = x.data + std::min(static_cast<int64_t>(r), x.rows - 1) * x.pitch;
  }
  HWY_ALIGN float means[kLanes], inverses[kLanes];
  hn::Vec<decltype(d)> sums[kLanes];
  for (size_t r = 0; r < kLanes; ++r) {
    sums[r] = LaneSums(d, rows[r], n, [](auto v) HWY_ATTR { return v; });
  }
  hn::Store(hn::Div(SumOfEach(d, sums), hn::Set(d, terms)), d, means);
  for (size_t r = 0; r < kLanes; ++r) {
    sums[r] = LaneSums(d, rows[r], n, [mean = hn::Set(d, means[r])](auto v) HWY_ATTR {
      const auto difference = hn::Sub(v, mean);
      return hn::Mul(difference, difference);
    });
  }
  const auto variance = hn::Div(SumOfEach(d, sums), hn::Set(d, terms));
  const auto root = hn::Sqrt(hn::Add(variance, hn::Set(d, epsilon)));
  hn::Store(hn::Div(hn::Set(d, 1.0f), root), d, inverses);
  for (size_t r = 0; r < static_cast<size_t>(x.rows); ++r) {
    ScaleAndShift<kScaled, kShifted>(rows[r], means[r], inverses[r], gamma, beta,
                                     y.data + static_cast<int64_t>(r) * y.pitch, n);
  }
}

// Normalizes rows together: what becomes of a row's sums takes longer than a short row. gamma and
// beta may be null. Not for params.keeps_mean.
void LayerNormRows(const SourceRows& x, const ResultRows& y, const float* gamma, const float* beta,
                   size_t n, const LayerNormParams& params) {
  constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<float>()));
  const RowLength length(n, kLanes);
  WithOperands(gamma, beta, [&](auto scaled, auto shifted) HWY_ATTR {
    for (int64_t first = 0; first < x.rows; first += kLanes) {
      NormalizeRows<scaled.value, shifted.value>(
          {x.data + first * x.pitch, x.pitch, std::min(kLanes, x.rows - first)},
          {y.data + first * y.pitch, y.pitch}, gamma, beta, length, static_cast<float>(n),
          params.epsilon);
    }
  });
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

// As many rows as a vector has lanes at most, and how long they may be to stay in 48 KiB of L1
// while they are read three times. On a Zen 5 with AVX-512 9216 rows of 24 take 93 us instead of
// 149 one by one, 3136 of 96 46 instead of 72, 196 of 768 18 instead of 21.
constexpr int64_t kRowsTogether = 16, kLongestTogether = 768;

}  // namespace

Result<std::unique_ptr<Kernel>> BuildLayerNormHighway(const OpDescription& op,
                                                      const BuildContext& context) {
  constexpr auto kRow = FUSELITE_SIMD_TABLE(LayerNormRow);
  constexpr auto kRows = FUSELITE_SIMD_TABLE(LayerNormRows);
  FUSELITE_ASSIGN_OR_RETURN(auto* const row, kRow.Require(context.isa));
  const std::string name = std::string("layer_norm f32 ") + SimdName(context.isa);
  const auto& params = op.params.as<LayerNormParams>();
  const int64_t n = op.inputs[0].shape.dim(-1);
  const bool only_row = op.inputs[0].elements() == n;
  const auto gamma = [scaled = op.has_input(1)](const KernelArgs& args) {
    return scaled ? static_cast<const float*>(args.inputs[1]) : nullptr;
  };
  const auto beta = [shifted = op.has_input(2)](const KernelArgs& args) {
    return shifted ? static_cast<const float*>(args.inputs[2]) : nullptr;
  };
  if (!params.keeps_mean && !only_row && n <= kLongestTogether) {
    return MakeRowsKernel(name, op, ApplyTail(context.isa), 4, kRowsTogether,
                          [rows = kRows.For(context.isa), n, params, gamma, beta](
                              const KernelArgs& args, const SourceRows& x, const ResultRows& y) {
                            rows(x, y, gamma(args), beta(args), n, params);
                          });
  }
  return MakeRowKernel(
      name, op, ApplyTail(context.isa), 4,
      [row, n, params, only_row, gamma, beta](const KernelArgs& args, const float* x, float* y) {
        row(x, gamma(args), beta(args), y, n, params, only_row);
      });
}

}  // namespace fuselite::kernels
#endif
