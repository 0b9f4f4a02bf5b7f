// Pools whose windows overlap: the rows of a line of windows are joined first, for all windows that
// share a column, and then the columns of each. A window of 3x3 takes 6 values instead of 9, one of
// 7x7 14 instead of 49.
#include <algorithm>
#include <type_traits>

#include "kernels/make_kernel.h"
#include "kernels/pool/pool.h"
#include "kernels/rows/row_tail.h"
#include "runtime/memory/aligned_buffer.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pool/columns_highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/pool/totals-inl.h"
#include "kernels/simd.h"

#ifndef FUSELITE_KERNELS_POOL_COLUMNS_ONCE_
#define FUSELITE_KERNELS_POOL_COLUMNS_ONCE_
namespace fuselite::kernels {

// `runs` runs of `n` values, `in_step` and `out_step` values apart; value i of a run is joined of
// the `lines` values i, `pitch` apart.
struct JoinedRuns {
  int64_t runs, n, in_step, out_step;
  int64_t lines, pitch;
};
struct PoolColumnsFunctions {
  size_t total_bytes = 0;  // of a column's total
  // `n` totals of nothing.
  void (*fill)(void* totals, int64_t n) = nullptr;
  // The totals of columns: `lines` are the rows of a window.
  void (*columns)(const JoinedRuns& runs, const void* in, void* totals) = nullptr;
  // Results of windows: `lines` are columns, of `count` taps in all.
  void (*windows)(const JoinedRuns& runs, const void* totals, int32_t count, PoolRange range,
                  void* out) = nullptr;
};

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The joined values of kVectors whole vectors from `in` on, n in all, or of the n values of less
// than one: finish(at, count, total) takes those of each vector, `count` values from value `at` on.
template <PoolKind kKind, size_t kVectors, class D, class T, class Finish>
HWY_INLINE void JoinVectors(D d, const JoinedRuns& runs, const T* in, size_t n, Finish finish) {
  const hn::Rebind<T, D> from;
  const size_t lanes = hn::Lanes(d);
  hn::Vec<D> totals[kVectors];
  HWY_UNROLL(4)
  for (size_t v = 0; v < kVectors; ++v) totals[v] = hn::Set(d, NoTotal<kKind, hn::TFromD<D>>());
  const auto taken = [&](const T* values) FUSELITE_INLINED {
    const auto loaded = LoadUpTo(from, values, n);
    if constexpr (std::is_same_v<T, hn::TFromD<D>>) {
      return loaded;
    } else {
      return hn::PromoteTo(d, loaded);
    }
  };
  for (int64_t y = 0; y < runs.lines; ++y, in += runs.pitch) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) {
      totals[v] = CombineTaps<kKind>(totals[v], taken(in + v * lanes));
    }
  }
  HWY_UNROLL(4)
  for (size_t v = 0; v < kVectors; ++v) finish(v * lanes, HWY_MIN(n, lanes), totals[v]);
}

// The last vector of a run may overlap the one before.
template <PoolKind kKind, class D, class T, class Finish>
HWY_INLINE void JoinRun(D d, const JoinedRuns& runs, const T* in, Finish finish) {
  const auto n = static_cast<size_t>(runs.n);
  const size_t lanes = hn::Lanes(d);
  constexpr std::integral_constant<size_t, 4> kFour;
  constexpr std::integral_constant<size_t, 1> kOne;
  size_t at = 0;
  const auto join = [&](auto vectors, size_t count) FUSELITE_INLINED {
    const auto place = [&](size_t i, size_t values, auto total)
                           FUSELITE_INLINED { finish(at + i, values, total); };
    JoinVectors<kKind, decltype(vectors)::value>(d, runs, in + at, count, place);
  };
  for (; at + 4 * lanes <= n; at += 4 * lanes) join(kFour, 4 * lanes);
  for (; at + lanes <= n; at += lanes) join(kOne, lanes);
  if (at == n) return;
  if (n >= lanes) {
    at = n - lanes;
    join(kOne, lanes);
  } else {
    join(kOne, n);
  }
}

