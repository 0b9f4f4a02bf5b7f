// Reductions of 8-bit values: along the channels that stay, or along runs of terms.
//
// Signed values are read as unsigned ones, 128 higher: one code for both, and bytes are summed
// without sign extension. Sums wrap around in 32 bits, as the reference's differences do.
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/make_kernel.h"
#include "kernels/reduce/reduce.h"
#include "kernels/reduce/rescale.h"
#include "runtime/ceil_div.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce/highway_bytes.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"
#include "kernels/simd_math/row_bytes-inl.h"
#include "kernels/simd_math/uniform_scale-inl.h"

#ifndef FUSELITE_KERNELS_REDUCE_HIGHWAY_BYTES_ONCE_
#define FUSELITE_KERNELS_REDUCE_HIGHWAY_BYTES_ONCE_
namespace fuselite::kernels {

// Outputs of a unit: enough that a row of channels is read once, and short sums are rescaled
// together.
constexpr int64_t kByteBlock = 256;

struct ByteReduction {
  ReduceKind kind;
  uint8_t flip;  // 0x80 where the values are signed
  Rescale rescale;
};

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Sums of 16 bits, of even and of odd lanes, hold this many bytes: 256 * 255 < 2^16.
constexpr int64_t kByteTerms = 256;

using ByteTag = hn::ScalableTag<uint8_t>;
using HalfByteTag = hn::CappedTag<uint8_t, 32>;
using SmallByteTag = hn::FixedTag<uint8_t, 16>;

// Adds sums of 16 bits, of a vector's even and odd bytes, to totals[0 ..] from byte `skip` on.
template <class DW>
HWY_INLINE void AddSums(DW /*dw*/, hn::Vec<DW> even, hn::Vec<DW> odd, size_t skip,
                        uint32_t* totals) {
  const hn::RepartitionToWide<DW> d;
  const size_t lanes = hn::Lanes(d);
  const auto wide_even = hn::BitCast(d, even), wide_odd = hn::BitCast(d, odd);
  const auto low = hn::Set(d, 0xFFFF);
  HWY_ALIGN uint32_t sums[4 * hn::MaxLanes(d)];
  hn::StoreInterleaved4(hn::And(wide_even, low), hn::And(wide_odd, low),
                        hn::ShiftRight<16>(wide_even), hn::ShiftRight<16>(wide_odd), d, sums);
  if (skip == 0) {
    for (size_t i = 0; i < 4 * lanes; i += lanes) {
      hn::StoreU(hn::Add(hn::LoadU(d, totals + i), hn::Load(d, sums + i)), d, totals + i);
    }
  }
  for (size_t i = skip; skip > 0 && i < 4 * lanes; ++i) totals[i] += sums[i];
}

// Adds a vector's lanes of `terms` <= kByteTerms terms, each read by load(pointer), to totals[0
// ..]; the first `skip` lanes are left out.
template <class D, class Load>
HWY_INLINE void AddColumns(D d, const uint8_t* in, int64_t stride, int64_t terms, uint8_t flip,
                           size_t skip, uint32_t* totals, Load load) {
  const hn::Repartition<uint16_t, D> dw;
  const auto low = hn::Set(dw, 0xFF);
  const auto sign = hn::Set(d, flip);
  auto even = hn::Zero(dw), odd = hn::Zero(dw);
  for (int64_t t = 0; t < terms; ++t, in += stride) {
    const auto x = hn::BitCast(dw, hn::Xor(load(in), sign));
    even = hn::Add(even, hn::And(x, low));
    odd = hn::Add(odd, hn::ShiftRight<8>(x));
  }
  AddSums(dw, even, odd, skip, totals);
}

// The same of maxima or minima.
template <bool kMax, class D, class Load>
HWY_INLINE void ExtremeColumns(D d, const uint8_t* in, int64_t stride, int64_t terms, uint8_t flip,
                               uint8_t* totals, Load load) {
  const auto sign = hn::Set(d, flip);
  auto total = hn::LoadU(d, totals);
  for (int64_t t = 0; t < terms; ++t, in += stride) {
    total = ExtremeOf<kMax>(total, hn::Xor(load(in), sign));
  }
  hn::StoreU(total, d, totals);
}

// f(tag, channel, skip, load) for vectors that cover channels [0, n), of 64, 32 or 16 lanes: the
// last one overlaps its predecessor by `skip` lanes where n is no multiple of 16. Fewer than 16 are
// the first of a vector whose other lanes are anything.
template <class F>
HWY_INLINE void ForColumns(size_t n, F f) {
  const ByteTag d;
  const SmallByteTag small;
  const size_t lanes = hn::Lanes(d);
  const auto load_small = [](const uint8_t* x) HWY_ATTR { return hn::LoadU(SmallByteTag(), x); };
  if (n < 16) {
    return f(small, 0, 0,
             [n](const uint8_t* x) HWY_ATTR { return LoadPartial(SmallByteTag(), x, n); });
  }
  size_t c = 0;
  for (; c + lanes <= n; c += lanes) {
    f(d, c, 0, [](const uint8_t* x) HWY_ATTR { return hn::LoadU(ByteTag(), x); });
  }
  const auto half = static_cast<size_t>(hn::Lanes(HalfByteTag()));
  const auto load_half = [](const uint8_t* x) HWY_ATTR { return hn::LoadU(HalfByteTag(), x); };
  for (; c + half <= n; c += half) f(HalfByteTag(), c, 0, load_half);
  if (c + 16 < n && n >= half) return f(HalfByteTag(), n - half, c + half - n, load_half);
  if (c + 16 <= n) {
    f(small, c, 0, load_small);
    c += 16;
  }
  if (c < n) f(small, n - 16, c + 16 - n, load_small);
}

// Adds the n <= kByteBlock channels of `count` rows to `totals`, of which there are at least 16.
HWY_INLINE void SumRows(const uint8_t* x, int64_t count, int64_t stride, uint8_t flip,
                        uint32_t* totals, size_t n) {
  for (; count > 0; count -= kByteTerms, x += kByteTerms * stride) {
    ForColumns(n, [&](auto d, size_t c, size_t skip, auto load) HWY_ATTR {
      AddColumns(d, x + c, stride, std::min(kByteTerms, count), flip, skip, totals + c, load);
    });
  }
}

template <bool kMax>
HWY_INLINE void ExtremesOfRows(const uint8_t* x, int64_t count, int64_t stride, uint8_t flip,
                               uint8_t* totals, size_t n) {
  ForColumns(n, [&](auto d, size_t c, size_t, auto load) HWY_ATTR {
    ExtremeColumns<kMax>(d, x + c, stride, count, flip, totals + c, load);
  });
}

// How many rows of few channels are taken as one of 16 to 128 channels: few enough that four such
// rows, where there are as many, repay folding them into one.
HWY_INLINE int64_t RowsTogether(const ReducePlan& plan, int64_t n) {
  const bool dense = plan.lanes == n && plan.run_stride == n;
  if (!dense || n >= 16) return 1;
  return std::clamp(plan.run_count / 4, (15 + n) / n, 128 / n);
}

// All terms: rows(x, count, stride). Where few channels are all of a row, several rows are taken as
// one of more channels first: joined(x, count, together).
template <class Rows, class Joined>
HWY_INLINE void ForRows(const ReducePlan& plan, const uint8_t* in, size_t n, Rows rows,
                        Joined joined) {
  const int64_t together = RowsTogether(plan, static_cast<int64_t>(n));
  for (int64_t run = 0; run < plan.runs; ++run) {
    const uint8_t* x = in + plan.RunOffset(run);
    const int64_t whole = together > 1 ? plan.run_count / together : 0;
    if (whole > 0) joined(x, whole, together);
    rows(x + whole * together * plan.run_stride, plan.run_count - whole * together,
         plan.run_stride);
  }
}

HWY_INLINE void SumColumns(const ReducePlan& plan, const uint8_t* in, uint8_t flip,
                           uint32_t* totals, size_t n) {
  ForRows(
      plan, in, n,
      [&](const uint8_t* x, int64_t count, int64_t stride)
          HWY_ATTR { SumRows(x, count, stride, flip, totals, n); },
      [&](const uint8_t* x, int64_t count, int64_t together) HWY_ATTR {
        // Behind the last part is room for 16 channels of each; no more than n count.
        HWY_ALIGN uint32_t parts[128 + 16] = {};
        const size_t wide = together * n;
        SumRows(x, count, static_cast<int64_t>(wide), flip, parts, wide);
        for (const uint32_t* part = parts; part != parts + wide; part += n) {
          for (size_t c = 0; c < 16; ++c) totals[c] += part[c];
        }
      });
}

template <bool kMax>
HWY_INLINE void ExtremesOfColumns(const ReducePlan& plan, const uint8_t* in, uint8_t flip,
                                  uint8_t* totals, size_t n) {
  std::fill(totals, totals + std::max<size_t>(n, 16), kMax ? 0 : 255);
  ForRows(
      plan, in, n,
      [&](const uint8_t* x, int64_t count, int64_t stride)
          HWY_ATTR { ExtremesOfRows<kMax>(x, count, stride, flip, totals, n); },
      [&](const uint8_t* x, int64_t count, int64_t together) HWY_ATTR {
        HWY_ALIGN uint8_t parts[128];
        const size_t wide = together * n;
        std::fill(parts, parts + wide, kMax ? 0 : 255);
        ExtremesOfRows<kMax>(x, count, static_cast<int64_t>(wide), flip, parts, wide);
        ExtremesOfRows<kMax>(parts, together, static_cast<int64_t>(n), 0, totals, n);
      });
}

HWY_INLINE uint32_t SumRuns(const ReducePlan& plan, const uint8_t* in, uint8_t flip) {
  const ByteTag d;
  const hn::Repartition<uint64_t, ByteTag> dw;
  const size_t lanes = hn::Lanes(d), n = plan.run_count;
  const auto sign = hn::Set(d, flip);
  auto total = hn::Zero(dw);
  for (int64_t run = 0; run < plan.runs; ++run) {
    const uint8_t* x = in + plan.RunOffset(run);
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
      total = hn::Add(total, hn::SumsOf8(hn::Xor(hn::LoadU(d, x + i), sign)));
    }
    if (i == n) continue;
    const auto last = hn::Xor(LoadPartial(d, x + i, n - i), sign);
    total = hn::Add(total, hn::SumsOf8(hn::IfThenElseZero(hn::FirstN(d, n - i), last)));
  }
  return static_cast<uint32_t>(hn::GetLane(hn::SumOfLanes(dw, total)));
}

