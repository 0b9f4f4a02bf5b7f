// Reductions of floats along runs of neighbouring terms.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_REDUCE_FLOAT_RUNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_REDUCE_FLOAT_RUNS_INL_H_
#undef FUSELITE_KERNELS_REDUCE_FLOAT_RUNS_INL_H_
#else
#define FUSELITE_KERNELS_REDUCE_FLOAT_RUNS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "kernels/reduce/float_totals-inl.h"
#include "kernels/reduce/reduce.h"
#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One output from runs of neighbouring terms: four vectors of partial totals that go through all
// runs, joined at the end.
template <ReduceKind kKind>
void ReduceRunsOf(const ReducePlan& plan, const float* in, float* out) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d), n = plan.run_count;
  const auto start = hn::Set(d, Start<kKind>());
  auto a = start, b = start, c = start, e = start;
  for (int64_t run = 0; run < plan.runs; ++run) {
    const float* x = in + plan.RunOffset(run);
    size_t i = 0;
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
      a = Combine<kKind>(a, hn::LoadU(d, x + i));
      b = Combine<kKind>(b, hn::LoadU(d, x + i + lanes));
      c = Combine<kKind>(c, hn::LoadU(d, x + i + 2 * lanes));
      e = Combine<kKind>(e, hn::LoadU(d, x + i + 3 * lanes));
    }
    for (; i + lanes <= n; i += lanes) a = Combine<kKind>(a, hn::LoadU(d, x + i));
    if (i < n) {
      const auto mask = hn::FirstN(d, n - i);
      b = Combine<kKind>(b, hn::IfThenElse(mask, LoadPartial(d, x + i, n - i), start));
    }
  }
  const float total = Joined<kKind>(d, Combine<kKind>(Combine<kKind>(a, b), Combine<kKind>(c, e)));
  *out = kKind == ReduceKind::kMean ? total / static_cast<float>(plan.divisor()) : total;
}

// Four outputs from runs that begin `rows[i]` behind `in`, in vectors of `DV`.
template <ReduceKind kKind, class DV>
HWY_INLINE hn::Vec<D4> ReduceFourRuns(DV d, const ReducePlan& plan, const float* in,
                                      const int64_t* rows) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d)), n = plan.run_count;
  const auto start = hn::Set(d, Start<kKind>());
  auto a = start, b = start, c = start, e = start;
  for (int64_t run = 0; run < plan.runs; ++run) {
    const float* x = run == 0 ? in : in + plan.RunOffset(run);
    const float *xa = x + rows[0], *xb = x + rows[1], *xc = x + rows[2], *xe = x + rows[3];
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
      a = Combine<kKind>(a, hn::LoadU(d, xa + i));
      b = Combine<kKind>(b, hn::LoadU(d, xb + i));
      c = Combine<kKind>(c, hn::LoadU(d, xc + i));
      e = Combine<kKind>(e, hn::LoadU(d, xe + i));
    }
    if (i == n) continue;
    const auto inside = hn::FirstN(d, n - i);
    const auto rest = [&](const float* p) HWY_ATTR {
      return hn::IfThenElse(inside, LoadPartial(d, p + i, n - i), start);
    };
    a = Combine<kKind>(a, rest(xa));
    b = Combine<kKind>(b, rest(xb));
    c = Combine<kKind>(c, rest(xc));
    e = Combine<kKind>(e, rest(xe));
  }
  const auto joined = JoinedByFour<kKind>(FourLanes<kKind>(d, a), FourLanes<kKind>(d, b),
                                          FourLanes<kKind>(d, c), FourLanes<kKind>(d, e));
  if (kKind != ReduceKind::kMean) return joined;
  return hn::Div(joined, hn::Set(D4(), static_cast<float>(plan.terms())));
}

// `n` <= kShortRunBlock outputs from `first` on, each with a short run: four at a time, so that
// they neither wait for their additions nor join their lanes alone.
template <ReduceKind kKind, class DV>
HWY_INLINE void ReduceShortRunsBy(DV d, const ReducePlan& plan, const float* in, int64_t first,
                                  float* out, size_t n) {
  int64_t rows[kShortRunBlock + 3], *end = rows;
  rows[0] = 0;  // which the compiler cannot know to be set below
  plan.ForOuter(first, first + static_cast<int64_t>(n), [&](int64_t offset) { *end++ = offset; });
  std::fill(end, end + 3, rows[0]);
  size_t o = 0;
  for (; o + 4 <= n; o += 4) {
    hn::StoreU(ReduceFourRuns<kKind>(d, plan, in, rows + o), D4(), out + o);
  }
  if (o < n) StorePartial(ReduceFourRuns<kKind>(d, plan, in, rows + o), D4(), out + o, n - o);
}

template <ReduceKind kKind>
void ReduceShortRunsOf(const ReducePlan& plan, const float* in, int64_t first, float* out,
                       size_t n) {
  if (plan.run_count <= 4) return ReduceShortRunsBy<kKind>(D4(), plan, in, first, out, n);
  if (plan.run_count <= 8) {
    return ReduceShortRunsBy<kKind>(hn::CappedTag<float, 8>(), plan, in, first, out, n);
  }
  ReduceShortRunsBy<kKind>(hn::ScalableTag<float>(), plan, in, first, out, n);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
