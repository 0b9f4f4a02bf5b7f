#include "kernels/elementwise/bytes/byte_map.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/elementwise/broadcast.h"
#include "kernels/elementwise/bytes/byte_lines.h"
#include "kernels/elementwise/bytes/byte_permutes.h"
#include "kernels/make_kernel.h"
#include "kernels/movement/copy_loops.h"
#include "kernels/tail/apply.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/bytes/byte_map.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/pack_bytes-inl.h"
#include "kernels/simd_math/row_sums-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// How many lines a function has, and which of two.
enum class Lines { kOne, kLarger, kSmaller };

// ByteLines on vectors.
template <Lines kLines, bool kCorrects>
class LineLanes {
  using D = hn::ScalableTag<uint8_t>;
  using DI = hn::RebindToSigned<D>;
  using D16 = hn::RepartitionToWide<DI>;
  using V = hn::Vec<D>;
  using V16 = hn::Vec<D16>;

 public:
  HWY_INLINE explicit LineLanes(const ByteLines& f)
      : slope0_(hn::Set(D16(), f.slopes[0])),
        slope1_(hn::Set(D16(), f.slopes[1])),
        start0_(hn::Set(D16(), f.starts[0])),
        start1_(hn::Set(D16(), f.starts[1])),
        in_flip_(hn::Set(D(), f.in_flip)),
        out_flip_(hn::Set(D(), f.out_flip)),
        bits_of_low_(hn::LoadDup128(D(), f.bits)),
        bits_of_high_(hn::LoadDup128(D(), f.bits + 16)),
        shift_(f.shift) {
    alignas(16) static constexpr uint8_t kPowers[16] = {1, 2, 4, 8, 16, 32, 64, 128,
                                                        1, 2, 4, 8, 16, 32, 64, 128};
    powers_ = hn::LoadDup128(D(), kPowers);
  }

  // Bytes become the high ones of 16 bits, in the order in which they are packed again.
  HWY_INLINE V operator()(V x) const {
    const D d;
    x = hn::Xor(x, in_flip_);
    const auto zero = hn::Zero(d);
    const auto lower = OnLines(hn::BitCast(D16(), hn::InterleaveLower(d, zero, x)));
    const auto upper = OnLines(hn::BitCast(D16(), hn::InterleaveUpper(d, zero, x)));
    auto results = hn::BitCast(d, PackBytes(DI(), lower, upper));
    if constexpr (kCorrects) results = hn::Add(results, OneWhereBitIsSet(x));
    return hn::Xor(results, out_flip_);
  }

 private:
  // Not yet within 8 bits.
  HWY_INLINE V16 OnLines(V16 x) const {
    auto q = hn::SaturatedAdd(hn::MulHigh(x, slope0_), start0_);
    if constexpr (kLines != Lines::kOne) {
      const auto other = hn::SaturatedAdd(hn::MulHigh(x, slope1_), start1_);
      q = kLines == Lines::kLarger ? hn::Max(q, other) : hn::Min(q, other);
    }
    return hn::ShiftRightSame(q, shift_);
  }

  HWY_INLINE V OneWhereBitIsSet(V x) const {
    const D d;
    const hn::RepartitionToWide<D> du;
    const auto byte =
        hn::And(hn::BitCast(d, hn::ShiftRight<3>(hn::BitCast(du, x))), hn::Set(d, uint8_t{15}));
    // A comparison: IfNegativeThenElse takes all bits for the sign below AVX2.
    const auto upper = hn::RebindMask(d, hn::Lt(hn::BitCast(DI(), x), hn::Zero(DI())));
    const auto bits = hn::IfThenElse(upper, hn::TableLookupBytes(bits_of_high_, byte),
                                     hn::TableLookupBytes(bits_of_low_, byte));
    const auto power = hn::TableLookupBytes(powers_, hn::And(x, hn::Set(d, uint8_t{15})));
    const auto set = hn::VecFromMask(d, hn::Eq(hn::And(bits, power), power));
    return hn::And(set, hn::Set(d, uint8_t{1}));
  }

  V16 slope0_, slope1_, start0_, start1_;
  V in_flip_, out_flip_, bits_of_low_, bits_of_high_, powers_;
  int shift_;
};