// Of values as they are.
template <bool kMax, class T>
HWY_INLINE uint8_t ExtremeOfRuns(const ReducePlan& plan, const uint8_t* in) {
  T extreme = kMax ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  for (int64_t run = 0; run < plan.runs; ++run) {
    const auto* x = reinterpret_cast<const T*>(in + plan.RunOffset(run));
    const T of_run = RowExtreme<kMax>(x, static_cast<size_t>(plan.run_count));
    extreme = kMax ? std::max(extreme, of_run) : std::min(extreme, of_run);
  }
  return static_cast<uint8_t>(extreme);
}

template <bool kMax>
HWY_INLINE void ReduceRunsTo(const ByteReduction& f, const ReducePlan& plan, const uint8_t* in,
                             int64_t first, uint8_t* out, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const uint8_t* x = in + plan.OuterOffset(first + static_cast<int64_t>(i));
    out[i] =
        f.flip != 0 ? ExtremeOfRuns<kMax, int8_t>(plan, x) : ExtremeOfRuns<kMax, uint8_t>(plan, x);
  }
}

// Rescale, of sums of bytes that were read `flip` higher.
HWY_INLINE void RescaleSums(const Rescale& r, const uint32_t* sums, uint8_t* out, uint8_t flip,
                            int64_t terms, size_t n) {
  const UniformScale::D d;
  const hn::Rebind<uint8_t, UniformScale::D> narrow;
  const UniformScale scale(r.multiplier, r.shift);
  const auto zero_points = hn::Set(d, static_cast<int32_t>(r.input_zero_points + flip * terms));
  const auto zero_point = hn::Set(d, r.zero_point);
  const auto min = hn::Set(d, r.min), max = hn::Set(d, r.max);
  const auto low_byte = hn::Set(hn::RebindToUnsigned<UniformScale::D>(), 0xFF);
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < n; i += lanes) {
    const auto sum = hn::LoadU(d, reinterpret_cast<const int32_t*>(sums) + i);
    const auto scaled = hn::Add(scale(hn::Sub(sum, zero_points)), zero_point);
    const auto clamped = hn::Min(hn::Max(scaled, min), max);
    const auto bytes = hn::BitCast(
        d, hn::And(hn::BitCast(hn::RebindToUnsigned<UniformScale::D>(), clamped), low_byte));
    StoreUpTo(hn::DemoteTo(narrow, bytes), narrow, out + i, n - i);
  }
}

