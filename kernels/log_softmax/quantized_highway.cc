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

// The outputs of one row. So many elements may be read from x on, and written from y on.
template <class T>
HWY_INLINE void LogSoftmaxRowOf(const LogSoftmaxRows& p, const T* x, int32_t largest,
                                int32_t log_sum, T* y, size_t read_room, size_t write_room) {
  const D32 d;
  const hn::Rebind<T, D32> narrow;
  constexpr int32_t kMin = std::numeric_limits<T>::min(), kMax = std::numeric_limits<T>::max();
  const ScaledDifference& difference = p.function.difference;
  const auto multiplier = hn::Set(d, difference.scale.multiplier);
  const auto excluded = hn::Set(d, p.function.Excluded(log_sum));
  const auto least = hn::Set(d, kMin), most = hn::Set(d, kMax);
  StoreRow(y, p.n, write_room, [&](size_t i) HWY_ATTR {
    const auto bytes = HWY_LIKELY(i + hn::Lanes(d) <= read_room)
                           ? hn::LoadU(narrow, x + i)
                           : LoadPartial(narrow, x + i, p.n - i);
    const auto centred = hn::Sub(hn::PromoteTo(d, bytes), hn::Set(d, largest));
    const auto scaled = FixedMul(hn::ShiftLeftSame(centred, difference.scale.shift), multiplier);
    const auto sixteenths = FixedDivide<22>(hn::Sub(scaled, hn::Set(d, log_sum)));
    const auto value = hn::Min(hn::Max(hn::Add(sixteenths, most), least), most);
    return hn::IfThenElse(hn::Gt(centred, excluded), value, least);
  });
}

template <class T>
void LogSoftmaxBlock(const LogSoftmaxRows& p, const void* in, void* out, int64_t rows,
                     int32_t* exps) {
  const D32 d;
  const auto* from = static_cast<const T*>(in);
  auto* to = static_cast<T*>(out);
  HWY_ALIGN int32_t logs[kRowsTogether] = {}, powers[kRowsTogether] = {};
  int32_t largest[kRowsTogether];
  for (int64_t r = 0; r < rows; ++r) {
    const T* x = from + r * p.in_pitch;
    largest[r] = RowMaxOf(x, p.n);
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
  if (op.inputs[0].shape.dim(-1) > kMaxRow) return Unsupported("rows above ", kMaxRow);
  FUSELITE_ASSIGN_OR_RETURN(const QuantizedLogSoftmax function, MakeQuantizedLogSoftmax(op));
  ExpTable rising = function.exp;
  std::ranges::reverse(rising.values);
  const QuantizedRows rows(op);
  return rows.Make(
      "log_softmax " + std::string(DataTypeName(type)) + " " + SimdName(context.isa),
      [=, block = block_for(type)](const void* x, void* y, int64_t count, int32_t* exps) {
        const LogSoftmaxRows p{function, rising.values.data(), rows.n, rows.in_pitch,
                               rows.out_pitch};
        block(p, x, y, count, exps);
      });
}

}  // namespace fuselite::kernels
#endif
