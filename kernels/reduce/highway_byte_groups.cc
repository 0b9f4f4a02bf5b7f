// Reductions of bytes over rows and over groups of neighbouring columns: first of each column, then
// of the columns of a group. Run by run, four bytes each, 32 means of 1024 x 4 took 183 us.
#include <algorithm>

#include "kernels/make_kernel.h"
#include "kernels/reduce/byte_reduction.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce/highway_byte_groups.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/reduce/byte_columns-inl.h"
#include "kernels/reduce/byte_totals-inl.h"
#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {

template <bool kMax>
HWY_INLINE void ExtremesOfGroups(const GroupedColumns& g, const uint8_t* in, uint8_t flip,
                                 uint8_t* out, size_t n) {
  HWY_ALIGN uint8_t totals[kByteBlock + 16];
  const auto group = static_cast<size_t>(g.group);
  ExtremesOfColumns<kMax>(g.columns, in, flip, totals, n * group);
  for (size_t i = 0; i < n; ++i) {
    const uint8_t* const of_group = totals + i * group;
    out[i] = static_cast<uint8_t>((kMax ? *std::max_element(of_group, of_group + group)
                                        : *std::min_element(of_group, of_group + group)) ^
                                  flip);
  }
}

// The outputs of n groups, n * group <= kByteBlock; `in` at the first one's first term.
void ReduceGroups(const ByteReduction& f, const GroupedColumns& g, const uint8_t* in, uint8_t* out,
                  size_t n) {
  if (f.kind == ReduceKind::kMax) return ExtremesOfGroups<true>(g, in, f.flip, out, n);
  if (f.kind == ReduceKind::kMin) return ExtremesOfGroups<false>(g, in, f.flip, out, n);
  HWY_ALIGN uint32_t totals[kByteBlock + 16] = {};
  const auto group = static_cast<size_t>(g.group);
  SumColumns(g.columns, in, f.flip, totals, n * group);
  HWY_ALIGN uint32_t sums[kByteBlock] = {};
  for (size_t i = 0; i < n; ++i) {
    for (size_t c = 0; c < group; ++c) sums[i] += totals[i * group + c];
  }
  RescaleSums(f.rescale, sums, out, f.flip, g.columns.terms() * g.group, n);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

Result<std::unique_ptr<Kernel>> MakeReduceGroups(const GroupedColumns& grouped,
                                                 const ByteReduction& reduction, Isa isa) {
  constexpr auto kGroups = FUSELITE_SIMD_TABLE(ReduceGroups);
  FUSELITE_ASSIGN_OR_RETURN(auto* const groups, kGroups.Require(isa));
  return MakeKernel(
      internal::Join("reduce groups ", reduction.flip != 0 ? "int8 " : "uint8 ", SimdName(isa)),
      {.units = grouped.units(), .grain = GrainFor(grouped.unit_terms() / 8)},
      [=](const KernelArgs& args, int64_t begin, int64_t end) {
        grouped.ForUnits(begin, end, [&](int64_t in, int64_t out, int64_t n) {
          groups(reduction, grouped, static_cast<const uint8_t*>(args.inputs[0]) + in,
                 static_cast<uint8_t*>(args.outputs[0]) + out, static_cast<size_t>(n));
        });
      });
}

}  // namespace fuselite::kernels
#endif