HWY_INLINE void FlipTo(const uint8_t* totals, uint8_t flip, uint8_t* out, size_t n) {
  const ByteTag d;
  const auto sign = hn::Set(d, flip);
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    StoreUpTo(hn::Xor(hn::Load(d, totals + i), sign), d, out + i, n - i);
  }
}

// Sums of so few bytes that vectors would take longer to set up than the additions take.
constexpr int64_t kFewBytes = 96;

HWY_INLINE void SumFewColumns(const ReducePlan& plan, const uint8_t* in, uint8_t flip,
                              uint32_t* totals, int64_t n) {
  for (int64_t run = 0; run < plan.runs; ++run) {
    const uint8_t* const x = run == 0 ? in : in + plan.RunOffset(run);
    for (int64_t c = 0; c < n; ++c) {
      uint32_t total = 0;
      for (int64_t t = 0; t < plan.run_count; ++t) {
        total += static_cast<uint8_t>(x[t * plan.run_stride + c] ^ flip);
      }
      totals[c] += total;
    }
  }
}

// All lanes of the outer indices [first, first + count), kByteBlock of them at most and fewer than
// 16 of each: what is summed is rescaled together.
void SumOuters(const ByteReduction& f, const ReducePlan& plan, const uint8_t* in, int64_t first,
               uint8_t* out, size_t count) {
  const auto n = static_cast<size_t>(plan.lanes);
  const bool few = plan.terms() * plan.lanes <= kFewBytes;
  HWY_ALIGN uint32_t totals[kByteBlock] = {};
  uint32_t* to = totals;
  plan.ForOuter(first, first + static_cast<int64_t>(count), [&](int64_t offset) HWY_ATTR {
    if (few) {
      SumFewColumns(plan, in + offset, f.flip, to, plan.lanes);
    } else {
      HWY_ALIGN uint32_t sums[16] = {};
      SumColumns(plan, in + offset, f.flip, sums, n);
      std::copy_n(sums, n, to);
    }
    to += n;
  });
  RescaleSums(f.rescale, totals, out, f.flip, plan.terms(), count * n);
}

