// float32 reductions with vectors: along the channels that stay, or along runs of terms.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernels/make_kernel.h"
#include "kernels/reduce/parts.h"
#include "kernels/reduce/reduce.h"
#include "kernels/shape_rules.h"
#include "kernels/widened.h"
#include "runtime/support/ceil_div.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/reduce/float_runs-inl.h"
#include "kernels/reduce/float_totals-inl.h"
#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"
#include "kernels/simd_math/short_floats-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// `kVectors` vectors of lanes through all terms. `n` < Lanes lanes where kVectors is 0. Of fewer
// than four vectors several terms are combined side by side, as each addition waits for the one
// before.
template <ReduceKind kKind, size_t kVectors, class In>
HWY_INLINE void ReduceVectors(const ReducePlan& plan, const In* in, float* out, size_t n) {
  constexpr size_t kTotals = kVectors == 0 ? 1 : kVectors;
  constexpr size_t kChains = kTotals < 4 ? 4 / kTotals : 1;
  const D d;
  const size_t lanes = hn::Lanes(d);
  V totals[kChains * kTotals];
  HWY_UNROLL(8)
  for (size_t v = 0; v < kChains * kTotals; ++v) totals[v] = hn::Set(d, Start<kKind>());
  const auto add = [&](const In* term, V* to) FUSELITE_INLINED {
    HWY_UNROLL(8)
    for (size_t v = 0; v < kTotals; ++v) {
      const V value = kVectors == 0 ? LoadFloats(d, term, n) : LoadFloats(d, term + v * lanes);
      to[v] = Combine<kKind>(to[v], value);
    }
  };
  for (int64_t run = 0; run < plan.runs; ++run) {
    const In* term = in + plan.RunOffset(run);
    int64_t i = 0;
    for (; i + static_cast<int64_t>(kChains) <= plan.run_count; i += kChains) {
      HWY_UNROLL(4)
      for (size_t c = 0; c < kChains; ++c, term += plan.run_stride) add(term, totals + c * kTotals);
    }
    for (; i < plan.run_count; ++i, term += plan.run_stride) add(term, totals);
  }
  HWY_UNROLL(8)
  for (size_t v = 0; v < kTotals; ++v) {
    HWY_UNROLL(4)
    for (size_t c = 1; c < kChains; ++c) {
      totals[v] = Combine<kKind>(totals[v], totals[c * kTotals + v]);
    }
    if (kKind == ReduceKind::kMean) {
      totals[v] = hn::Div(totals[v], hn::Set(d, static_cast<float>(plan.divisor())));
    }
    if (kVectors == 0) {
      StorePartial(totals[v], d, out, n);
    } else {
      hn::StoreU(totals[v], d, out + v * lanes);
    }
  }
}

template <ReduceKind kKind, class In>
void ReduceLanesOf(const ReducePlan& plan, const In* in, float* out, size_t n) {
  const size_t lanes = hn::Lanes(D());
  size_t c = 0;
  for (; c + 8 * lanes <= n; c += 8 * lanes) ReduceVectors<kKind, 8>(plan, in + c, out + c, 0);
  for (; c + 4 * lanes <= n; c += 4 * lanes) ReduceVectors<kKind, 4>(plan, in + c, out + c, 0);
  if (c + 2 * lanes <= n) {
    ReduceVectors<kKind, 2>(plan, in + c, out + c, 0);
    c += 2 * lanes;
  }
  for (; c + lanes <= n; c += lanes) ReduceVectors<kKind, 1>(plan, in + c, out + c, 0);
  if (c < n) ReduceVectors<kKind, 0>(plan, in + c, out + c, n - c);
}

// Outputs [lane, lane + n) of one outer index; `in` at the outer index's first term.
void ReduceLanes(ReduceKind kind, const ReducePlan& plan, const float* in, float* out, size_t n) {
  switch (kind) {
    case ReduceKind::kMean: return ReduceLanesOf<ReduceKind::kMean>(plan, in, out, n);
    case ReduceKind::kSum: return ReduceLanesOf<ReduceKind::kSum>(plan, in, out, n);
    case ReduceKind::kProd: return ReduceLanesOf<ReduceKind::kProd>(plan, in, out, n);
    case ReduceKind::kMax: return ReduceLanesOf<ReduceKind::kMax>(plan, in, out, n);
    default: return ReduceLanesOf<ReduceKind::kMin>(plan, in, out, n);
  }
}

