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

// The largest of 16 bytes, by folding them onto each other.
template <class T>
HWY_INLINE T MaxOfBytes(hn::Vec<hn::FixedTag<T, 16>> v) {
  const hn::FixedTag<T, 16> d;
  v = hn::Max(v, hn::CombineShiftRightBytes<8>(d, v, v));
  v = hn::Max(v, hn::CombineShiftRightBytes<4>(d, v, v));
  v = hn::Max(v, hn::CombineShiftRightBytes<2>(d, v, v));
  return hn::GetLane(hn::Max(v, hn::CombineShiftRightBytes<1>(d, v, v)));
}

// The last vector overlaps the one before.
template <class T>
HWY_INLINE int32_t RowMaxOf(const T* in, size_t n) {
  const hn::ScalableTag<T> d;
  const hn::FixedTag<T, 16> small;
  if (n < 16) return *std::max_element(in, in + n);
  auto largest = hn::LoadU(small, in + n - 16);
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  if (n >= lanes) {
    auto most = hn::LoadU(d, in);
    for (i = lanes; i + lanes <= n; i += lanes) most = hn::Max(most, hn::LoadU(d, in + i));
    HWY_ALIGN T all[hn::MaxLanes(d)];
    hn::Store(most, d, all);
    for (size_t k = 0; k < lanes; k += 16) largest = hn::Max(largest, hn::Load(small, all + k));
  }
  for (; i + 16 <= n; i += 16) largest = hn::Max(largest, hn::LoadU(small, in + i));
  return MaxOfBytes<T>(largest);
}

// round(v / 2^shift) of v >= 0, halves up; without overflow. Precondition: shift > 0.
HWY_INLINE V32 RoundingShift(V32 v, int shift) {
  const D32 d;
  const auto half = hn::And(hn::ShiftRightSame(v, shift - 1), hn::Set(d, 1));
  return hn::Add(hn::ShiftRightSame(v, shift), half);
}

// The exponentials of a row to `exps`, in whole vectors; their rounded sum. `table` goes up to
// exp(0) at its end. Single loads: a gather takes as long for each element, where there is one.
template <class T>
HWY_INLINE int64_t ExpRowOf(const int32_t* table, const T* in, int32_t* exps, size_t n) {
  const D32 d;
  const size_t lanes = hn::Lanes(d);
  const int32_t* from = table + 255 - RowMaxOf(in, n);
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const int32_t a = from[in[i]], b = from[in[i + 1]], c = from[in[i + 2]], e = from[in[i + 3]];
    exps[i] = a;
    exps[i + 1] = b;
    exps[i + 2] = c;
    exps[i + 3] = e;
  }
  for (; i < n; ++i) exps[i] = from[in[i]];
  for (; i % lanes != 0; ++i) exps[i] = 0;
  auto sum = hn::Zero(d);
  for (i = 0; i < n; i += lanes) sum = hn::Add(sum, RoundingShift(hn::Load(d, exps + i), 12));
  HWY_ALIGN int32_t sums[hn::MaxLanes(d)];
  hn::Store(sum, d, sums);
  int64_t total = 0;
  for (i = 0; i < lanes; ++i) total += sums[i];
  return total;
}

// MultiplyByQuantizedMultiplier(x, multiplier, -shift) of x >= 0 (see UniformScale). Precondition:
// shift > 0.
class NonNegativeScale {
 public:
  HWY_INLINE NonNegativeScale(int32_t multiplier, int shift)
      : multiplier_(hn::Set(D32(), multiplier)),
        nudge_(hn::Set(Wide(), (int64_t{1} << 30) + (int64_t{1} << (30 + shift)))),
        shift_(shift) {}

  HWY_INLINE V32 operator()(V32 x) const {
    const D32 d;
    const hn::RebindToUnsigned<Wide> du;
    const auto x_odd = hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(du, x)));
    const auto even = hn::Add(hn::MulEven(x, multiplier_), nudge_);
    const auto odd = hn::Add(hn::MulEven(x_odd, multiplier_), nudge_);
    const auto high_of_even = hn::ShiftRight<32>(hn::BitCast(du, even));
    return hn::ShiftRightSame(hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, high_of_even)),
                              shift_ - 1);
  }

 private:
  using Wide = hn::RepartitionToWide<D32>;
  V32 multiplier_;
  hn::Vec<Wide> nudge_;
  int shift_;
};

template <class In, class Out>
HWY_INLINE void SoftmaxRowOf(const int32_t* table, const void* in, void* out, int32_t* exps,
                             size_t n) {
  const D32 d;
  const hn::Rebind<Out, D32> narrow;
  auto* const y = static_cast<Out*>(out);
  const SoftmaxScale scale =
      ScaleOfSum(ExpRowOf(table, static_cast<const In*>(in), exps, n), 8 * sizeof(Out));
  if (scale.shift > 31) return void(std::fill(y, y + n, std::numeric_limits<Out>::min()));
  const NonNegativeScale rescale(scale.scale, scale.shift);
  const auto least = hn::Set(d, static_cast<int32_t>(std::numeric_limits<Out>::min()));
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    const auto e = rescale(hn::Load(d, exps + i));
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

Result<Row*> RowOf(DataType in, DataType out, Isa isa) {
  constexpr auto kS8 = FUSELITE_SIMD_TABLE(SoftmaxS8);
  constexpr auto kU8 = FUSELITE_SIMD_TABLE(SoftmaxU8);
  constexpr auto kS8S16 = FUSELITE_SIMD_TABLE(SoftmaxS8S16);
  constexpr auto kU8S16 = FUSELITE_SIMD_TABLE(SoftmaxU8S16);
  const bool wide = out == DataType::kInt16;
  if (in == DataType::kInt8) return (wide ? kS8S16 : kS8).Require(isa);
  return (wide ? kU8S16 : kU8).Require(isa);
}

template <class In, class Out>
std::unique_ptr<Kernel> Build(const OpDescription& op, const ExpTable& exp, Row* row, Isa isa) {
  const int64_t n = op.inputs[0].shape.dim(-1);
  ExpTable rising = exp;
  std::ranges::reverse(rising.values);
  return MakeQuantizedRowKernel<In, Out>(
      "softmax " + std::string(DataTypeName(op.inputs[0].type)) + " " + SimdName(isa), op, 4,
      (n + 15) / 16 * 16 * sizeof(int32_t),
      [rising, row, n](const KernelArgs& args, const In* x, Out* y) {
        row(rising.values.data(), x, y, reinterpret_cast<int32_t*>(args.scratch), n);
      });
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildQuantizedSoftmaxHighway(const OpDescription& op,
                                                             const BuildContext& context) {
  const DataType in = op.inputs[0].type, out = op.outputs[0].type;
  if (in == DataType::kInt16) return Unsupported("int16 goes through the reference's tables");
  FUSELITE_ASSIGN_OR_RETURN(Row* const row, RowOf(in, out, context.isa));
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
