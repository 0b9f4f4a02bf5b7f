// Comparisons of values of two scales: both brought to 8 fraction bits in 32-bit lanes.
#include "kernels/compare/compare.h"
#include "kernels/elementwise/joined_rows.h"
#include "kernels/make_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/compare/quantized_highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"
#include "kernels/simd_math/uniform_scale-inl.h"

#ifndef FUSELITE_KERNELS_COMPARE_QUANTIZED_ONCE_
#define FUSELITE_KERNELS_COMPARE_QUANTIZED_ONCE_
namespace fuselite::kernels {

struct RealComparison {
  RealOfQuantized x, y;
  Comparison gives;
};
using CompareRowsFunction = void(const RealComparison& f, const RowBlock& block);

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using RealTag = hn::ScalableTag<int32_t>;
using RealVec = hn::Vec<RealTag>;

// RealOfQuantized on vectors; of one value, for all lanes, where `step` is 0.
template <class T>
class RealOperand {
 public:
  HWY_INLINE RealOperand(const RealOfQuantized& real, const T* data, int step)
      : data_(data),
        step_(step),
        zero_point_(hn::Set(RealTag(), real.zero_point)),
        scale_(real.scale.multiplier, real.scale.shift),
        all_(Scaled(hn::Set(RealTag(), static_cast<int32_t>(*data)))) {}

  HWY_INLINE RealVec Load(int64_t i, size_t n) const {
    if (step_ == 0) return all_;
    const hn::Rebind<T, RealTag> narrow;
    return Scaled(hn::PromoteTo(RealTag(), LoadUpTo(narrow, data_ + i, n)));
  }

 private:
  HWY_INLINE RealVec Scaled(RealVec v) const {
    return scale_(hn::ShiftLeft<8>(hn::Sub(v, zero_point_)));
  }
  const T* data_;
  int step_;
  RealVec zero_point_;
  UniformScale scale_;
  RealVec all_;
};

template <class T>
void CompareRows(const RealComparison& f, const RowBlock& block) {
  const RealTag d;
  const hn::Rebind<uint8_t, RealTag> narrow;
  const auto one = [&](bool holds) HWY_ATTR { return hn::Set(d, holds ? 1 : 0); };
  const auto equal = one(f.gives.equal), less = one(f.gives.less), greater = one(f.gives.greater);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t row = 0; row < block.rows; ++row) {
    const RealOperand<T> x(f.x, static_cast<const T*>(block.x) + row * block.x_stride,
                           block.x_step);
    const RealOperand<T> y(f.y, static_cast<const T*>(block.y) + row * block.y_stride,
                           block.y_step);
    auto* out = static_cast<uint8_t*>(block.out) + row * block.out_stride;
    for (int64_t i = 0; i < block.n; i += lanes) {
      const auto n = static_cast<size_t>(block.n - i);
      const auto a = x.Load(i, n), b = y.Load(i, n);
      const auto unequal = hn::IfThenElse(hn::Lt(a, b), less, greater);
      const auto truth = hn::IfThenElse(hn::Eq(a, b), equal, unequal);
      StoreUpTo(hn::DemoteTo(narrow, truth), narrow, out + i, n);
    }
  }
}

CompareRowsFunction* CompareRowsFor(DataType type) {
  switch (type) {
    case DataType::kInt8: return CompareRows<int8_t>;
    case DataType::kUInt8: return CompareRows<uint8_t>;
    default: return CompareRows<int16_t>;
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

Result<std::unique_ptr<Kernel>> BuildQuantizedCompareHighway(const OpDescription& op,
                                                             const Comparison& comparison,
                                                             const BuildContext& context) {
  constexpr auto kRows = FUSELITE_SIMD_TABLE(CompareRowsFor);
  FUSELITE_ASSIGN_OR_RETURN(auto* const rows_for, kRows.Require(context.isa));
  const DataType type = op.inputs[0].type;
  const RealComparison f{RealOfQuantized(op.inputs[0].quantization),
                         RealOfQuantized(op.inputs[1].quantization), comparison};
  const JoinedRows joined(op, context.isa);
  return MakeKernel(std::string(op.op->name) + " " + std::string(DataTypeName(type)) + " real " +
                        SimdName(context.isa),
                    {.units = joined.plan().units(),
                     .grain = GrainFor(4 * joined.plan().unit_elements()),
                     .scratch_bytes = joined.scratch_bytes()},
                    [=, rows = rows_for(type)](const KernelArgs& args, int64_t begin, int64_t end) {
                      joined.ForEach(args, begin, end,
                                     [&](const RowBlock& block) { rows(f, block); });
                    });
}

}  // namespace fuselite::kernels
#endif