// As ReduceLanes(), means of bfloat16.
void MeanLanesOfBFloat16(const ReducePlan& plan, const BFloat16* in, float* out, size_t n) {
  ReduceLanesOf<ReduceKind::kMean>(plan, in, out, n);
}

void ReduceRuns(ReduceKind kind, const ReducePlan& plan, const float* in, float* out, size_t) {
  switch (kind) {
    case ReduceKind::kMean: return ReduceRunsOf<ReduceKind::kMean>(plan, in, out);
    case ReduceKind::kSum: return ReduceRunsOf<ReduceKind::kSum>(plan, in, out);
    case ReduceKind::kProd: return ReduceRunsOf<ReduceKind::kProd>(plan, in, out);
    case ReduceKind::kMax: return ReduceRunsOf<ReduceKind::kMax>(plan, in, out);
    default: return ReduceRunsOf<ReduceKind::kMin>(plan, in, out);
  }
}

void ReduceShortRuns(ReduceKind kind, const ReducePlan& plan, const float* in, int64_t first,
                     float* out, size_t n) {
  switch (kind) {
    case ReduceKind::kMean: return ReduceShortRunsOf<ReduceKind::kMean>(plan, in, first, out, n);
    case ReduceKind::kSum: return ReduceShortRunsOf<ReduceKind::kSum>(plan, in, first, out, n);
    case ReduceKind::kProd: return ReduceShortRunsOf<ReduceKind::kProd>(plan, in, first, out, n);
    case ReduceKind::kMax: return ReduceShortRunsOf<ReduceKind::kMax>(plan, in, first, out, n);
    default: return ReduceShortRunsOf<ReduceKind::kMin>(plan, in, first, out, n);
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

namespace {

// Channels of a unit: eight AVX-512 vectors, and more of them where each has few terms.
int64_t LaneBlock(const ReducePlan& plan) {
  return 128 * std::clamp<int64_t>(64 / plan.terms(), 1, 64);
}

// Whether values of one term each become others: a NaN gives way to the number that an extreme
// starts from, a sum or product has the output's scale.
bool ChangesOneTerm(const OpDescription& op) {
  const Quantization &from = op.inputs[0].quantization, &to = op.outputs[0].quantization;
  switch (ReduceKindOf(*op.op)) {
    case ReduceKind::kMax:
    case ReduceKind::kMin: return op.inputs[0].type == DataType::kFloat32;
    case ReduceKind::kMean:
    case ReduceKind::kSum:
    case ReduceKind::kProd:
      return !from.empty() && !(from.scale() == to.scale() && from.zero_point() == to.zero_point());
    default: return !from.empty();
  }
}

bool IsCopy(const OpDescription& op, const ReducePlan& plan) {
  return plan.terms() == 1 && IsDense(op.inputs[0]) && !ChangesOneTerm(op);
}

std::unique_ptr<Kernel> MakeCopy(const OpDescription& op) {
  constexpr int64_t kPiece = 65536;
  const auto bytes = static_cast<int64_t>(op.inputs[0].bytes());
  return MakeKernel("reduce copy", {.units = (bytes + kPiece - 1) / kPiece},
                    [bytes](const KernelArgs& args, int64_t begin, int64_t end) {
                      const int64_t first = begin * kPiece;
                      std::memcpy(static_cast<std::byte*>(args.outputs[0]) + first,
                                  static_cast<const std::byte*>(args.inputs[0]) + first,
                                  std::min(bytes, end * kPiece) - first);
                    });
}

Result<std::unique_ptr<Kernel>> BuildShortRuns(const OpDescription& op, const ReducePlan& plan,
                                               Isa isa) {
  constexpr auto kShortRuns = FUSELITE_SIMD_TABLE(ReduceShortRuns);
  const int64_t block = std::clamp<int64_t>(8192 / plan.terms() & ~int64_t{3}, 4, kShortRunBlock);
  FUSELITE_ASSIGN_OR_RETURN(auto* const reduce, kShortRuns.Require(isa));
  return MakeKernel(
      std::string("reduce short runs f32 ") + SimdName(isa),
      {.units = (plan.outer + block - 1) / block, .grain = GrainFor(plan.terms() * block)},
      [=, kind = ReduceKindOf(*op.op)](const KernelArgs& args, int64_t begin, int64_t end) {
        for (int64_t first = begin * block; begin < end; ++begin, first += block) {
          reduce(kind, plan, static_cast<const float*>(args.inputs[0]), first,
                 static_cast<float*>(args.outputs[0]) + first, std::min(plan.outer - first, block));
        }
      });
}

// `reduce(in, out, n)` gives lanes [out, out + n) of one outer index from In.
template <class In, class Reduce>
std::unique_ptr<Kernel> MakeLanes(std::string name, const ReducePlan& plan, Reduce reduce) {
  const int64_t block = LaneBlock(plan), blocks = CeilDiv(plan.lanes, block);
  return MakeKernel(
      std::move(name),
      {.units = plan.outer * blocks, .grain = GrainFor(plan.terms() * std::min(plan.lanes, block))},
      [=](const KernelArgs& args, int64_t begin, int64_t end) {
        const auto* in = static_cast<const In*>(args.inputs[0]);
        auto* out = static_cast<float*>(args.outputs[0]);
        for (int64_t unit = begin; unit < end; ++unit) {
          const int64_t o = unit / blocks, lane = unit % blocks * block;
          reduce(in + plan.OuterOffset(o) + lane, out + o * plan.lanes + lane,
                 std::min(block, plan.lanes - lane));
        }
      });
}

// About a microsecond's.
constexpr int64_t kPartOfLanes = 8192, kPartOfRuns = 32768;

// ReduceLanes or ReduceRuns.
using ReduceFloats = void(ReduceKind kind, const ReducePlan& plan, const float* in, float* out,
                          size_t n);

std::unique_ptr<Kernel> MakeInParts(std::string name, ReduceKind kind, const ReducePlan& plan,
                                    ReducedParts parts, ReduceFloats* reduce) {
  const ReduceKind of_part = kind == ReduceKind::kMean ? ReduceKind::kSum : kind;
  const int64_t lanes = plan.lanes;
  ReducePlan totals;
  totals.lanes = lanes;
  totals.run_count = parts.count;
  totals.run_stride = lanes;
  totals.averaged = plan.terms();
  ReduceFunctions functions;
  functions.reduce = [=](const KernelArgs& args, const ReducePlan& part, int64_t at,
                         std::byte* to) {
    reduce(of_part, part, static_cast<const float*>(args.inputs[0]) + at,
           reinterpret_cast<float*>(to), static_cast<size_t>(lanes));
  };
  functions.join = [=](const KernelArgs& args, const std::byte* from, int64_t outer) {
    reduce(kind, totals, reinterpret_cast<const float*>(from),
           static_cast<float*>(args.outputs[0]) + outer * lanes, static_cast<size_t>(lanes));
  };
  return MakeReduceInParts(std::move(name), plan, std::move(parts),
                           lanes * static_cast<int64_t>(sizeof(float)), 1, std::move(functions));
}

Result<std::unique_ptr<Kernel>> BuildMeansOfBFloat16(const OpDescription& op,
                                                     const ReducePlan& plan, Isa isa) {
  constexpr auto kMeans = FUSELITE_SIMD_TABLE(MeanLanesOfBFloat16);
  if (ReduceKindOf(*op.op) != ReduceKind::kMean || AlongRuns(plan) || plan.terms() == 0 ||
      op.outputs[0].type != DataType::kFloat32) {
    return Unsupported("takes bfloat16 for means over pixels only, which are float32");
  }
  FUSELITE_ASSIGN_OR_RETURN(auto* const means, kMeans.Require(isa));
  return MakeLanes<BFloat16>(
      std::string("reduce lanes bf16 ") + SimdName(isa), plan,
      [=](const BFloat16* in, float* out, size_t n) { means(plan, in, out, n); });
}

constexpr int64_t kMostGroupedColumns = 512;

// Sums or means over rows and groups of columns: of each column first. Of four terms at a time, 32
// means of 1024 x 4 take three times as long.
Result<std::unique_ptr<Kernel>> BuildSumsOfGroups(const OpDescription& op,
                                                  const GroupedColumns& grouped, Isa isa) {
  constexpr auto kLanes = FUSELITE_SIMD_TABLE(ReduceLanes);
  FUSELITE_ASSIGN_OR_RETURN(auto* const reduce, kLanes.Require(isa));
  const int64_t group = grouped.group;
  const bool mean = ReduceKindOf(*op.op) == ReduceKind::kMean;
  const float divisor = mean ? static_cast<float>(grouped.columns.terms() * group) : 1.0f;
  return MakeKernel(std::string("reduce groups f32 ") + SimdName(isa),
                    {.units = grouped.units(), .grain = GrainFor(grouped.unit_terms())},
                    [=](const KernelArgs& args, int64_t begin, int64_t end) {
                      grouped.ForUnits(begin, end, [&](int64_t in, int64_t to, int64_t n) {
                        float sums[kMostGroupedColumns];
                        reduce(ReduceKind::kSum, grouped.columns,
                               static_cast<const float*>(args.inputs[0]) + in, sums, n * group);
                        float* const out = static_cast<float*>(args.outputs[0]) + to;
                        for (int64_t i = 0; i < n; ++i) {
                          out[i] = std::accumulate(sums + i * group, sums + (i + 1) * group, 0.0f) /
                                   divisor;
                        }
                      });
                    });
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildReduceHighway(const OpDescription& op,
                                                   const BuildContext& context) {
  constexpr auto kLanes = FUSELITE_SIMD_TABLE(ReduceLanes);
  constexpr auto kRuns = FUSELITE_SIMD_TABLE(ReduceRuns);
  const ReducePlan plan = PlanReduce(op);
  if (HasBFloat16Values(op)) return BuildMeansOfBFloat16(op, plan, context.isa);
  FUSELITE_ASSIGN_OR_RETURN(auto* const runs, kRuns.Require(context.isa));
  if (IsCopy(op, plan)) return MakeCopy(op);
  if (BitWidth(op.inputs[0].type) == 8) return BuildReduceBytes(op, context);
  if (op.inputs[0].type != DataType::kFloat32) return BuildReduceIntegers(op, context);
  if (plan.terms() == 0) return Unsupported("does not take a reduction of nothing");
  const ReduceKind kind = ReduceKindOf(*op.op);
  const std::optional<GroupedColumns> grouped = AsGroupedColumns(plan, kMostGroupedColumns);
  if (grouped && (kind == ReduceKind::kSum || kind == ReduceKind::kMean)) {
    return BuildSumsOfGroups(op, *grouped, context.isa);
  }
  const bool along_runs = AlongRuns(plan);
  // Longer runs fill the four vectors that one output has alone.
  constexpr int64_t kShortRun = 256;
  if (along_runs && plan.run_count < kShortRun) return BuildShortRuns(op, plan, context.isa);
  auto* const reduce = along_runs ? runs : kLanes.For(context.isa);
  std::string name =
      std::string(along_runs ? "reduce runs" : "reduce lanes") + " f32 " + SimdName(context.isa);
  if (std::optional<ReducedParts> parts =
          DivideTerms(plan, along_runs ? kPartOfRuns : kPartOfLanes)) {
    return MakeInParts(std::move(name), kind, plan, std::move(*parts), reduce);
  }
  return MakeLanes<float>(std::move(name), plan, [=](const float* in, float* out, size_t n) {
    reduce(kind, plan, in, out, n);
  });
}

}  // namespace fuselite::kernels
#endif
