#include "kernels/elementwise/short_floats/short_float_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/short_floats/short_float_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <string>

#include "kernels/elementwise/joined_rows.h"
#include "kernels/elementwise/typed/typed_functions-inl.h"
#include "kernels/make_kernel.h"
#include "kernels/simd.h"
#include "kernels/simd_math/short_floats-inl.h"
#include "kernels/simd_math/std_max-inl.h"

#ifndef FUSELITE_KERNELS_ELEMENTWISE_SHORT_FLOAT_ROWS_ONCE_
#define FUSELITE_KERNELS_ELEMENTWISE_SHORT_FLOAT_ROWS_ONCE_
namespace fuselite::kernels {

// Operand i of a row is at data[i * stride], stride 0 or 1.
struct ShortFloatOperand {
  const void* data;
  int stride;
};
using ShortFloatRow = void (*)(ShortFloatOperand x, ShortFloatOperand y,
                               const ShortFloatRange& range, void* out, int64_t n);

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct DivOf {
  template <class D, class V>
  static HWY_INLINE V Vectors(D, V x, V y) {
    return hn::Div(x, y);
  }
};
// Extremes prefer their first operand.
template <class F>
struct Exchanged {
  template <class D, class V>
  static HWY_INLINE V Vectors(D d, V x, V y) {
    return F::Vectors(d, y, x);
  }
};

template <class T, class F>
void ShortRow(ShortFloatOperand x, ShortFloatOperand y, const ShortFloatRange& range, void* out,
              int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* const a = static_cast<const T*>(x.data);
  const auto* const b = static_cast<const T*>(y.data);
  auto* const to = static_cast<T*>(out);
  const auto low = hn::Set(d, range.low), high = hn::Set(d, range.high);
  const auto x_alone = hn::Set(d, static_cast<float>(*a));
  const auto y_alone = hn::Set(d, static_cast<float>(*b));
  const auto some = [&](int64_t i, int64_t count) HWY_ATTR {
    const auto u = x.stride ? LoadShortFloats(d, a + i, count) : x_alone;
    const auto v = y.stride ? LoadShortFloats(d, b + i, count) : y_alone;
    const auto cut = StdMin(StdMax(F::Vectors(d, u, v), low), high);
    StoreShortFloats(d, cut, to + i, count);
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) some(i, lanes);
  if (i < n) some(i, n - i);
}

template <class T>
ShortFloatRow ShortRowOf(BinaryKind kind) {
  switch (kind) {
    case BinaryKind::kAdd: return &ShortRow<T, AddOf>;
    case BinaryKind::kSub: return &ShortRow<T, SubOf>;
    case BinaryKind::kMul: return &ShortRow<T, MulOf>;
    case BinaryKind::kDiv: return &ShortRow<T, DivOf>;
    case BinaryKind::kSquaredDifference: return &ShortRow<T, SquaredDifferenceOf>;
    case BinaryKind::kMaximum: return &ShortRow<T, Exchanged<MaximumOf>>;
    case BinaryKind::kMinimum: return &ShortRow<T, Exchanged<MinimumOf>>;
    case BinaryKind::kReverseMaximum: return &ShortRow<T, MaximumOf>;
    case BinaryKind::kReverseMinimum: return &ShortRow<T, MinimumOf>;
    default: return nullptr;
  }
}

ShortFloatRow FindShortRow(BinaryKind kind, DataType type) {
  return type == DataType::kFloat16 ? ShortRowOf<Half>(kind) : ShortRowOf<BFloat16>(kind);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

Result<std::unique_ptr<Kernel>> BuildShortFloatRows(BinaryKind kind, const OpDescription& op,
                                                    const ShortFloatRange& range,
                                                    const BuildContext& context) {
  constexpr auto kFindRow = FUSELITE_SIMD_TABLE(FindShortRow);
  if (!op.tail.empty()) return Unsupported("does not take a tail behind ", op.op->name);
  FUSELITE_ASSIGN_OR_RETURN(auto* const find, kFindRow.Require(context.isa));
  const ShortFloatRow row = find(kind, op.inputs[0].type);
  if (row == nullptr) return Unsupported(op.op->name, " of short floats has no vectors");
  const JoinedRows joined(op, context.isa);
  return MakeKernel(std::string(op.op->name) + " " + std::string(DataTypeName(op.inputs[0].type)) +
                        " " + SimdName(context.isa),
                    {.units = joined.plan().units(),
                     .grain = GrainFor(joined.plan().unit_elements()),
                     .scratch_bytes = joined.scratch_bytes()},
                    [=](const KernelArgs& args, int64_t begin, int64_t end) {
                      joined.ForEach(args, begin, end, [&](const RowBlock& block) {
                        const auto* x = static_cast<const uint16_t*>(block.x);
                        const auto* y = static_cast<const uint16_t*>(block.y);
                        auto* out = static_cast<uint16_t*>(block.out);
                        for (int64_t r = 0; r < block.rows; ++r) {
                          row({x, block.x_step}, {y, block.y_step}, range, out, block.n);
                          x += block.x_stride;
                          y += block.y_stride;
                          out += block.out_stride;
                        }
                      });
                    });
}

}  // namespace fuselite::kernels
#endif
