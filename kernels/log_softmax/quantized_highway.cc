// LOG_SOFTMAX of bytes: the logarithms of several rows' sums at a time, and a vector of outputs.
#include <algorithm>
#include <limits>

#include "kernels/log_softmax/quantized.h"
#include "kernels/softmax/quantized_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/log_softmax/quantized_highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/fixed_point-inl.h"
#include "kernels/softmax/quantized_rows-inl.h"

#ifndef FUSELITE_KERNELS_LOG_SOFTMAX_QUANTIZED_ONCE_
#define FUSELITE_KERNELS_LOG_SOFTMAX_QUANTIZED_ONCE_
namespace fuselite::kernels {

struct LogSoftmaxRows {
  const QuantizedLogSoftmax& function;
  const int32_t* table;  // exponentials, up to exp(0) at its end
  int64_t n, in_pitch, out_pitch;
};
using LogSoftmaxBlockFunction = void(const LogSoftmaxRows& rows, const void* in, void* out,
                                     int64_t count, int32_t* exps);

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What becomes of elements that are `centred` around their rows' largest.
class LogSoftmaxOf {
 public:
  HWY_INLINE LogSoftmaxOf(const QuantizedLogSoftmax& function, int32_t least, int32_t most)
      : multiplier_(hn::Set(D32(), function.difference.scale.multiplier)),
        least_(hn::Set(D32(), least)),
        most_(hn::Set(D32(), most)),
        shift_(function.difference.scale.shift) {}

  // `excluded`: QuantizedLogSoftmax::Excluded(log_sum).
  HWY_INLINE V32 operator()(V32 centred, V32 log_sum, V32 excluded) const {
    const auto scaled = FixedMul(hn::ShiftLeftSame(centred, shift_), multiplier_);
    const auto sixteenths = FixedDivide<22>(hn::Sub(scaled, log_sum));
    const auto value = hn::Min(hn::Max(hn::Add(sixteenths, most_), least_), most_);
    return hn::IfThenElse(hn::Gt(centred, excluded), value, least_);
  }

