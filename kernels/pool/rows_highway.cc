// Pools of few channels: a row of outputs at a time, whose pixels and channels are one row of
// values, computed for every column and picked from by the stride.
//
// The loops are plain ones that the compiler turns into vectors of each target (this file is
// compiled with -O3). Outputs of floats take their taps in the reference's order, but for windows
// that have a row to themselves; integers, whose order does not matter, take those of a column once
// for all windows that share it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "kernels/make_kernel.h"
#include "kernels/pool/pool.h"
#include "kernels/shape_rules.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pool/rows_highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/pool/totals-inl.h"
#include "kernels/simd.h"

#ifndef FUSELITE_KERNELS_POOL_ROWS_ONCE_
#define FUSELITE_KERNELS_POOL_ROWS_ONCE_
namespace fuselite::kernels {

// A pixel's totals are copied in blocks of so many bytes.
constexpr size_t kPickedBytes = 16;

struct PoolRows {
  WindowAxis x;
  int64_t channels;
  float low, high;             // of the fused activation
  std::vector<float> columns;  // of the window that lie inside, for each value of a row of outputs

  // Values of a row with its padding, and of one that has an output at every column.
  int64_t padded() const { return x.reach() * channels; }
  int64_t dense() const { return (int64_t{x.output - 1} * x.stride + 1) * channels; }
  // There are three parts: the row with its padding, totals, totals that the stride picks in
  // blocks that reach over their end.
  size_t scratch_bytes() const { return 3 * PartBytes(); }
  size_t PartBytes() const {
    return (static_cast<size_t>(padded()) * sizeof(float) + kPickedBytes + 63) & ~63;
  }
};
// The outputs of one row, from `rows` rows of the input.
using PoolRowFunction = void(const PoolRows& pool, const void* in, int64_t rows, void* out,
                             std::byte* scratch);

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {

// `count` values of one tap each.
template <PoolKind kKind, class T, class Total>
HWY_INLINE void TakeTap(const T* HWY_RESTRICT in, int64_t count, Total* HWY_RESTRICT totals) {
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<Total>(in[i]);
    if constexpr (kKind == PoolKind::kMax) {
      totals[i] = value > totals[i] ? value : totals[i];
    } else if constexpr (kKind == PoolKind::kL2) {
      totals[i] += value * value;
    } else {
      totals[i] = static_cast<Total>(totals[i] + value);
    }
  }
}

// The row behind its padding.
template <PoolKind kKind, class T>
HWY_INLINE const T* Padded(const PoolRows& pool, const T* in, T* row) {
  const int64_t before = int64_t{pool.x.before} * pool.channels, count = pool.padded();
  const int64_t inside = std::min(count - before, int64_t{pool.x.input} * pool.channels);
  if (before == 0 && inside == count) return in;
  std::fill(row, row + before, NoTotal<kKind, T>());
  std::copy_n(in, inside, row + before);
  std::fill(row + before + inside, row + count, NoTotal<kKind, T>());
  return row;
}

template <class Total>
HWY_INLINE const Total* Picked(const PoolRows& pool, const Total* totals, Total* picked) {
  if (pool.x.stride == 1) return totals;
  const size_t bytes = pool.channels * sizeof(Total), step = pool.x.stride * bytes;
  const auto* from = reinterpret_cast<const std::byte*>(totals);
  auto* to = reinterpret_cast<std::byte*>(picked);
  for (int64_t x = 0; x < pool.x.output; ++x, from += step, to += bytes) {
    for (size_t i = 0; i < bytes; i += kPickedBytes) std::memcpy(to + i, from + i, kPickedBytes);
  }
  return picked;
}

// The mean of integers: halves away from zero, or up where T has no sign. Sums are exact in Real,
// and their quotient is cut to the right integer (kernels/pool/integer_highway.cc): those of bytes
// are below 2^24, others need double.
template <class T>
HWY_INLINE float RoundedMean(int32_t total, float count) {
  using Real = std::conditional_t<sizeof(T) == 1, float, double>;
  const int32_t half = static_cast<int32_t>(count) / 2;
  const int32_t nudged = !std::is_signed_v<T> || total > 0 ? total + half : total - half;
  return static_cast<float>(
      static_cast<int32_t>(static_cast<Real>(nudged) / static_cast<Real>(count)));
}

template <class T>
HWY_INLINE void FinishMaxima(const PoolRows& pool, const T* HWY_RESTRICT totals,
                             T* HWY_RESTRICT out) {
  const auto low = static_cast<T>(pool.low), high = static_cast<T>(pool.high);
  const int64_t count = int64_t{pool.x.output} * pool.channels;
  for (int64_t i = 0; i < count; ++i) out[i] = std::min(std::max(totals[i], low), high);
}

template <PoolKind kKind, class T, class Total>
HWY_INLINE void Finish(const PoolRows& pool, const Total* HWY_RESTRICT totals, float rows,
                       T* HWY_RESTRICT out) {
  const float* HWY_RESTRICT columns = pool.columns.data();
  const float low = pool.low, high = pool.high;
  const int64_t count = int64_t{pool.x.output} * pool.channels;
  for (int64_t i = 0; i < count; ++i) {
    auto value = static_cast<float>(totals[i]);
    if constexpr (kKind != PoolKind::kMax && std::is_same_v<T, float>) {
      value = value / (rows * columns[i]);
    } else if constexpr (kKind != PoolKind::kMax) {
      value = RoundedMean<T>(totals[i], rows * columns[i]);
    }
    if constexpr (kKind == PoolKind::kL2) value = std::sqrt(value);
    value = value < low ? low : value;  // a NaN stays
    out[i] = static_cast<T>(high < value ? high : value);
  }
}

// The totals of `count` columns become those of all of them together, by halves: a window that has
// the row to itself.
template <PoolKind kKind, class Total>
HWY_INLINE void JoinColumns(Total* columns, int64_t count, int64_t channels) {
  while (count > 1) {
    const int64_t half = count / 2;
    count -= half;
    TakeTap<kKind>(columns + count * channels, half * channels, columns);
  }
}

// The rows' totals of each column, with those of its padding, and from these the windows'.
template <PoolKind kKind, class T, class Total>
HWY_INLINE void TotalsByColumns(const PoolRows& pool, const T* in, int64_t rows, Total* columns,
                                Total* totals) {
  const int64_t before = int64_t{pool.x.before} * pool.channels, count = pool.padded();
  const int64_t pitch = int64_t{pool.x.input} * pool.channels;
  std::fill(columns, columns + count, NoTotal<kKind, Total>());
  for (int64_t y = 0; y < rows; ++y) {
    TakeTap<kKind>(in + y * pitch, std::min(count - before, pitch), columns + before);
  }
  constexpr PoolKind kJoined = kKind == PoolKind::kL2 ? PoolKind::kAverage : kKind;
  if (pool.x.output == 1) {
    JoinColumns<kJoined>(columns, pool.x.filter, pool.channels);
    std::copy_n(columns, pool.channels, totals);
    return;
  }
  for (int32_t x = 0; x < pool.x.filter; ++x) {
    TakeTap<kJoined>(columns + x * pool.channels, pool.dense(), totals);
  }
}

// As TotalsByColumns(), tap by tap.
template <PoolKind kKind, class T, class Total>
HWY_INLINE void TotalsByTaps(const PoolRows& pool, const T* in, int64_t rows, T* padded,
                             Total* totals) {
  for (int64_t y = 0; y < rows; ++y) {
    const T* row = Padded<kKind>(pool, in + y * pool.x.input * pool.channels, padded);
    for (int32_t x = 0; x < pool.x.filter; ++x) {
      TakeTap<kKind>(row + x * pool.channels, pool.dense(), totals);
    }
  }
}

template <PoolKind kKind, class T, class Total>
void PoolRow(const PoolRows& pool, const void* in, int64_t rows, void* out, std::byte* scratch) {
  const T* const from = static_cast<const T*>(in);
  T* const to = static_cast<T*>(out);
  auto* const totals = reinterpret_cast<Total*>(scratch + pool.PartBytes());
  auto* const picked = reinterpret_cast<Total*>(scratch + 2 * pool.PartBytes());
  std::fill(totals, totals + pool.dense(), NoTotal<kKind, Total>());
  if (std::is_integral_v<T> || pool.x.output == 1) {
    TotalsByColumns<kKind>(pool, from, rows, reinterpret_cast<Total*>(scratch), totals);
  } else {
    TotalsByTaps<kKind>(pool, from, rows, reinterpret_cast<T*>(scratch), totals);
  }
  const Total* const results = Picked(pool, totals, picked);
  if constexpr (std::is_integral_v<T> && kKind == PoolKind::kMax) {
    FinishMaxima(pool, results, to);
  } else {
    Finish<kKind>(pool, results, static_cast<float>(rows), to);
  }
}

// Windows of one tap: what is left is the activation. A NaN is no maximum, but a mean.
template <PoolKind kKind, class T>
void PoolOneTap(const PoolRows& pool, const void* in, int64_t, void* out, std::byte*) {
  const T* HWY_RESTRICT from = static_cast<const T*>(in);
  T* HWY_RESTRICT to = static_cast<T*>(out);
  const T low = static_cast<T>(pool.low), high = static_cast<T>(pool.high);
  const int64_t count = int64_t{pool.x.output} * pool.channels;
  for (int64_t i = 0; i < count; ++i) {
    T value = from[i];
    if constexpr (kKind == PoolKind::kMax) {
      value = value > low ? value : low;
    } else {
      value = value < low ? low : value;
    }
    to[i] = high < value ? high : value;
  }
}

// Sums of up to 256 bytes fit into 16 bits.
template <class T>
PoolRowFunction* PoolRowOf(PoolKind kind, int32_t taps, bool one_tap) {
  if (one_tap) {
    return kind == PoolKind::kMax ? PoolOneTap<PoolKind::kMax, T>
                                  : PoolOneTap<PoolKind::kAverage, T>;
  }
  if (kind == PoolKind::kMax) return PoolRow<PoolKind::kMax, T, T>;
  if constexpr (std::is_same_v<T, float>) {
    return kind == PoolKind::kL2 ? PoolRow<PoolKind::kL2, float, float>
                                 : PoolRow<PoolKind::kAverage, float, float>;
  } else {
    using Small = std::conditional_t<std::is_signed_v<T>, int16_t, uint16_t>;
    if (sizeof(T) == 1 && taps <= 256) return PoolRow<PoolKind::kAverage, T, Small>;
    return PoolRow<PoolKind::kAverage, T, int32_t>;
  }
}

PoolRowFunction* PoolRowFor(DataType type, PoolKind kind, int32_t taps, bool one_tap) {
  switch (type) {
    case DataType::kFloat32: return PoolRowOf<float>(kind, taps, one_tap);
    case DataType::kInt8: return PoolRowOf<int8_t>(kind, taps, one_tap);
    case DataType::kUInt8: return PoolRowOf<uint8_t>(kind, taps, one_tap);
    default: return PoolRowOf<int16_t>(kind, taps, one_tap);
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

std::vector<float> ColumnsInside(const PoolShape& shape) {
  const WindowAxis& x = shape.window.x;
  std::vector<float> columns;
  for (int32_t o = 0; o < x.output; ++o) {
    const int32_t start = x.start(o);
    const int32_t inside = x.last_tap(start) - x.first_tap(start);
    columns.insert(columns.end(), shape.channels, static_cast<float>(inside));
  }
  return columns;
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildPoolRows(const OpDescription& op,
                                              const BuildContext& context) {
  constexpr auto kPoolRow = FUSELITE_SIMD_TABLE(PoolRowFor);
  // Pixels of more bytes repay a call for each; sooner where the stride leaves most outputs out, or
  // a row has so few that starting its loops takes longer than they do.
  constexpr int64_t kMostBytes = 160, kMostBytesApart = 31;
  constexpr int32_t kFewOutputs = 4;
  // Longer rows leave the caches between the passes over them, and threads share no row.
  constexpr int64_t kMostRowBytes = 64 << 10;
  FUSELITE_ASSIGN_OR_RETURN(auto* const function_for, kPoolRow.Require(context.isa));
  FUSELITE_ASSIGN_OR_RETURN(const PoolShape shape, ResolvePoolAlongLines(op));
  const DataType type = op.inputs[0].type;
  const int64_t bytes = BitWidth(type) / 8;
  const PoolKind kind = PoolKindOf(*op.op);
  const int32_t taps = shape.window.taps();
  const bool one_tap =
      taps == 1 && shape.window.x.stride == 1 && shape.window.unpadded() && kind != PoolKind::kL2;
  const bool apart = shape.window.x.stride > 1 || shape.window.x.output < kFewOutputs;
  if (!one_tap && shape.channels * bytes > (apart ? kMostBytesApart : kMostBytes)) {
    return Unsupported(shape.channels, " channels");
  }
  const int64_t row_bytes = int64_t{shape.window.x.input} * shape.channels * bytes;
  if (!one_tap && row_bytes > kMostRowBytes) return Unsupported("rows of ", row_bytes, " bytes");
  if (!op.tail.empty() || !IsDense(op.inputs[0]) || !IsDense(op.outputs[0])) {
    return Unsupported("does not take a tail or pitched rows");
  }
  FUSELITE_RETURN_IF_ERROR(CheckSummedTaps(op, shape));
  FUSELITE_ASSIGN_OR_RETURN(const PoolRange range, PoolRangeOf(op));
  const PoolRows pool{shape.window.x, shape.channels, range.low, range.high, ColumnsInside(shape)};
  const auto& [y, x] = shape.window;
  const Work work{.units = int64_t{shape.batch} * y.output,
                  .grain = GrainFor(int64_t{x.output} * shape.channels * taps / 4),
                  .scratch_bytes = pool.scratch_bytes()};
  return MakeKernel(
      "pool rows " + std::string(DataTypeName(type)) + " " + SimdName(context.isa), work,
      [=, row = function_for(type, kind, taps, one_tap), y = y, x = x](const KernelArgs& args,
                                                                       int64_t begin, int64_t end) {
        const int64_t in_row = int64_t{x.input} * shape.channels * bytes;
        const int64_t out_row = int64_t{x.output} * shape.channels * bytes;
        for (int64_t unit = begin; unit < end; ++unit) {
          const int32_t start = y.start(static_cast<int32_t>(unit % y.output));
          const int32_t first = y.first_tap(start), last = y.last_tap(start);
          const int64_t from = unit / y.output * y.input + start + first;
          row(pool, static_cast<const std::byte*>(args.inputs[0]) + from * in_row, last - first,
              static_cast<std::byte*>(args.outputs[0]) + unit * out_row, args.scratch);
        }
      });
}

}  // namespace fuselite::kernels
#endif
