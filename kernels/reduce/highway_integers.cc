// Reductions of integers of 16 to 64 bits: along the channels that stay, or along runs of terms.
//
// The loops are plain ones that the compiler turns into vectors of each target (this file is
// compiled with -O3): sums, products and extremes of integers may be taken in any order.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/make_kernel.h"
#include "kernels/reduce/reduce.h"
#include "kernels/reduce/rescale.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce/highway_integers.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/movement/matrix_transpose-inl.h"
#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"
#include "kernels/simd_math/uniform_scale-inl.h"

#ifndef FUSELITE_KERNELS_REDUCE_HIGHWAY_INTEGERS_ONCE_
#define FUSELITE_KERNELS_REDUCE_HIGHWAY_INTEGERS_ONCE_
namespace fuselite::kernels {

// Outputs of a unit: their totals lie in the first-level cache.
constexpr int64_t kIntegerBlock = 256;
// 2^16 terms of 16 bits have sums of 32.
constexpr int64_t kShortSums = 65536;

// Totals of outputs [first, first + n), n <= kIntegerBlock, in 64 bits: of lanes of one outer index
// whose first term is at `in`, or of outer indices with a run each, of the whole input `in`.
using IntegerTotals = void(const ReducePlan& plan, const void* in, int64_t first, int64_t n,
                           int64_t* totals);
// Outputs from n <= kIntegerBlock totals of int16.
using RescaleTotals = void(const Rescale& rescale, const int64_t* totals, int64_t n, int16_t* out);

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Wraps around in the type of the total.
template <ReduceKind kKind, class T>
HWY_INLINE T Combine(T total, T value) {
  using Bits = std::make_unsigned_t<T>;
  const auto a = static_cast<Bits>(total), b = static_cast<Bits>(value);
  if constexpr (kKind == ReduceKind::kMax) return value > total ? value : total;
  if constexpr (kKind == ReduceKind::kMin) return value < total ? value : total;
  if constexpr (kKind == ReduceKind::kProd) return static_cast<T>(a * b);
  return static_cast<T>(a + b);
}

template <ReduceKind kKind, class Total, class T>
constexpr Total StartOf() {
  if constexpr (kKind == ReduceKind::kMax) return std::numeric_limits<T>::lowest();
  if constexpr (kKind == ReduceKind::kMin) return std::numeric_limits<T>::max();
  return kKind == ReduceKind::kProd ? 1 : 0;
}

// Reduces `count` rows of `n` channels, `stride` apart.
template <ReduceKind kKind, class Total, class T>
HWY_INLINE void CombineRows(const T* in, int64_t count, int64_t stride, int64_t n, Total* totals) {
  for (int64_t i = 0; i < count; ++i, in += stride) {
    for (int64_t c = 0; c < n; ++c) {
      totals[c] = Combine<kKind>(totals[c], static_cast<Total>(in[c]));
    }
  }
}

template <ReduceKind kKind, class Total, class T>
void Columns(const ReducePlan& plan, const void* in, int64_t first, int64_t n, int64_t* results) {
  alignas(64) Total totals[kIntegerBlock];
  std::fill(totals, totals + n, StartOf<kKind, Total, T>());
  // Few channels that are all of a row: several rows are taken as one of more channels.
  const bool dense = n == plan.lanes && plan.run_stride == n;
  const int64_t together = dense ? std::min<int64_t>(64 / n, plan.run_count / 2) : 0;
  const int64_t wide = together * n;
  alignas(64) Total parts[64];
  std::fill(parts, parts + wide, StartOf<kKind, Total, T>());
  for (int64_t run = 0; run < plan.runs; ++run) {
    const T* x = static_cast<const T*>(in) + first + plan.RunOffset(run);
    const int64_t whole = together > 1 ? plan.run_count / together : 0;
    CombineRows<kKind>(x, whole, wide, wide, parts);
    const int64_t done = whole * together;
    CombineRows<kKind>(x + done * plan.run_stride, plan.run_count - done, plan.run_stride, n,
                       totals);
  }
  if (together > 1) CombineRows<kKind>(parts, together, n, n, totals);
  std::copy_n(totals, n, results);
}

// Runs that are this short would end before a vector is full, and lie apart alike.
constexpr int64_t kShortRun = 16;
bool HasShortRuns(const ReducePlan& plan) {
  return plan.run_count <= kShortRun && plan.kept.size() == 1;
}

// Some outputs' runs at a time are transposed, so that vectors hold terms of as many outputs.
template <ReduceKind kKind, class Total, class T>
void ShortRuns(const ReducePlan& plan, const void* in, int64_t first, int64_t n, int64_t* results) {
  constexpr int64_t kTogether = 64, kBytes = sizeof(T);
  alignas(64) T terms[kShortRun * kTogether];
  const int64_t stride = plan.kept[0].stride;
  const auto* x = static_cast<const T*>(in) + first * stride;
  for (int64_t o = 0; o < n; o += kTogether) {
    const int64_t count = std::min(kTogether, n - o);
    alignas(64) Total totals[kTogether];
    std::fill(totals, totals + count, StartOf<kKind, Total, T>());
    for (int64_t run = 0; run < plan.runs; ++run) {
      const T* from = x + o * stride + plan.RunOffset(run);
      TransposeTyped<std::make_unsigned_t<T>>(
          reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(terms),
          {plan.run_count, kBytes, count * kBytes}, {count, stride * kBytes, kBytes});
      CombineRows<kKind>(terms, plan.run_count, count, count, totals);
    }
    std::copy_n(totals, count, results + o);
  }
}

template <ReduceKind kKind, class Total, class T>
HWY_INLINE Total TotalOfRun(const T* x, int64_t count, Total total) {
  for (int64_t i = 0; i < count; ++i) {
    total = Combine<kKind>(total, static_cast<Total>(x[i]));
  }
  return total;
}

template <ReduceKind kKind, class Total, class T>
void Runs(const ReducePlan& plan, const void* in, int64_t first, int64_t n, int64_t* results) {
  if (HasShortRuns(plan)) return ShortRuns<kKind, Total, T>(plan, in, first, n, results);
  for (int64_t o = 0; o < n; ++o) {
    const T* outer = static_cast<const T*>(in) + plan.OuterOffset(first + o);
    Total total = StartOf<kKind, Total, T>();
    for (int64_t run = 0; run < plan.runs; ++run) {
      const T* x = outer + plan.RunOffset(run);
      if constexpr (std::is_same_v<T, int16_t> && std::is_same_v<Total, int64_t>) {
        // Parts fit into 32 bits, of which a vector adds twice as many.
        for (int64_t at = 0; at < plan.run_count; at += kShortSums) {
          const int64_t count = std::min(kShortSums, plan.run_count - at);
          total += TotalOfRun<kKind>(x + at, count, int32_t{0});
        }
      } else {
        total = TotalOfRun<kKind>(x, plan.run_count, total);
      }
    }
    results[o] = total;
  }
}

template <ReduceKind kKind, class Total, class T>
IntegerTotals* TotalsOf(bool along_runs) {
  return along_runs ? Runs<kKind, Total, T> : Columns<kKind, Total, T>;
}

// Sums that are scaled afterwards need all bits; other results wrap around in the type of the
// terms.
template <class T>
IntegerTotals* TotalsOfType(ReduceKind kind, bool along_runs) {
  switch (kind) {
    case ReduceKind::kMean: return TotalsOf<ReduceKind::kSum, int64_t, T>(along_runs);
    case ReduceKind::kSum: return TotalsOf<ReduceKind::kSum, T, T>(along_runs);
    case ReduceKind::kProd: return TotalsOf<ReduceKind::kProd, T, T>(along_runs);
    case ReduceKind::kMax: return TotalsOf<ReduceKind::kMax, T, T>(along_runs);
    default: return TotalsOf<ReduceKind::kMin, T, T>(along_runs);
  }
}

// Both sums of int16 are scaled; up to kShortSums terms they fit into 32 bits.
IntegerTotals* TotalsOfShorts(const ReducePlan& plan, ReduceKind kind) {
  const bool along_runs = AlongRuns(plan);
  if (kind == ReduceKind::kMax || kind == ReduceKind::kMin) {
    return TotalsOfType<int16_t>(kind, along_runs);
  }
  return plan.terms() <= kShortSums ? TotalsOf<ReduceKind::kSum, int32_t, int16_t>(along_runs)
                                    : TotalsOf<ReduceKind::kSum, int64_t, int16_t>(along_runs);
}

void RescaleShorts(const Rescale& rescale, const int64_t* totals, int64_t n, int16_t* out) {
  const UniformScale::D d;
  const hn::Rebind<int16_t, UniformScale::D> narrow;
  HWY_ALIGN int32_t centred[kIntegerBlock];
  for (int64_t i = 0; i < n; ++i) {
    centred[i] = static_cast<int32_t>(totals[i] - rescale.input_zero_points);
  }
  const UniformScale scale(rescale.multiplier, rescale.shift);
  const auto zero_point = hn::Set(d, rescale.zero_point);
  const auto min = hn::Set(d, rescale.min), max = hn::Set(d, rescale.max);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) {
    const auto y = hn::Add(scale(hn::Load(d, centred + i)), zero_point);
    StoreUpTo(hn::DemoteTo(narrow, hn::Min(hn::Max(y, min), max)), narrow, out + i, n - i);
  }
}