template <PoolKind kKind, class Total>
void FillTotals(void* totals, int64_t n) {
  std::fill_n(static_cast<Total*>(totals), n, NoTotal<kKind, Total>());
}

template <PoolKind kKind, class T, class Total>
void TotalColumns(const JoinedRuns& runs, const void* in, void* totals) {
  const hn::ScalableTag<Total> d;
  const T* from = static_cast<const T*>(in);
  auto* to = static_cast<Total*>(totals);
  for (int64_t r = 0; r < runs.runs; ++r, from += runs.in_step, to += runs.out_step) {
    JoinRun<kKind>(d, runs, from,
                   [&](size_t at, size_t n, hn::Vec<decltype(d)> total)
                       FUSELITE_INLINED { StoreUpTo(total, d, to + at, n); });
  }
}

template <PoolKind kKind, class T, class Total>
void FinishWindows(const JoinedRuns& runs, const void* totals, int32_t count, PoolRange range,
                   void* out) {
  constexpr PoolKind kJoined = kKind == PoolKind::kMax ? PoolKind::kMax : PoolKind::kAverage;
  const hn::ScalableTag<Total> d;
  const auto* from = static_cast<const Total*>(totals);
  T* to = static_cast<T*>(out);
  const auto low = hn::Set(d, static_cast<Total>(range.low));
  const auto high = hn::Set(d, static_cast<Total>(range.high));
  // Of integers alone: limits of floats may be infinite, and windows of floats and maxima larger
  // than kMostSummedTaps.
  constexpr bool kDivides = std::is_integral_v<T> && kKind == PoolKind::kAverage;
  const IntegerMeans<T> means(kDivides ? count : 1, kDivides ? static_cast<int32_t>(range.low) : 0,
                              kDivides ? static_cast<int32_t>(range.high) : 0);
  for (int64_t r = 0; r < runs.runs; ++r, from += runs.in_step, to += runs.out_step) {
    JoinRun<kJoined>(d, runs, from,
                     [&](size_t at, size_t n, hn::Vec<decltype(d)> total) FUSELITE_INLINED {
                       if constexpr (std::is_same_v<T, float>) {
                         const auto taps = hn::Set(d, static_cast<float>(count));
                         const auto value = FloatOfTotal<kKind>(total, taps, range.low, range.high);
                         StoreUpTo(value, d, to + at, n);
                       } else if constexpr (kKind == PoolKind::kMax) {
                         StoreUpTo(hn::Min(hn::Max(total, low), high), d, to + at, n);
                       } else {
                         means.Store(d, total, to + at, n);
                       }
                     });
  }
}

template <PoolKind kKind, class T, class Total>
PoolColumnsFunctions ColumnFunctionsOf() {
  return {sizeof(Total), FillTotals<kKind, Total>, TotalColumns<kKind, T, Total>,
          FinishWindows<kKind, T, Total>};
}

// Sums of up to 256 bytes fit into 16 bits.
template <class T>
PoolColumnsFunctions IntegerFunctions(bool is_max, bool small_sums) {
  if (is_max) return ColumnFunctionsOf<PoolKind::kMax, T, T>();
  if constexpr (sizeof(T) == 1) {
    if (small_sums) return ColumnFunctionsOf<PoolKind::kAverage, T, hwy::MakeWide<T>>();
  }
  return ColumnFunctionsOf<PoolKind::kAverage, T, int32_t>();
}

