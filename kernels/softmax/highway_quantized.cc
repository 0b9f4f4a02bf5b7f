#include <algorithm>
#include <limits>

#include "kernels/row_kernel.h"
#include "kernels/softmax/quantized.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax/highway_quantized.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D32 = hn::ScalableTag<int32_t>;
using V32 = hn::Vec<D32>;

template <class T>
HWY_INLINE int32_t RowMaxOf(const T* in, size_t n) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  T largest = in[0];
  size_t i = 0;
  if (n >= lanes) {
    auto most = hn::LoadU(d, in);
    for (i = lanes; i + lanes <= n; i += lanes) most = hn::Max(most, hn::LoadU(d, in + i));
    HWY_ALIGN T all[hn::MaxLanes(d)];
    hn::Store(most, d, all);
    largest = *std::max_element(all, all + lanes);
  }
  for (; i < n; ++i) largest = std::max(largest, in[i]);
  return largest;
}

// round(v / 2^shift) of v >= 0, halves up; without overflow. Precondition: shift > 0.
HWY_INLINE V32 RoundingShift(V32 v, int shift) {
  const D32 d;
  const auto half = hn::And(hn::ShiftRightSame(v, shift - 1), hn::Set(d, 1));
  return hn::Add(hn::ShiftRightSame(v, shift), half);
}

// The exponentials of a row to `exps`, in whole vectors; their rounded sum.
template <class T>
HWY_INLINE int64_t ExpRowOf(const int32_t* table, const T* in, int32_t* exps, size_t n) {
  const D32 d;
  const hn::Rebind<T, D32> narrow;
  const size_t lanes = hn::Lanes(d);
  const auto largest = hn::Set(d, RowMaxOf(in, n));
  auto sum = hn::Zero(d);
  for (size_t i = 0; i < n; i += lanes) {
    const auto x = hn::PromoteTo(d, LoadUpTo(narrow, in + i, n - i));
    auto e = hn::GatherIndex(d, table, hn::And(hn::Sub(largest, x), hn::Set(d, 255)));
    if (n - i < lanes) e = hn::IfThenElseZero(hn::FirstN(d, n - i), e);
    hn::Store(e, d, exps + i);
    sum = hn::Add(sum, RoundingShift(e, 12));
  }
  HWY_ALIGN int32_t sums[hn::MaxLanes(d)];
  hn::Store(sum, d, sums);
  int64_t total = 0;
  for (size_t i = 0; i < lanes; ++i) total += sums[i];
  return total;
}

// SaturatingRoundingDoublingHighMul of numbers that are not negative.
HWY_INLINE V32 HighMul(V32 a, V32 b) {
  const D32 d;
  const hn::Repartition<int64_t, D32> wide;
  const auto nudge = hn::Set(wide, int64_t{1} << 30);
  const auto odd_a = hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, a)));
  const auto even = hn::Add(hn::MulEven(a, b), nudge);
  const auto odd = hn::Add(hn::MulEven(odd_a, b), nudge);
  return hn::OddEven(hn::BitCast(d, hn::Add(odd, odd)),
                     hn::BitCast(d, hn::ShiftRight<31>(hn::BitCast(
                                        hn::RebindToUnsigned<decltype(wide)>(), even))));
}

template <class In, class Out>
HWY_INLINE void SoftmaxRowOf(const int32_t* table, const void* in, void* out, int32_t* exps,
                             size_t n) {
  const D32 d;
  const hn::Rebind<Out, D32> narrow;
  auto* const y = static_cast<Out*>(out);
  const SoftmaxScale scale =
      ScaleOfSum(ExpRowOf(table, static_cast<const In*>(in), exps, n), 8 * sizeof(Out));
  if (scale.shift > 31) return void(std::fill(y, y + n, std::numeric_limits<Out>::min()));
  const auto factor = hn::Set(d, scale.scale);
  const auto least = hn::Set(d, static_cast<int32_t>(std::numeric_limits<Out>::min()));
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    const auto e = RoundingShift(HighMul(hn::Load(d, exps + i), factor), scale.shift);
    StoreUpTo(hn::DemoteTo(narrow, hn::Add(e, least)), narrow, y + i, n - i);
  }
}

void SoftmaxS8(const int32_t* table, const void* in, void* out, int32_t* exps, size_t n) {
  SoftmaxRowOf<int8_t, int8_t>(table, in, out, exps, n);
}
void SoftmaxU8(const int32_t* table, const void* in, void* out, int32_t* exps, size_t n) {
  SoftmaxRowOf<uint8_t, uint8_t>(table, in, out, exps, n);
}
void SoftmaxS8S16(const int32_t* table, const void* in, void* out, int32_t* exps, size_t n) {
  SoftmaxRowOf<int8_t, int16_t>(table, in, out, exps, n);
}
void SoftmaxU8S16(const int32_t* table, const void* in, void* out, int32_t* exps, size_t n) {
  SoftmaxRowOf<uint8_t, int16_t>(table, in, out, exps, n);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

// 2^31 of a sum's 32 bits are 4096 ones; every lane has at most a quarter of the row.
constexpr int64_t kMaxRow = 8192;

using Row = void(const int32_t* table, const void* in, void* out, int32_t* exps, size_t n);

Row* RowOf(DataType in, DataType out, Isa isa) {
  constexpr auto kS8 = FUSELITE_SIMD_TABLE(SoftmaxS8);
  constexpr auto kU8 = FUSELITE_SIMD_TABLE(SoftmaxU8);
  constexpr auto kS8S16 = FUSELITE_SIMD_TABLE(SoftmaxS8S16);
  constexpr auto kU8S16 = FUSELITE_SIMD_TABLE(SoftmaxU8S16);
  const bool wide = out == DataType::kInt16;
  if (in == DataType::kInt8) return wide ? kS8S16.For(isa) : kS8.For(isa);
  return wide ? kU8S16.For(isa) : kU8.For(isa);
}

template <class In, class Out>
std::unique_ptr<Kernel> Build(const OpDescription& op, const ExpTable& exp, Row* row, Isa isa) {
  const int64_t n = op.inputs[0].shape.dim(-1);
  return MakeQuantizedRowKernel<In, Out>(
      "softmax " + std::string(DataTypeName(op.inputs[0].type)) + " " + SimdName(isa), op, 4,
      (n + 15) / 16 * 16 * sizeof(int32_t),
      [exp, row, n](const KernelArgs& args, const In* x, Out* y) {
        row(exp.values.data(), x, y, reinterpret_cast<int32_t*>(args.scratch), n);
      });
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildQuantizedSoftmaxHighway(const OpDescription& op,
                                                             const BuildContext& context) {
  const DataType in = op.inputs[0].type, out = op.outputs[0].type;
  if (in == DataType::kInt16) return Unsupported("int16 goes through the reference's tables");
  Row* const row = RowOf(in, out, context.isa);
  if (row == nullptr) return Unsupported("no vector target at isa=", IsaName(context.isa));
  if (op.inputs[0].shape.dim(-1) > kMaxRow) return Unsupported("rows above ", kMaxRow);
  FUSELITE_ASSIGN_OR_RETURN(const ExpTable exp, SoftmaxExpTable(op));
  const bool wide = out == DataType::kInt16;
  if (in == DataType::kInt8) {
    return wide ? Build<int8_t, int16_t>(op, exp, row, context.isa)
                : Build<int8_t, int8_t>(op, exp, row, context.isa);
  }
  return wide ? Build<uint8_t, int16_t>(op, exp, row, context.isa)
              : Build<uint8_t, uint8_t>(op, exp, row, context.isa);
}

}  // namespace fuselite::kernels
#endif