IntegerTotals* TotalsFor(DataType type, ReduceKind kind, const ReducePlan& plan) {
  const bool along_runs = AlongRuns(plan);
  switch (type) {
    case DataType::kInt16: return TotalsOfShorts(plan, kind);
    case DataType::kInt32: return TotalsOfType<int32_t>(kind, along_runs);
    default: return TotalsOfType<int64_t>(kind, along_runs);
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

// finish(totals, n, out) makes the outputs of n totals.
template <class T, class F>
std::unique_ptr<Kernel> MakeIntegers(const OpDescription& op, Isa isa, IntegerTotals* totals_of,
                                     F finish) {
  const ReducePlan plan = PlanReduce(op);
  const bool along_runs = AlongRuns(plan);
  const int64_t along = along_runs ? plan.outer : plan.lanes;
  const int64_t blocks = (along + kIntegerBlock - 1) / kIntegerBlock;
  return MakeKernel(
      std::string(along_runs ? "reduce runs " : "reduce lanes ") +
          std::string(DataTypeName(op.inputs[0].type)) + " " + SimdName(isa),
      {.units = along_runs ? blocks : plan.outer * blocks,
       .grain = GrainFor(plan.terms() * std::min(along, kIntegerBlock) / 4)},
      [=](const KernelArgs& args, int64_t begin, int64_t end) {
        int64_t totals[kIntegerBlock];
        for (int64_t unit = begin; unit < end; ++unit) {
          const int64_t o = unit / blocks, first = unit % blocks * kIntegerBlock;
          const int64_t n = std::min(kIntegerBlock, along - first);
          const T* in = static_cast<const T*>(args.inputs[0]);
          totals_of(plan, along_runs ? in : in + plan.OuterOffset(o), first, n, totals);
          T* out = static_cast<T*>(args.outputs[0]) + (along_runs ? 0 : o * plan.lanes) + first;
          finish(totals, n, out);
        }
      });
}

template <class T>
std::unique_ptr<Kernel> MakePlain(const OpDescription& op, Isa isa, IntegerTotals* totals) {
  const auto each = [&](auto result) {
    return MakeIntegers<T>(op, isa, totals, [result](const int64_t* from, int64_t n, T* out) {
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(result(from[i]));
    });
  };
  if (ReduceKindOf(*op.op) != ReduceKind::kMean) return each([](int64_t total) { return total; });
  const int64_t terms = PlanReduce(op).terms();
  return each([terms](int64_t total) { return total / terms; });
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildReduceIntegers(const OpDescription& op,
                                                    const BuildContext& context) {
  constexpr auto kTotals = FUSELITE_SIMD_TABLE(TotalsFor);
  constexpr auto kRescale = FUSELITE_SIMD_TABLE(RescaleShorts);
  FUSELITE_ASSIGN_OR_RETURN(auto* const totals_for, kTotals.Require(context.isa));
  const DataType type = op.inputs[0].type;
  const ReduceKind kind = ReduceKindOf(*op.op);
  const ReducePlan plan = PlanReduce(op);
  if (plan.terms() == 0) return Unsupported("does not take a reduction of nothing");
  IntegerTotals* const totals = totals_for(type, kind, plan);
  if (type == DataType::kInt32) return MakePlain<int32_t>(op, context.isa, totals);
  if (type == DataType::kInt64) return MakePlain<int64_t>(op, context.isa, totals);
  if (kind == ReduceKind::kMax || kind == ReduceKind::kMin) {
    return MakePlain<int16_t>(op, context.isa, totals);
  }
  if (kind == ReduceKind::kProd) return Unsupported("products of int16 have scalar code alone");
  FUSELITE_ASSIGN_OR_RETURN(auto* const rescale, kRescale.Require(context.isa));
  return MakeIntegers<int16_t>(
      op, context.isa, totals,
      [rescale, scale = MakeRescale(op, plan.terms())](
          const int64_t* from, int64_t n, int16_t* out) { rescale(scale, from, n, out); });
}

}  // namespace fuselite::kernels
#endif
