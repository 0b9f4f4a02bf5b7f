// Reductions of 8-bit values: along the channels that stay, or along runs of terms.
//
// Signed values are read as unsigned ones, 128 higher: one code for both, and bytes are summed
// without sign extension. Sums wrap around in 32 bits, as the reference's differences do.
#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/make_kernel.h"
#include "kernels/reduce/byte_reduction.h"
#include "kernels/reduce/parts.h"
#include "runtime/support/ceil_div.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce/highway_bytes.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/reduce/byte_columns-inl.h"
#include "kernels/reduce/byte_totals-inl.h"
#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"
#include "kernels/simd_math/row_bytes-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Of several runs those of fewer bytes are summed in eights of a 64-bit word: a vector takes longer
// to sum up, and, where it has no masks, to fill in part.
constexpr int64_t kEight = 8;
constexpr int64_t kShortRun = HasMaskedMemory<ByteTag>() ? kEight + 1 : 32;
// Single runs of so many are summed by two vectors of 16 bytes at most.
constexpr int64_t kMostOfVectors = 32;

HWY_INLINE uint32_t SumOfEight(uint64_t bytes) {
  constexpr uint64_t kEvenBytes = 0x00FF00FF00FF00FF, kOnes = 0x0001000100010001;
  const uint64_t pairs = (bytes & kEvenBytes) + ((bytes >> 8) & kEvenBytes);
  return static_cast<uint32_t>((pairs * kOnes) >> 48);
}

// `flips`: a flip in each byte.
HWY_INLINE uint32_t SumShortRun(const uint8_t* x, int64_t n, uint64_t flips) {
  uint32_t total = 0;
  for (; n > 0; n -= kEight, x += kEight) {
    uint64_t bytes = 0;
    if (n >= kEight) {
      std::memcpy(&bytes, x, kEight);
      bytes ^= flips;
    } else {
      for (int64_t i = n; i-- > 0;) bytes = bytes << 8 | static_cast<uint8_t>(x[i] ^ flips);
    }
    total += SumOfEight(bytes);
  }
  return total;
}

// One run of at most eight bytes for each of the outputs [first, first + n). All but those next to
// the input's end are read with what follows them.
HWY_INLINE void SumRunsOfEight(const ReducePlan& plan, const uint8_t* in, uint64_t flips,
                               int64_t first, int64_t n, uint32_t* to) {
  const int64_t last = plan.OuterOffset(plan.outer - 1) + plan.run_count - kEight;
  const uint64_t kept = ~uint64_t{0} >> 8 * (kEight - plan.run_count);
  plan.ForOuter(first, first + n, [&](int64_t offset) {
    if (offset > last) {
      *to++ = SumShortRun(in + offset, plan.run_count, flips);
      return;
    }
    uint64_t bytes;
    std::memcpy(&bytes, in + offset, kEight);
    *to++ = SumOfEight((bytes ^ flips) & kept);
  });
}

// The same of 9 to 32 bytes, by one or two vectors of 16: 8400 runs of 16 take 26 us, which took 68
// by words (Zen 3).
HWY_INLINE void SumRunsOfVectors(const ReducePlan& plan, const uint8_t* in, uint64_t flips,
                                 int64_t first, int64_t n, uint32_t* to) {
  constexpr int64_t kVector = 16;
  const hn::Full128<uint8_t> d;
  const hn::Full128<uint64_t> dw;
  const int64_t count = plan.run_count;
  const int64_t last = plan.OuterOffset(plan.outer - 1) + count - kVector;
  const auto sign = hn::Set(d, static_cast<uint8_t>(flips));
  const auto kept = hn::FirstN(d, static_cast<size_t>(count));
  // Of the second vector, which ends with the run, what the first has not.
  const auto summed = hn::FirstN(d, static_cast<size_t>(std::max<int64_t>(0, 2 * kVector - count)));
  plan.ForOuter(first, first + n, [&](int64_t offset) HWY_ATTR {
    if (offset > last) {
      *to++ = SumShortRun(in + offset, count, flips);
      return;
    }
    const uint8_t* const x = in + offset;
    auto sums = hn::SumsOf8(hn::IfThenElseZero(kept, hn::Xor(hn::LoadU(d, x), sign)));
    if (count > kVector) {
      const auto second = hn::Xor(hn::LoadU(d, x + count - kVector), sign);
      sums = hn::Add(sums, hn::SumsOf8(hn::IfThenZeroElse(summed, second)));
    }
    *to++ = static_cast<uint32_t>(hn::GetLane(hn::SumOfLanes(dw, sums)));
  });
}

