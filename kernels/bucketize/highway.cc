#include "kernels/bucketize/bucketize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/elementwise/broadcast.h"
#include "kernels/make_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/bucketize/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Counts the boundaries that each element is not below; a NaN is below none. Takes `kVectors` whole
// vectors, or where that is 0 the first `n` < Lanes elements.
template <size_t kVectors>
HWY_INLINE void CountNotAbove(std::span<const float> boundaries, const float* in, int32_t* out,
                              size_t n) {
  constexpr size_t kLoaded = HWY_MAX(kVectors, 1);
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const size_t lanes = hn::Lanes(d);
  hn::Vec<decltype(d)> x[kLoaded];
  hn::Vec<decltype(di)> counts[kLoaded];
  HWY_UNROLL(4)
  for (size_t v = 0; v < kLoaded; ++v) {
    x[v] = kVectors == 0 ? LoadPartial(d, in, n) : hn::LoadU(d, in + v * lanes);
    counts[v] = hn::Set(di, static_cast<int32_t>(boundaries.size()));
  }
  for (const float boundary : boundaries) {
    const auto b = hn::Set(d, boundary);
    HWY_UNROLL(4)
    for (size_t v = 0; v < kLoaded; ++v) {
      // A mask is -1 where it is true.
      counts[v] = hn::Add(counts[v], hn::VecFromMask(di, hn::RebindMask(di, hn::Lt(x[v], b))));
    }
  }
  HWY_UNROLL(4)
  for (size_t v = 0; v < kLoaded; ++v) {
    kVectors == 0 ? StorePartial(counts[v], di, out, n)
                  : hn::StoreU(counts[v], di, out + v * lanes);
  }
}

void CountBoundaries(std::span<const float> boundaries, const float* in, int32_t* out, size_t n) {
  const size_t lanes = hn::Lanes(hn::ScalableTag<float>());
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) CountNotAbove<4>(boundaries, in + i, out + i, 0);
  for (; i + lanes <= n; i += lanes) CountNotAbove<1>(boundaries, in + i, out + i, 0);
  if (i < n) CountNotAbove<0>(boundaries, in + i, out + i, n - i);
}

// As CountBoundaries(), by halves, of 2^levels - 1 boundaries of which the first `most` count.
// Those that end eighths, sixteenths and so on, as many as a vector has lanes, are looked up in
// one, the others in memory. Precondition: there are more of them.
void SearchBoundaries(const float* boundaries, int levels, int32_t most, const float* in,
                      int32_t* out, size_t n) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  constexpr int kLaneLevels = static_cast<int>(hwy::CeilLog2(hn::MaxLanes(d)));
  const int levels_in_memory = levels - kLaneLevels;
  const auto ends = hn::ShiftLeftSame(hn::Iota(di, 1), levels_in_memory);
  const auto last = hn::Set(di, (1 << levels) - 2);
  const auto ends_of_lanes =
      hn::GatherIndex(d, boundaries, hn::Min(hn::Sub(ends, hn::Set(di, 1)), last));
  const auto search = [&](size_t i, size_t count) HWY_ATTR {
    const auto x = LoadUpTo(d, in + i, count);
    auto place = hn::Zero(di);
    // To the upper half, unless x is below what ends the lower one; a NaN is not.
    const auto halve = [&](int32_t half, auto end_at) HWY_ATTR {
      const auto end = end_at(hn::Add(place, hn::Set(di, half - 1)));
      const auto below = hn::RebindMask(di, hn::Lt(x, end));
      place = hn::Add(place, hn::IfThenZeroElse(below, hn::Set(di, half)));
    };
    for (int32_t half = 1 << (kLaneLevels - 1); half > 0; half /= 2) {
      halve(half, [&](auto at) HWY_ATTR {
        return hn::TableLookupLanes(ends_of_lanes, hn::IndicesFromVec(d, at));
      });
    }
    place = hn::ShiftLeftSame(place, levels_in_memory);
    for (int32_t half = 1 << (levels_in_memory - 1); half > 0; half /= 2) {
      halve(half, [&](auto at) HWY_ATTR { return hn::GatherIndex(d, boundaries, at); });
    }
    StoreUpTo(hn::Min(place, hn::Set(di, most)), di, out + i, count);
  };
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) search(i, lanes);
  if (i < n) search(i, n - i);
}

size_t FloatLanes() { return hn::Lanes(hn::ScalableTag<float>()); }

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

namespace {

// A search takes about as long as comparing a vector with so many boundaries for each lane.
constexpr size_t kMostPerLane = 8;

// map(in, out, n) for all values.
template <class F>
std::unique_ptr<Kernel> MakeBuckets(const OpDescription& op, Isa isa, int64_t cost, F map) {
  const BroadcastPlan plan({&op.inputs[0], &op.outputs[0]}, /*keep_rows=*/false);
  return MakeKernel(std::string("BUCKETIZE float32 ") + SimdName(isa),
                    {.units = plan.units(), .grain = GrainFor(plan.unit_elements() * cost)},
                    [=](const KernelArgs& args, int64_t begin, int64_t end) {
                      plan.ForEach(begin, end, [&](const BroadcastPlan::Piece& piece) {
                        map(static_cast<const float*>(args.inputs[0]) + piece.offsets[0],
                            static_cast<int32_t*>(args.outputs[0]) + piece.offsets[1], piece.count);
                      });
                    });
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildBucketizeHighway(const OpDescription& op,
                                                      const BuildContext& context) {
  constexpr auto kCount = FUSELITE_SIMD_TABLE(CountBoundaries);
  constexpr auto kSearch = FUSELITE_SIMD_TABLE(SearchBoundaries);
  constexpr auto kLanes = FUSELITE_SIMD_TABLE(FloatLanes);
  if (!op.tail.empty()) return Unsupported("does not take a tail behind BUCKETIZE");
  if (op.inputs[0].type != DataType::kFloat32) {
    return Unsupported("takes float32, not ", DataTypeName(op.inputs[0].type));
  }
  FUSELITE_ASSIGN_OR_RETURN(auto* const count, kCount.Require(context.isa));
  const std::span<const float> from = Boundaries(op);
  std::vector<float> boundaries(from.begin(), from.end());
  if (std::ranges::any_of(boundaries, [](float b) { return std::isnan(b); })) {
    return Unsupported("a boundary is NaN");
  }
  const auto most = static_cast<int64_t>(boundaries.size());
  if (boundaries.size() <= kMostPerLane * kLanes.For(context.isa)()) {
    return MakeBuckets(
        op, context.isa, 1 + most / 4,
        [count, boundaries = std::move(boundaries)](const float* in, int32_t* out, size_t n) {
          count(boundaries, in, out, n);
        });
  }
  FUSELITE_ASSIGN_OR_RETURN(auto* const search, kSearch.Require(context.isa));
  const int levels = std::bit_width(boundaries.size());
  boundaries.resize((size_t{1} << levels) - 1, std::numeric_limits<float>::infinity());
  return MakeBuckets(
      op, context.isa, 4 * levels,
      [=, boundaries = std::move(boundaries)](const float* in, int32_t* out, size_t n) {
        search(boundaries.data(), levels, static_cast<int32_t>(most), in, out, n);
      });
}

}  // namespace fuselite::kernels
#endif