template <Lines kLines, bool kCorrects>
void MapLines(const ByteLines& f, const uint8_t* in, uint8_t* out, size_t n) {
  const LineLanes<kLines, kCorrects> map(f);
  RowMap(in, out, n, [&](auto bytes) HWY_ATTR { return map(bytes); });
}

template <Lines kLines>
void MapLines(const ByteLines& f, const uint8_t* in, uint8_t* out, size_t n) {
  f.corrects ? MapLines<kLines, true>(f, in, out, n) : MapLines<kLines, false>(f, in, out, n);
}

void MapByLines(const ByteLines& f, const uint8_t* in, uint8_t* out, size_t n) {
  if (f.slopes[0] == f.slopes[1] && f.starts[0] == f.starts[1]) {
    return MapLines<Lines::kOne>(f, in, out, n);
  }
  f.larger ? MapLines<Lines::kLarger>(f, in, out, n) : MapLines<Lines::kSmaller>(f, in, out, n);
}

void MapWithin(const ByteLimits& f, const uint8_t* in, uint8_t* out, size_t n) {
  const hn::ScalableTag<uint8_t> d;
  const auto lowest = hn::Set(d, f.lowest), highest = hn::Set(d, f.highest);
  const auto flip = hn::Set(d, f.flip);
  RowMap(in, out, n, [&](auto bytes) HWY_ATTR {
    return hn::Xor(hn::Min(hn::Max(hn::Xor(bytes, flip), lowest), highest), flip);
  });
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

// n bytes from `in` to `out`.
using MapBytes = std::function<void(const uint8_t* in, uint8_t* out, int64_t n)>;

// Rows below two vectors with gaps between them are mapped together, and copied for that: a call
// takes as long as 64 bytes.
constexpr int64_t kLongestJoined = 128;

// `rows` rows of n bytes, `in_stride` and `out_stride` apart; the former have room in `scratch`.
void MapRows(const MapBytes& map, const CopyLoops& loops, const uint8_t* in, int64_t in_stride,
             uint8_t* out, int64_t out_stride, int64_t rows, int64_t n, std::byte* scratch) {
  if (rows == 1 || (in_stride == n && out_stride == n)) return map(in, out, rows * n);
  if (n > kLongestJoined) {
    for (int64_t r = 0; r < rows; ++r) map(in + r * in_stride, out + r * out_stride, n);
    return;
  }
  auto* const joined = out_stride == n ? out : reinterpret_cast<uint8_t*>(scratch);
  if (in_stride != n) {
    loops.rows(reinterpret_cast<const std::byte*>(in), reinterpret_cast<std::byte*>(joined),
               {rows, in_stride, n}, n);
  }
  map(in_stride == n ? in : joined, joined, rows * n);
  if (out_stride != n) {
    loops.rows(reinterpret_cast<const std::byte*>(joined), reinterpret_cast<std::byte*>(out),
               {rows, n, out_stride}, n);
  }
}

// The units of `plan`, or the `whole` bytes that lie one after the other on both sides. What the
// latter read comes first: of thousands of small steps each finds its numbers in L2 at best.
struct PlannedMap {
  int64_t whole;  // 0: by the plan
  MapBytes map;
  BroadcastPlan plan;
  CopyLoops loops;

  void operator()(const KernelArgs& args, int64_t begin, int64_t end) const {
    const auto* const in = static_cast<const uint8_t*>(args.inputs[0]);
    auto* const out = static_cast<uint8_t*>(args.outputs[0]);
    if (whole != 0) return map(in, out, whole);
    plan.ForEachBlock(begin, end, [&](const BroadcastPlan::Block& block) {
      MapRows(map, loops, in + block.offsets[0], plan.row_stride(0), out + block.offsets[1],
              plan.row_stride(1), block.rows, block.count, args.scratch);
    });
  }
};

std::unique_ptr<Kernel> MakeMap(const OpDescription& op, std::string name, Isa isa, MapBytes map) {
  const BroadcastPlan plan({&op.inputs[0], &op.outputs[0]}, /*keep_rows=*/false);
  const bool in_place = op.inputs[0].pitch() == op.outputs[0].pitch();
  const int64_t n = plan.row_elements();
  const bool joins = n <= kLongestJoined && plan.row_stride(1) != n;
  const bool is_one_row = plan.units() == 1 && plan.unit_elements() == n;
  return MakeKernel(std::move(name),
                    {.units = plan.units(),
                     .grain = GrainFor(plan.unit_elements()),
                     .scratch_bytes = joins ? size_t{BroadcastPlan::kPiece} : 0,
                     .in_place_input = in_place ? 0 : -1},
                    PlannedMap{is_one_row ? n : 0, std::move(map), plan, CopyLoopsFor(isa)});
}

// Maps with the vectors of a tail.
MapBytes MapByTail(const OpDescription& op, std::vector<uint8_t> table, Isa isa) {
  Tail tail;
  tail.stages.emplace_back().kind = TailStage::Kind::kLookup;
  tail.stages[0].table = std::move(table);
  return [tail = std::move(tail), apply = ApplyTail(isa), in = op.inputs[0].type,
          out = op.outputs[0].type](const uint8_t* from, uint8_t* to, int64_t n) {
    apply(tail, nullptr,
          {.source = from,
           .source_pitch = n,
           .source_type = in,
           .destination = to,
           .destination_pitch = n,
           .destination_type = out,
           .row = 0,
           .rows = 1,
           .channel = 0,
           .channels = n});
  };
}

}  // namespace

