#include "kernels/bucketize/bucketize.h"

#include <algorithm>
#include <cmath>
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

// Of `kVectors` whole vectors, or where that is 0 of the first `n` < Lanes elements. What counts is
// not below a boundary, as a NaN is not.
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

size_t FloatLanes() { return hn::Lanes(hn::ScalableTag<float>()); }

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

Result<std::unique_ptr<Kernel>> BuildBucketizeHighway(const OpDescription& op,
                                                      const BuildContext& context) {
  constexpr auto kCount = FUSELITE_SIMD_TABLE(CountBoundaries);
  constexpr auto kLanes = FUSELITE_SIMD_TABLE(FloatLanes);
  // A search takes about as long as comparing a vector with so many boundaries for each lane.
  constexpr size_t kMostPerLane = 16;
  if (!op.tail.empty()) return Unsupported("a tail behind BUCKETIZE");
  if (op.inputs[0].type != DataType::kFloat32) {
    return Unsupported(DataTypeName(op.inputs[0].type), " is not float32");
  }
  FUSELITE_ASSIGN_OR_RETURN(auto* const count, kCount.Require(context.isa));
  const std::span<const float> from = Boundaries(op);
  if (from.size() > kMostPerLane * kLanes.For(context.isa)()) {
    return Unsupported(from.size(), " boundaries");
  }
  if (std::ranges::any_of(from, [](float b) { return std::isnan(b); })) {
    return Unsupported("a boundary is NaN");
  }
  const BroadcastPlan plan({&op.inputs[0], &op.outputs[0]}, /*keep_rows=*/false);
  return MakeKernel(
      std::string("BUCKETIZE float32 ") + SimdName(context.isa),
      {.units = plan.units(),
       .grain = GrainFor(plan.unit_elements() * static_cast<int64_t>(1 + from.size() / 4))},
      [=, boundaries = std::vector<float>(from.begin(), from.end())](const KernelArgs& args,
                                                                     int64_t begin, int64_t end) {
        plan.ForEach(begin, end, [&](const BroadcastPlan::Piece& piece) {
          count(boundaries, static_cast<const float*>(args.inputs[0]) + piece.offsets[0],
                static_cast<int32_t*>(args.outputs[0]) + piece.offsets[1], piece.count);
        });
      });
}

}  // namespace fuselite::kernels
#endif