HWY_INLINE uint32_t SumShortRuns(const ReducePlan& plan, const uint8_t* in, uint64_t flips) {
  uint32_t total = 0;
  for (int64_t run = 0; run < plan.runs; ++run) {
    total += SumShortRun(run == 0 ? in : in + plan.RunOffset(run), plan.run_count, flips);
  }
  return total;
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
    if (i == 0) {
      const auto last = hn::Xor(LoadPartial(d, x, n), sign);
      total = hn::Add(total, hn::SumsOf8(hn::IfThenElseZero(hn::FirstN(d, n), last)));
      continue;
    }
    // With those before it that are summed already.
    const auto last = hn::Xor(hn::LoadU(d, x + n - lanes), sign);
    const auto summed = hn::FirstN(d, lanes - (n - i));
    total = hn::Add(total, hn::SumsOf8(hn::IfThenZeroElse(summed, last)));
  }
  return static_cast<uint32_t>(hn::GetLane(hn::SumOfLanes(dw, total)));
}

// The largest or smallest of an output's values, as they are. `kShort`: runs are below kShortRow.
template <bool kMax, bool kShort, class T>
HWY_INLINE uint8_t ExtremeOfRuns(const ReducePlan& plan, const uint8_t* in) {
  T extreme = kMax ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  for (int64_t run = 0; run < plan.runs; ++run) {
    const auto* x = reinterpret_cast<const T*>(in + plan.RunOffset(run));
    const auto n = static_cast<size_t>(plan.run_count);
    const T of_run = kShort ? ShortRowExtreme<kMax>(x, n) : LongRowExtreme<kMax>(x, n);
    extreme = kMax ? std::max(extreme, of_run) : std::min(extreme, of_run);
  }
  return static_cast<uint8_t>(extreme);
}

template <bool kMax, bool kShort, class T>
HWY_INLINE void ExtremesOfRuns(const ReducePlan& plan, const uint8_t* in, int64_t first,
                               uint8_t* out, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const uint8_t* x = in + plan.OuterOffset(first + static_cast<int64_t>(i));
    out[i] = ExtremeOfRuns<kMax, kShort, T>(plan, x);
  }
}

template <bool kMax, class T>
HWY_INLINE void ExtremesOfRuns(const ReducePlan& plan, const uint8_t* in, int64_t first,
                               uint8_t* out, size_t n) {
  plan.run_count < static_cast<int64_t>(kShortRow)
      ? ExtremesOfRuns<kMax, true, T>(plan, in, first, out, n)
      : ExtremesOfRuns<kMax, false, T>(plan, in, first, out, n);
}

template <bool kMax>
HWY_INLINE void ReduceRunsTo(const ByteReduction& f, const ReducePlan& plan, const uint8_t* in,
                             int64_t first, uint8_t* out, size_t n) {
  f.flip != 0 ? ExtremesOfRuns<kMax, int8_t>(plan, in, first, out, n)
              : ExtremesOfRuns<kMax, uint8_t>(plan, in, first, out, n);
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
    HWY_ALIGN uint8_t totals[kByteBlock + 16];
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
  const uint64_t flips = uint64_t{0x0101010101010101} * f.flip;
  const auto count = static_cast<int64_t>(n);
  if (plan.runs == 1 && plan.run_count <= kEight) {
    SumRunsOfEight(plan, in, flips, first, count, sums);
  } else if (plan.runs == 1 && plan.run_count <= kMostOfVectors) {
    SumRunsOfVectors(plan, in, flips, first, count, sums);
  } else {
    uint32_t* to = sums;
    const bool is_short = plan.run_count < kShortRun;
    plan.ForOuter(first, first + count, [&](int64_t offset) HWY_ATTR {
      *to++ =
          is_short ? SumShortRuns(plan, in + offset, flips) : SumRuns(plan, in + offset, f.flip);
    });
  }
  RescaleSums(f.rescale, sums, out, f.flip, plan.terms(), n);
}