Result<std::unique_ptr<Kernel>> MakeByteMap(const OpDescription& op, const std::string& name,
                                            std::vector<uint8_t> table, int knee, Isa isa) {
  constexpr auto kMap = FUSELITE_SIMD_TABLE(MapByLines);
  FUSELITE_ASSIGN_OR_RETURN(auto* const by_lines, kMap.Require(isa));
  const bool draft = table.empty();
  if (BytePermutes* const permutes = BytePermutesFor(isa); permutes != nullptr && !draft) {
    std::array<uint8_t, 256> entries;
    std::ranges::copy(table, entries.begin());
    return MakeMap(op, name + " permutes " + SimdName(isa), isa,
                   [permutes, entries](const uint8_t* in, uint8_t* out, int64_t n) {
                     permutes(entries, in, out, n);
                   });
  }
  constexpr auto kWithin = FUSELITE_SIMD_TABLE(MapWithin);
  const bool signed_in = op.inputs[0].type == DataType::kInt8;
  const bool signed_out = op.outputs[0].type == DataType::kInt8;
  if (const auto limits = draft ? std::nullopt : FindByteLimits(table, signed_in, signed_out)) {
    FUSELITE_ASSIGN_OR_RETURN(auto* const within, kWithin.Require(isa));
    return MakeMap(op, name + " limits " + SimdName(isa), isa,
                   [within, limits](const uint8_t* in, uint8_t* out, int64_t n) {
                     within(*limits, in, out, static_cast<size_t>(n));
                   });
  }
  std::optional<ByteLines> lines;
  if (!draft) {
    lines = FindByteLines(table, signed_in, signed_out, knee);
  }
  if (!lines)
    return MakeMap(op, name + ' ' + SimdName(isa), isa, MapByTail(op, std::move(table), isa));
  return MakeMap(op, name + " line " + SimdName(isa), isa,
                 [by_lines, lines](const uint8_t* in, uint8_t* out, int64_t n) {
                   by_lines(*lines, in, out, static_cast<size_t>(n));
                 });
}

Result<KernelPlan> PlanByteMap(
    const OpDescription& op, const std::string& name, int knee, Isa isa,
    std::function<Result<std::vector<uint8_t>>(const OpDescription&)> table) {
  FUSELITE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> draft, MakeByteMap(op, name, {}, knee, isa));
  return KernelPlan::MadeLater(
      std::move(draft),
      [name, knee, table = std::move(table)](
          const OpDescription& described,
          const BuildContext& context) -> Result<std::unique_ptr<Kernel>> {
        FUSELITE_ASSIGN_OR_RETURN(std::vector<uint8_t> entries, table(described));
        return MakeByteMap(described, name, std::move(entries), knee, context.isa);
      });
}

}  // namespace fuselite::kernels
#endif
