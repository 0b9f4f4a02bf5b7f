#include <algorithm>
#include <limits>

#include "kernels/numbers/fixed_point.h"
#include "kernels/softmax/byte_permutes.h"
#include "kernels/softmax/quantized.h"
#include "kernels/softmax/quantized_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax/highway_quantized.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/fixed_point-inl.h"
#include "kernels/softmax/quantized_rows-inl.h"

#ifndef FUSELITE_KERNELS_SOFTMAX_HIGHWAY_QUANTIZED_ONCE_
#define FUSELITE_KERNELS_SOFTMAX_HIGHWAY_QUANTIZED_ONCE_
namespace fuselite::kernels {

struct SoftmaxRows {
  const int32_t* table;  // exponentials, up to exp(0) at its end
  int64_t n, in_pitch, out_pitch, exps_pitch;
};
using SoftmaxBlockFunction = void(const SoftmaxRows& rows, const void* in, void* out, int64_t count,
                                  int32_t* exps);

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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

// As NonNegativeScale, by a multiplier and a shift for each lane.
class NonNegativeScales {
 public:
  HWY_INLINE NonNegativeScales(V32 multipliers, V32 shifts)
      : even_(multipliers),
        odd_(OddLanes(multipliers)),
        nudge_even_(Nudge(hn::And(hn::BitCast(Wide(), shifts), hn::Set(Wide(), 0xFF)))),
        nudge_odd_(Nudge(hn::BitCast(Wide(), OddLanes(shifts)))),
        right_(hn::Sub(shifts, hn::Set(D32(), 1))) {}

  HWY_INLINE V32 operator()(V32 x) const {
    const D32 d;
    const auto even = hn::Add(hn::MulEven(x, even_), nudge_even_);
    const auto odd = hn::Add(hn::MulEven(OddLanes(x), odd_), nudge_odd_);
    const auto high = hn::OddEven(hn::BitCast(d, odd), OddLanes(hn::BitCast(d, even)));
    return hn::Shr(high, right_);
  }

 private:
  using Wide = hn::RepartitionToWide<D32>;
  using WideVec = hn::Vec<Wide>;

  static HWY_INLINE V32 OddLanes(V32 x) {
    const hn::RebindToUnsigned<Wide> du;
    return hn::BitCast(D32(), hn::ShiftRight<32>(hn::BitCast(du, x)));
  }
  static HWY_INLINE WideVec Nudge(WideVec shift) {
    const auto unit = hn::Set(Wide(), int64_t{1} << 30);
    return hn::Add(unit, hn::Shl(unit, shift));
  }

  V32 even_, odd_;
  WideVec nudge_even_, nudge_odd_;
  V32 right_;
};

// `rows` <= kRowsTogether rows of up to 16 elements: the rows are the lanes. Their sums are at most
// 16, so that no shift is above 27.
template <class In, class Out>
HWY_INLINE void NarrowBlockOf(const SoftmaxRows& p, const In* in, Out* out, int64_t rows,
                              int32_t* exps) {
  const D32 d;
  const hn::Rebind<Out, D32> narrow;
  const int64_t n = p.n;
  HWY_ALIGN uint8_t below[kRowsTogether * kRowsTogether];
  HWY_ALIGN Out results[kRowsTogether * kRowsTogether];
  LoadBelowLargest(in, p.in_pitch, rows, n, below);
  ExpColumns(p.table, below, n, exps);
  const auto least = hn::Set(d, static_cast<int32_t>(std::numeric_limits<Out>::min()));
  for (int64_t r = 0; r < kRowsTogether; r += static_cast<int64_t>(hn::Lanes(d))) {
    const auto sum = SumOfColumns(exps + r, n);
    // PartsOfSum; a sum up to 2^23 is exact in float, whose exponent tells its leading zeros.
    const auto as_float = hn::BitCast(d, hn::ConvertTo(hn::RebindToFloat<D32>(), sum));
    const auto zeros = hn::Sub(hn::Set(d, 127 + 31), hn::ShiftRight<23>(as_float));
    const auto fraction = hn::Xor(hn::Shl(sum, zeros), hn::Set(d, INT32_MIN));
    const auto over_unit = hn::Sub(hn::Set(d, 12 + 31 - 8 * static_cast<int>(sizeof(Out))), zeros);
    const NonNegativeScales rescale(FixedOneOverOnePlusVec(fraction), over_unit);
    for (int64_t c = 0; c < n; ++c) {
      const int64_t at = c * kRowsTogether + r;
      const auto y = hn::Add(rescale(hn::Load(d, exps + at)), least);
      hn::StoreU(hn::DemoteTo(narrow, y), narrow, results + at);
    }
  }
  StoreColumns(results, n, out, p.out_pitch, rows);
}

// FixedOneOverOnePlus of so many values, and of those behind them in the last vector.
void Reciprocals(int32_t* values, int64_t count) {
  const D32 d;
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(hn::Lanes(d))) {
    hn::Store(FixedOneOverOnePlusVec(hn::Load(d, values + i)), d, values + i);
  }
}