// The sums of a part's lanes, without rescaling; `in` at its first term.
void SumPart(const ReducePlan& part, const uint8_t* in, uint8_t flip, uint32_t* sums) {
  if (AlongRuns(part)) {
    *sums = SumRuns(part, in, flip);
    return;
  }
  for (int64_t c = 0; c < part.lanes; c += kByteBlock) {
    const auto n = static_cast<size_t>(std::min(kByteBlock, part.lanes - c));
    HWY_ALIGN uint32_t totals[kByteBlock] = {};
    SumColumns(part, in + c, flip, totals, n);
    std::copy_n(totals, n, sums + c);
  }
}

// The outputs of `lanes` lanes of `terms` terms, summed in `parts` parts.
void JoinSums(const ByteReduction& f, const uint32_t* sums, int64_t parts, int64_t lanes,
              int64_t terms, uint8_t* out) {
  for (int64_t c = 0; c < lanes; c += kByteBlock) {
    const auto n = static_cast<size_t>(std::min(kByteBlock, lanes - c));
    HWY_ALIGN uint32_t totals[kByteBlock] = {};
    for (int64_t part = 0; part < parts; ++part) {
      const uint32_t* const of_part = sums + part * lanes + c;
      for (size_t i = 0; i < n; ++i) totals[i] += of_part[i];
    }
    RescaleSums(f.rescale, totals, out + c, f.flip, terms, n);
  }
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

// About a microsecond's, of a few rows each.
constexpr int64_t kPartOfBytes = 32768;

Result<std::unique_ptr<Kernel>> MakeSumsInParts(std::string name, const ReducePlan& plan,
                                                ReducedParts parts, const ByteReduction& reduction,
                                                Isa isa) {
  constexpr auto kPart = FUSELITE_SIMD_TABLE(SumPart);
  constexpr auto kJoin = FUSELITE_SIMD_TABLE(JoinSums);
  FUSELITE_ASSIGN_OR_RETURN(auto* const sum, kPart.Require(isa));
  FUSELITE_ASSIGN_OR_RETURN(auto* const join_sums, kJoin.Require(isa));
  const int64_t lanes = plan.lanes;
  ReduceFunctions functions;
  functions.reduce = [=](const KernelArgs& args, const ReducePlan& part, int64_t at,
                         std::byte* to) {
    sum(part, static_cast<const uint8_t*>(args.inputs[0]) + at, reduction.flip,
        reinterpret_cast<uint32_t*>(to));
  };
  functions.join = [=, count = parts.count, terms = plan.terms()](
                       const KernelArgs& args, const std::byte* from, int64_t outer) {
    join_sums(reduction, reinterpret_cast<const uint32_t*>(from), count, lanes, terms,
              static_cast<uint8_t*>(args.outputs[0]) + outer * lanes);
  };
  return MakeReduceInParts(std::move(name), plan, std::move(parts),
                           lanes * static_cast<int64_t>(sizeof(uint32_t)), 1, std::move(functions));
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
  if (plan.terms() == 0) return Unsupported("does not take a reduction of nothing");
  const bool along_runs = AlongRuns(plan);
  const ByteReduction reduction{kind, static_cast<uint8_t>(type == DataType::kInt8 ? 0x80 : 0),
                                sums ? MakeRescale(op, plan.terms()) : Rescale{}};
  if (sums && !along_runs && plan.lanes < kFewLanes && plan.outer > 1) {
    return MakeSumsOfOuters(plan, reduction, context.isa);
  }
  if (const std::optional<GroupedColumns> grouped = AsGroupedColumns(plan, kByteBlock)) {
    return MakeReduceGroups(*grouped, reduction, context.isa);
  }
  std::string name = internal::Join(along_runs ? "reduce runs " : "reduce lanes ",
                                    DataTypeName(type), ' ', SimdName(context.isa));
  if (std::optional<ReducedParts> parts = DivideTerms(plan, kPartOfBytes); parts && sums) {
    return MakeSumsInParts(std::move(name), plan, std::move(*parts), reduction, context.isa);
  }
  const int64_t along = along_runs ? plan.outer : plan.lanes;
  const int64_t blocks = (along + kByteBlock - 1) / kByteBlock;
  return MakeKernel(std::move(name),
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