// Outputs [lane, lane + n), n <= kByteBlock, of one outer index; `in` at its first term.
void ReduceColumns(const ByteReduction& f, const ReducePlan& plan, const uint8_t* in, uint8_t* out,
                   size_t n) {
  if (f.kind == ReduceKind::kMax || f.kind == ReduceKind::kMin) {
    HWY_ALIGN uint8_t totals[kByteBlock];
    f.kind == ReduceKind::kMax ? ExtremesOfColumns<true>(plan, in, f.flip, totals, n)
                               : ExtremesOfColumns<false>(plan, in, f.flip, totals, n);
    return FlipTo(totals, f.flip, out, n);
  }
  HWY_ALIGN uint32_t totals[kByteBlock] = {};
  SumColumns(plan, in, f.flip, totals, n);
  RescaleSums(f.rescale, totals, out, f.flip, plan.terms(), n);
}

// Outputs [first, first + n), n <= kByteBlock, that have one lane each.
void ReduceRuns(const ByteReduction& f, const ReducePlan& plan, const uint8_t* in, int64_t first,
                uint8_t* out, size_t n) {
  if (f.kind == ReduceKind::kMax) return ReduceRunsTo<true>(f, plan, in, first, out, n);
  if (f.kind == ReduceKind::kMin) return ReduceRunsTo<false>(f, plan, in, first, out, n);
  HWY_ALIGN uint32_t sums[kByteBlock] = {};
  for (size_t i = 0; i < n; ++i) {
    sums[i] = SumRuns(plan, in + plan.OuterOffset(first + static_cast<int64_t>(i)), f.flip);
  }
  RescaleSums(f.rescale, sums, out, f.flip, plan.terms(), n);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

// Truth values are 0 and 1: their sum is true where the largest is, their product where the least
// is.
ReduceKind KindOfBytes(const OpDescription& op) {
  const ReduceKind kind = ReduceKindOf(*op.op);
  if (op.inputs[0].type != DataType::kBool) return kind;
  const bool any = kind == ReduceKind::kAny || kind == ReduceKind::kMax || kind == ReduceKind::kSum;
  return any ? ReduceKind::kMax : ReduceKind::kMin;
}

// Sums of so few lanes share their rescaling with those beside them.
constexpr int64_t kFewLanes = 16;

Result<std::unique_ptr<Kernel>> MakeSumsOfOuters(const ReducePlan& plan,
                                                 const ByteReduction& reduction, Isa isa) {
  constexpr auto kOuters = FUSELITE_SIMD_TABLE(SumOuters);
  FUSELITE_ASSIGN_OR_RETURN(auto* const outers, kOuters.Require(isa));
  const int64_t together = kByteBlock / plan.lanes;
  return MakeKernel(
      internal::Join("reduce few lanes ", reduction.flip != 0 ? "int8 " : "uint8 ", SimdName(isa)),
      {.units = CeilDiv(plan.outer, together),
       .grain = GrainFor(plan.terms() * together * plan.lanes / 8)},
      [=](const KernelArgs& args, int64_t begin, int64_t end) {
        for (int64_t first = begin * together; begin < end; ++begin, first += together) {
          outers(reduction, plan, static_cast<const uint8_t*>(args.inputs[0]), first,
                 static_cast<uint8_t*>(args.outputs[0]) + first * plan.lanes,
                 std::min(together, plan.outer - first));
        }
      });
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildReduceBytes(const OpDescription& op,
                                                 const BuildContext& context) {
  constexpr auto kColumns = FUSELITE_SIMD_TABLE(ReduceColumns);
  constexpr auto kRuns = FUSELITE_SIMD_TABLE(ReduceRuns);
  const DataType type = op.inputs[0].type;
  const ReduceKind kind = KindOfBytes(op);
  const bool sums = kind == ReduceKind::kMean || kind == ReduceKind::kSum;
  if (!(sums || kind == ReduceKind::kMax || kind == ReduceKind::kMin)) {
    return Unsupported(op.op->name, " of ", DataTypeName(type), " has no vector version");
  }
  FUSELITE_ASSIGN_OR_RETURN(auto* const columns, kColumns.Require(context.isa));
  FUSELITE_ASSIGN_OR_RETURN(auto* const runs, kRuns.Require(context.isa));
  const ReducePlan plan = PlanReduce(op);
  if (plan.terms() == 0) return Unsupported("a reduction of nothing");
  const bool along_runs = AlongRuns(plan);
  const ByteReduction reduction{kind, static_cast<uint8_t>(type == DataType::kInt8 ? 0x80 : 0),
                                sums ? MakeRescale(op, plan.terms()) : Rescale{}};
  if (sums && !along_runs && plan.lanes < kFewLanes && plan.outer > 1) {
    return MakeSumsOfOuters(plan, reduction, context.isa);
  }
  const int64_t along = along_runs ? plan.outer : plan.lanes;
  const int64_t blocks = (along + kByteBlock - 1) / kByteBlock;
  return MakeKernel(std::string(along_runs ? "reduce runs " : "reduce lanes ") +
                        std::string(DataTypeName(type)) + " " + SimdName(context.isa),
                    {.units = along_runs ? blocks : plan.outer * blocks,
                     .grain = GrainFor(plan.terms() * std::min(along, kByteBlock) / 8)},
                    [=](const KernelArgs& args, int64_t begin, int64_t end) {
                      const auto* in = static_cast<const uint8_t*>(args.inputs[0]);
                      auto* out = static_cast<uint8_t*>(args.outputs[0]);
                      for (int64_t unit = begin; unit < end; ++unit) {
                        const int64_t o = unit / blocks, first = unit % blocks * kByteBlock;
                        const int64_t n = std::min(kByteBlock, along - first);
                        if (along_runs) {
                          runs(reduction, plan, in, first, out + first, n);
                        } else {
                          columns(reduction, plan, in + plan.OuterOffset(o) + first,
                                  out + o * plan.lanes + first, n);
                        }
                      }
                    });
}

}  // namespace fuselite::kernels
#endif