PoolColumnsFunctions PoolColumnsFor(DataType type, PoolKind kind, int32_t taps) {
  const bool is_max = kind == PoolKind::kMax, small_sums = taps <= 256;
  switch (type) {
    case DataType::kInt8: return IntegerFunctions<int8_t>(is_max, small_sums);
    case DataType::kUInt8: return IntegerFunctions<uint8_t>(is_max, small_sums);
    case DataType::kInt16: return IntegerFunctions<int16_t>(is_max, small_sums);
    default: break;
  }
  if (is_max) return ColumnFunctionsOf<PoolKind::kMax, float, float>();
  return kind == PoolKind::kL2 ? ColumnFunctionsOf<PoolKind::kL2, float, float>()
                               : ColumnFunctionsOf<PoolKind::kAverage, float, float>();
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

// Whether that takes fewer values than each window by itself. Totals are stored and loaded again,
// which is as much as one and a half of a column's values.
bool WindowsOverlap(const Window& window) {
  const auto& [y, x] = window;
  const double by_columns = x.input * (y.filter + 1.5) + x.output * (x.filter + 1.0);
  return by_columns < static_cast<double>(x.output) * window.taps();
}

// Lines of windows, in values.
struct PoolLines {
  PoolShape shape;
  PoolKind kind;
  PoolColumnsFunctions functions;
  PoolRange range;
  int64_t in_pitch, out_pitch, value_bytes;

  // The columns of a line with its padding, behind which those of the image are aligned.
  size_t totals_bytes() const {
    return totals_at() + static_cast<size_t>(shape.window.x.reach() * total_step());
  }
  size_t totals_at() const {
    const auto before = static_cast<size_t>(shape.window.x.before * total_step());
    return AlignUp(before) - before;
  }
  // What Run finds in `totals`: columns of padding, which change no maximum.
  void Pad(std::byte* totals) const {
    if (kind == PoolKind::kMax) functions.fill(totals, shape.window.x.reach() * shape.channels);
  }
  // The windows of line `line` of all images' to `out`.
  void Run(const std::byte* in, int64_t line, std::byte* totals, std::byte* out) const {
    const WindowAxis &y = shape.window.y, &x = shape.window.x;
    const int32_t start = y.start(static_cast<int32_t>(line % y.output));
    const int32_t first = y.first_tap(start), rows = y.last_tap(start) - first;
    Columns(in + (line / y.output * y.input + start + first) * row_bytes(), rows, totals);
    if (kind == PoolKind::kMax) return Windows(totals, x.output, {0, rows, x.filter}, out);
    const int64_t begin = line * x.output;
    ForPixelRuns(shape, begin, begin + x.output, [&](int64_t pixel, int64_t count, PoolTaps taps) {
      taps.first = taps.first % x.input + x.before;
      Windows(totals, count, taps, out + (pixel - begin) * out_pitch * value_bytes);
    });
  }

 private:
  int64_t row_bytes() const { return in_pitch * shape.window.x.input * value_bytes; }
  int64_t total_step() const {
    return shape.channels * static_cast<int64_t>(functions.total_bytes);
  }

  // `pixels` pixels, which are one run where they follow each other on both sides.
  JoinedRuns Together(int64_t pixels, int64_t in_step, int64_t out_step) const {
    const int64_t channels = shape.channels;
    const bool dense = in_step == channels && out_step == channels;
    return {.runs = dense ? 1 : pixels,
            .n = dense ? pixels * channels : channels,
            .in_step = in_step,
            .out_step = out_step,
            .lines = 0,
            .pitch = 0};
  }
  // The columns that lie in the image.
  void Columns(const std::byte* in, int32_t rows, std::byte* totals) const {
    const WindowAxis& x = shape.window.x;
    const int64_t inside = std::min<int64_t>(x.input, x.reach() - x.before);
    JoinedRuns runs = Together(inside, in_pitch, shape.channels);
    runs.lines = rows;
    runs.pitch = in_pitch * x.input;
    functions.columns(runs, in, totals + x.before * total_step());
  }
  // `count` windows, the first one's columns from `taps.first` of `totals` on.
  void Windows(const std::byte* totals, int64_t count, const PoolTaps& taps, std::byte* out) const {
    JoinedRuns runs = Together(count, shape.window.x.stride * shape.channels, out_pitch);
    runs.lines = taps.columns;
    runs.pitch = shape.channels;
    functions.windows(runs, totals + taps.first * total_step(), taps.count(), range, out);
  }
};

// Floats end with a tail, integers have none.
std::unique_ptr<Kernel> MakeLines(const OpDescription& op, PoolLines lines, Isa isa) {
  const DataType type = op.inputs[0].type;
  const bool has_tail = type == DataType::kFloat32;
  const RowTail tail(op, ApplyTail(isa));
  const Window& window = lines.shape.window;
  const int64_t outputs = window.x.output;
  if (has_tail) lines.out_pitch = tail.row_pitch();
  const size_t lines_at = has_tail ? AlignUp(tail.scratch_bytes(outputs)) : 0;
  const Work work{
      .units = int64_t{lines.shape.batch} * window.y.output,
      .grain = GrainFor(outputs * lines.shape.channels * (window.y.filter + window.x.filter)),
      .scratch_bytes = lines_at + lines.totals_bytes()};
  return MakeKernel("pool columns " + std::string(DataTypeName(type)) + " " + SimdName(isa), work,
                    [=](const KernelArgs& args, int64_t begin, int64_t end) {
                      const auto* in = static_cast<const std::byte*>(args.inputs[0]);
                      std::byte* const totals = args.scratch + lines_at + lines.totals_at();
                      lines.Pad(totals);
                      for (int64_t line = begin; line < end; ++line) {
                        const int64_t pixel = line * outputs;
                        auto* const out = has_tail
                                              ? reinterpret_cast<std::byte*>(tail.Row(args, pixel))
                                              : static_cast<std::byte*>(args.outputs[0]) +
                                                    pixel * lines.out_pitch * lines.value_bytes;
                        lines.Run(in, line, totals, out);
                        if (has_tail) tail.Finish(args, pixel, outputs);
                      }
                    });
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildPoolColumns(const OpDescription& op,
                                                 const BuildContext& context) {
  constexpr auto kFunctions = FUSELITE_SIMD_TABLE(PoolColumnsFor);
  // Pixels of fewer bytes that are pooled one by one go through partial loads, as do the means at
  // the edges of an image, of which each number of taps has its own call.
  constexpr int64_t kLeastBytesApart = 16, kLeastBytesOfMeans = 4;
  FUSELITE_ASSIGN_OR_RETURN(auto* const functions_for, kFunctions.Require(context.isa));
  FUSELITE_ASSIGN_OR_RETURN(const PoolShape shape, ResolvePool(op));
  if (!WindowsOverlap(shape.window)) return Unsupported("windows that hardly overlap");
  const TensorInfo &in = op.inputs[0], &out = op.outputs[0];
  const DataType type = in.type;
  const int64_t bytes = BitWidth(type) / 8;
  const bool apart =
      shape.window.x.stride > 1 || in.pitch() != shape.channels || out.pitch() != shape.channels;
  const PoolKind kind = PoolKindOf(*op.op);
  const int64_t least = apart ? kLeastBytesApart : kind != PoolKind::kMax ? kLeastBytesOfMeans : 1;
  if (shape.channels * bytes < least) return Unsupported(shape.channels, " channels");
  FUSELITE_RETURN_IF_ERROR(CheckSummedTaps(op, shape));
  FUSELITE_ASSIGN_OR_RETURN(const PoolRange range, PoolRangeOf(op));
  return MakeLines(op,
                   {.shape = shape,
                    .kind = kind,
                    .functions = functions_for(type, kind, shape.window.taps()),
                    .range = range,
                    .in_pitch = in.pitch(),
                    .out_pitch = out.pitch(),
                    .value_bytes = bytes},
                   context.isa);
}

}  // namespace fuselite::kernels
#endif
