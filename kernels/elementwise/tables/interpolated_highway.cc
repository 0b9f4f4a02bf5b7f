// int16 functions by interpolation: a vector gathers the pieces of its values.
#include <algorithm>

#include "kernels/elementwise/broadcast.h"
#include "kernels/elementwise/tables/lookup_table.h"
#include "kernels/make_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/tables/interpolated_highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/interpolate-inl.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Gives the smallest of the `n` inputs, or 0.
int16_t InterpolateRow(const InterpolatedTable<float>& table, const int16_t* in, int64_t n,
                       int16_t* out) {
  const hn::ScalableTag<int32_t> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::Rebind<int16_t, decltype(d)> narrow;
  const hn::Rebind<uint16_t, decltype(d)> unsigned_narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto least = hn::Zero(d);
  for (int64_t i = 0; i < n; i += lanes) {
    const auto x = hn::PromoteTo(d, LoadUpTo(narrow, in + i, n - i));
    least = hn::Min(least, x);
    const auto y = Interpolate(table.middle_piece(), x);
    const auto low = hn::TruncateTo(unsigned_narrow, hn::BitCast(du, y));
    StoreUpTo(hn::BitCast(narrow, low), narrow, out + i, n - i);
  }
  return static_cast<int16_t>(hn::GetLane(hn::MinOfLanes(d, least)));
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

Result<std::unique_ptr<Kernel>> BuildInterpolated(const OpDescription& op, Isa isa) {
  constexpr auto kRow = FUSELITE_SIMD_TABLE(InterpolateRow);
  FUSELITE_ASSIGN_OR_RETURN(auto* const row, kRow.Require(isa));
  FUSELITE_ASSIGN_OR_RETURN(const InterpolatedTable<float> table, MakeInterpolatedTable(op));
  const BroadcastPlan plan({&op.inputs[0], &op.outputs[0]}, /*keep_rows=*/false);
  return MakeKernel(
      internal::Join("interpolated ", op.op->name, " int16 ", SimdName(isa)),
      {.units = plan.units(), .grain = GrainFor(plan.unit_elements())},
      [=, fails = FailsOnNegatives(op), name = op.op->name](const KernelArgs& args, int64_t begin,
                                                            int64_t end) -> Status {
        int16_t least = 0;
        plan.ForEach(begin, end, [&](const BroadcastPlan::Piece& piece) {
          const auto* in = static_cast<const int16_t*>(args.inputs[0]) + piece.offsets[0];
          auto* out = static_cast<int16_t*>(args.outputs[0]) + piece.offsets[1];
          least = std::min(least, row(table, in, piece.count, out));
        });
        return fails && least < 0 ? InvalidArgument(name, " of a negative number") : Status();
      });
}

}  // namespace fuselite::kernels
#endif