 private:
  V32 multiplier_, least_, most_;
  int shift_;
};

// The outputs of one row. So many elements may be read from x on, and written from y on.
template <class T>
HWY_INLINE void LogSoftmaxRowOf(const LogSoftmaxRows& p, const T* x, int32_t largest,
                                int32_t log_sum, T* y, size_t read_room, size_t write_room) {
  const D32 d;
  const hn::Rebind<T, D32> narrow;
  constexpr int32_t kMin = std::numeric_limits<T>::min(), kMax = std::numeric_limits<T>::max();
  const LogSoftmaxOf function(p.function, kMin, kMax);
  const auto logs = hn::Set(d, log_sum), excluded = hn::Set(d, p.function.Excluded(log_sum));
  StoreRow(y, p.n, write_room, [&](size_t i) HWY_ATTR {
    const auto bytes = HWY_LIKELY(i + hn::Lanes(d) <= read_room)
                           ? hn::LoadU(narrow, x + i)
                           : LoadPartial(narrow, x + i, p.n - i);
    const auto centred = hn::Sub(hn::PromoteTo(d, bytes), hn::Set(d, largest));
    return function(centred, logs, excluded);
  });
}

// SplitLogOfQ12 in every lane, of numbers from 1 to 2^24, whose leading zeros the exponent of a
// float tells.
HWY_INLINE void SplitLogVec(V32 x, V32* r, V32* power) {
  const D32 d;
  const hn::RebindToFloat<D32> df;
  constexpr int kExponentBits = 31 - fixed_log::kPowerBits;
  const auto zeros = [&](V32 v) HWY_ATTR {
    return hn::Sub(hn::Set(d, 127 + 31), hn::ShiftRight<23>(hn::BitCast(d, hn::ConvertTo(df, v))));
  };
  const auto exponent = [&](V32 bits) HWY_ATTR {
    return hn::ShiftLeft<kExponentBits>(hn::Sub(hn::Set(d, 12), bits));
  };
  const auto saturated = [&](V32 shifted) HWY_ATTR {  // of up to 2^31.5
    return hn::IfThenElse(hn::Lt(shifted, hn::Zero(d)), hn::Set(d, INT32_MAX), shifted);
  };
  const auto quarter = hn::Set(d, 1 << (kExponentBits - 2)), root = hn::Set(d, 1518500250);
  const auto zeros_a = zeros(x), one = hn::Set(d, 1);
  const auto r_a = saturated(hn::ShiftLeft<1>(FixedMul(hn::Shl(x, hn::Sub(zeros_a, one)), root)));
  const auto headroom_b = hn::Sub(zeros(FixedMul(x, root)), one);
  const auto r_b = saturated(hn::Shl(x, headroom_b));
  *r = hn::Min(r_a, r_b);
  *power = hn::Max(hn::Add(exponent(zeros_a), quarter), hn::Sub(exponent(headroom_b), quarter));
}

// Rows of up to 16 elements.
template <class T>
HWY_INLINE void NarrowBlockOf(const LogSoftmaxRows& p, const T* in, T* out, int64_t rows,
                              int32_t* exps) {
  const D32 d;
  const hn::Rebind<T, D32> narrow;
  const hn::Rebind<uint8_t, D32> bytes;
  const LogSoftmaxOf function(p.function, std::numeric_limits<T>::min(),
                              std::numeric_limits<T>::max());
  HWY_ALIGN uint8_t below[kRowsTogether * kRowsTogether];
  HWY_ALIGN T results[kRowsTogether * kRowsTogether];
  HWY_ALIGN int32_t logs[kRowsTogether], excluded[kRowsTogether];
  LoadBelowLargest(in, p.in_pitch, rows, p.n, below);
  ExpColumns(p.table, below, p.n, exps);
  for (int64_t r = 0; r < kRowsTogether; r += static_cast<int64_t>(hn::Lanes(d))) {
    V32 fraction, power;
    SplitLogVec(SumOfColumns(exps + r, p.n), &fraction, &power);
    hn::Store(FixedLogVec(fraction, power), d, logs + r);
  }
  for (int64_t r = 0; r < kRowsTogether; ++r) excluded[r] = p.function.Excluded(logs[r]);
  for (int64_t r = 0; r < kRowsTogether; r += static_cast<int64_t>(hn::Lanes(d))) {
    const auto log_sum = hn::Load(d, logs + r), limit = hn::Load(d, excluded + r);
    for (int64_t c = 0; c < p.n; ++c) {
      const int64_t at = c * kRowsTogether + r;
      const auto centred = hn::Neg(hn::PromoteTo(d, hn::LoadU(bytes, below + at)));
      const auto y = function(centred, log_sum, limit);
      hn::StoreU(hn::DemoteTo(narrow, y), narrow, results + at);
    }
  }
  StoreColumns(results, p.n, out, p.out_pitch, rows);
}

template <class T>
void LogSoftmaxBlock(const LogSoftmaxRows& p, const void* in, void* out, int64_t rows,
                     int32_t* exps) {
  const D32 d;
  const auto* from = static_cast<const T*>(in);
  auto* to = static_cast<T*>(out);
  if (AreNarrow(p.n, rows)) return NarrowBlockOf(p, from, to, rows, exps);
  HWY_ALIGN int32_t logs[kRowsTogether] = {}, powers[kRowsTogether] = {};
  int32_t largest[kRowsTogether];
  for (int64_t r = 0; r < rows; ++r) {
    const T* x = from + r * p.in_pitch;
    largest[r] = RowExtreme<true>(x, p.n);
    const int64_t sum = ExpRowOf(p.table, x, largest[r], exps, p.n);
    const FixedLogParts parts = SplitLogOfQ12(
        static_cast<int32_t>(std::min<int64_t>(sum, std::numeric_limits<int32_t>::max())));
    logs[r] = parts.r;
    powers[r] = parts.power;
  }
  for (int64_t r = 0; r < rows; r += static_cast<int64_t>(hn::Lanes(d))) {
    hn::Store(FixedLogVec(hn::Load(d, logs + r), hn::Load(d, powers + r)), d, logs + r);
  }
  for (int64_t r = 0; r < rows; ++r) {
    const size_t behind = (rows - r) * p.n;
    LogSoftmaxRowOf(p, from + r * p.in_pitch, largest[r], logs[r], to + r * p.out_pitch,
                    p.in_pitch == p.n ? behind : p.n, p.out_pitch == p.n ? behind : p.n);
  }
}

LogSoftmaxBlockFunction* LogSoftmaxBlockFor(DataType type) {
  return type == DataType::kInt8 ? LogSoftmaxBlock<int8_t> : LogSoftmaxBlock<uint8_t>;
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

Result<std::unique_ptr<Kernel>> BuildQuantizedLogSoftmaxHighway(const OpDescription& op,
                                                                const BuildContext& context) {
  constexpr auto kBlock = FUSELITE_SIMD_TABLE(LogSoftmaxBlockFor);
  constexpr int64_t kMaxRow = 8192;  // as in BuildQuantizedSoftmaxHighway
  const DataType type = op.inputs[0].type;
  FUSELITE_ASSIGN_OR_RETURN(auto* const block_for, kBlock.Require(context.isa));
  if (op.inputs[0].shape.dim(-1) > kMaxRow)
    return Unsupported("does not take rows above ", kMaxRow);
  FUSELITE_ASSIGN_OR_RETURN(const QuantizedLogSoftmax function, MakeQuantizedLogSoftmax(op));
  ExpTable rising = function.exp;
  std::ranges::reverse(rising.values);
  const QuantizedRows rows(op);
  const auto body = [=, block = block_for(type)](const void* x, void* y, int64_t count,
                                                 int32_t* exps) {
    const LogSoftmaxRows p{function, rising.values.data(), rows.n, rows.in_pitch, rows.out_pitch};
    block(p, x, y, count, exps);
  };
  if (rows.n == 1) return rows.MakeSingles("log_softmax of one", body);
  if (rows.n == 2) return rows.MakePairs("log_softmax of two", body);
  return rows.Make("log_softmax " + std::string(DataTypeName(type)) + " " + SimdName(context.isa),
                   body);
}

}  // namespace fuselite::kernels
#endif