// `rows` <= kRowsTogether rows.
template <class In, class Out>
HWY_INLINE void SoftmaxBlockOf(const SoftmaxRows& p, const In* in, Out* out, int64_t rows,
                               int32_t* exps) {
  const D32 d;
  const size_t n = p.n;
  HWY_ALIGN int32_t scales[kRowsTogether] = {};
  int shifts[kRowsTogether];
  for (int64_t r = 0; r < rows; ++r) {
    const In* x = in + r * p.in_pitch;
    const int64_t sum = ExpRowOf(p.table, x, RowExtreme<true>(x, n), exps + r * p.exps_pitch, n);
    const ReciprocalParts parts = PartsOfSum(sum, 8 * sizeof(Out));
    scales[r] = parts.fraction;
    shifts[r] = parts.bits_over_unit;
  }
  Reciprocals(scales, rows);
  const auto least = hn::Set(d, static_cast<int32_t>(std::numeric_limits<Out>::min()));
  const bool dense = p.out_pitch == static_cast<int64_t>(n);
  for (int64_t r = 0; r < rows; ++r) {
    Out* const y = out + r * p.out_pitch;
    if (shifts[r] > 31) {
      std::fill(y, y + n, std::numeric_limits<Out>::min());
      continue;
    }
    const NonNegativeScale rescale(scales[r], shifts[r]);
    const int32_t* e = exps + r * p.exps_pitch;
    // What is written behind a row is written again with the next one.
    StoreRow(y, n, dense ? (rows - r) * n : n,
             [&](size_t i) HWY_ATTR { return hn::Add(rescale(hn::Load(d, e + i)), least); });
  }
}

template <class In, class Out>
void SoftmaxBlock(const SoftmaxRows& p, const void* in, void* out, int64_t rows, int32_t* exps) {
  const auto* x = static_cast<const In*>(in);
  auto* y = static_cast<Out*>(out);
  if (AreNarrow(p.n, rows)) return NarrowBlockOf(p, x, y, rows, exps);
  SoftmaxBlockOf(p, x, y, rows, exps);
}

SoftmaxBlockFunction* SoftmaxBlockFor(DataType in, DataType out) {
  const bool wide = out == DataType::kInt16;
  if (in == DataType::kInt8) {
    return wide ? SoftmaxBlock<int8_t, int16_t> : SoftmaxBlock<int8_t, int8_t>;
  }
  return wide ? SoftmaxBlock<uint8_t, int16_t> : SoftmaxBlock<uint8_t, uint8_t>;
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

// Null where vectors of 32 bits take less time, or nothing permutes bytes.
std::unique_ptr<Kernel> MakePermutedSoftmax(const OpDescription& op, const ExpTable& exp,
                                            const QuantizedRows& rows, Isa isa) {
  constexpr auto kReciprocals = FUSELITE_SIMD_TABLE(Reciprocals);
  constexpr int64_t kLeastRow = 48;
  const DataType type = op.inputs[0].type;
  if (rows.n < kLeastRow || rows.n > PermutedSoftmax::kMaxRow || type != op.outputs[0].type) {
    return nullptr;
  }
  const auto softmax = std::make_shared<PermutedSoftmax>(exp, type == DataType::kInt8);
  softmax->n = rows.n;
  softmax->in_pitch = rows.in_pitch;
  softmax->out_pitch = rows.out_pitch;
  softmax->reciprocals = kReciprocals.For(isa);
  SoftmaxPermutes* const run = SoftmaxPermutesFor(*softmax, isa);
  if (run == nullptr) return nullptr;
  return MakeKernel(internal::Join("softmax ", DataTypeName(type), " permutes ", SimdName(isa)),
                    {.units = rows.rows, .grain = GrainFor(rows.n)},
                    [softmax, run](const KernelArgs& args, int64_t begin, int64_t end) {
                      const PermutedSoftmax& p = *softmax;
                      const auto* in = static_cast<const uint8_t*>(args.inputs[0]);
                      auto* out = static_cast<uint8_t*>(args.outputs[0]);
                      for (int64_t row = begin; row < end; row += PermutedSoftmax::kRows) {
                        run(p, in + row * p.in_pitch, out + row * p.out_pitch,
                            std::min(PermutedSoftmax::kRows, end - row));
                      }
                    });
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildQuantizedSoftmaxHighway(const OpDescription& op,
                                                             const BuildContext& context) {
  constexpr auto kBlock = FUSELITE_SIMD_TABLE(SoftmaxBlockFor);
  // 2^31 of a sum's 32 bits are 4096 ones; every lane has at most a quarter of the row.
  constexpr int64_t kMaxRow = 8192;
  const DataType in = op.inputs[0].type, out = op.outputs[0].type;
  if (in == DataType::kInt16) return BuildInt16SoftmaxHighway(op, context.isa);
  FUSELITE_ASSIGN_OR_RETURN(auto* const block_for, kBlock.Require(context.isa));
  const int64_t n = op.inputs[0].shape.dim(-1);
  if (n > kMaxRow) return Unsupported("does not take rows above ", kMaxRow);
  FUSELITE_ASSIGN_OR_RETURN(ExpTable exp, SoftmaxExpTable(op));
  const QuantizedRows rows(op);
  if (auto permuted = MakePermutedSoftmax(op, exp, rows, context.isa)) return permuted;
  std::ranges::reverse(exp.values);
  const auto body = [=, block = block_for(in, out)](const void* x, void* y, int64_t count,
                                                    int32_t* exps) {
    const SoftmaxRows p{exp.values.data(), rows.n, rows.in_pitch, rows.out_pitch, rows.exps_pitch};
    block(p, x, y, count, exps);
  };
  if (n == 1) return rows.MakeSingles("softmax of one", body);
  if (n == 2) return rows.MakePairs("softmax of two", body);
  return rows.Make("softmax " + std::string(DataTypeName(in)) + " " + SimdName(context.isa), body);
}

}  // namespace fuselite::kernels
#endif
