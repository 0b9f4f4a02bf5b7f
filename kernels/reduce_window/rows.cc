// Windows by rows. What lies behind the innermost dimension that a window covers more than one
// element of moves along with it: for each element of the window, a row of the input is combined
// into a row of the output. Each output's values are combined in the reference's order.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "kernels/make_kernel.h"
#include "kernels/movement/copy_loops.h"
#include "kernels/reduce_window/combine.h"
#include "kernels/reduce_window/reduce_window.h"
#include "kernels/shape_rules.h"
#include "runtime/support/ceil_div.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce_window/rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"

#ifndef FUSELITE_KERNELS_REDUCE_WINDOW_ROWS_ONCE_
#define FUSELITE_KERNELS_REDUCE_WINDOW_ROWS_ONCE_
namespace fuselite::kernels {

// On n elements that follow each other; totals and x do not overlap.
struct WindowRow {
  // totals[i] = f(totals[i], x[i]).
  void (*combine)(void* totals, const void* x, int64_t n);
  // totals[i] = f(totals[i], initial), `times` times.
  void (*repeat)(void* totals, const void* initial, int64_t n, int64_t times);
};

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {

template <class T, WindowFunction kFunction>
void CombineRow(void* totals, const void* x, int64_t n) {
  auto* HWY_RESTRICT to = static_cast<T*>(totals);
  const auto* HWY_RESTRICT from = static_cast<const T*>(x);
  for (int64_t i = 0; i < n; ++i) to[i] = Combine<kFunction, T>(to[i], from[i]);
}

template <class T, WindowFunction kFunction>
void CombineWithOne(void* totals, const void* initial, int64_t n, int64_t times) {
  auto* HWY_RESTRICT to = static_cast<T*>(totals);
  const T value = *static_cast<const T*>(initial);
  for (int64_t time = 0; time < times; ++time) {
    for (int64_t i = 0; i < n; ++i) to[i] = Combine<kFunction, T>(to[i], value);
  }
}

WindowRow FindWindowRow(DataType type, WindowFunction function) {
  return WithWindowFunction(type, function, []<class T, WindowFunction kFunction>() {
    return WindowRow{&CombineRow<T, kFunction>, &CombineWithOne<T, kFunction>};
  });
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

// The most of a row that is computed at once: it and what is combined into it stay in L1.
constexpr int64_t kRowBytes = int64_t{8} << 10;

// Elements of fewer bytes that lie apart are gathered: vectors of a few of them repay the copy.
constexpr int64_t kLeastAlone = 256;

bool IsTrivial(const WindowDim& w) {
  return w.size == 1 && w.stride == 1 && w.base == 1 && w.low == 0 && w.high == 0;
}

struct Dim {
  WindowDim window;
  int64_t positions;  // of the window: elements of the output
  int64_t extent;     // elements of the input
  int64_t in_bytes;   // from one element of the input to the next

  // Where position `at` finds the window's element `w`: an element of the input, or -1.
  int64_t Find(int64_t at, int64_t w) const {
    const int64_t place = at * window.stride - window.low + w * window.dilation;
    if (place < 0 || place % window.base != 0) return -1;
    const int64_t element = place / window.base;
    return element < extent ? element : -1;
  }
};

// The output's dimensions before the row's, and the row's, of whose elements each is `lanes` values
// that lie side by side.
class WindowRows {
 public:
  WindowRows(const OpDescription& op, const std::vector<WindowDim>& window, const WindowRow& row,
             const CopyLoops& copy)
      : row_(row), copy_(copy), value_bytes_(BitWidth(op.inputs[0].type) / 8) {
    const Shape &in = op.inputs[0].shape, &out = op.outputs[0].shape;
    int last = in.rank() - 1;
    for (; last > 0 && IsTrivial(window[last]); --last) lanes_ *= in[last];
    int64_t in_bytes = lanes_ * value_bytes_;
    for (int d = last; d >= 0; --d) {
      dims_[d] = {window[d], out[d], in[d], in_bytes};
      in_bytes *= in[d];
      if (d < last) outer_ *= out[d];
    }
    across_ = last;
    block_ = std::max<int64_t>(1, kRowBytes / element_bytes());
    gathers_ = window[last].stride > 1 && element_bytes() < kLeastAlone;
    blocks_ = CeilDiv(dims_[across_].positions, block_);
  }

  Work work() const {
    int64_t terms = 1;
    for (int d = 0; d <= across_; ++d) terms *= dims_[d].window.size;
    const int64_t bytes = std::min(block_, dims_[across_].positions) * element_bytes();
    return {.units = outer_ * blocks_,
            .grain = GrainFor(std::max<int64_t>(1, terms * bytes / 16)),
            .scratch_bytes = static_cast<size_t>(gathers_ ? block_ * element_bytes() : 0)};
  }

  void operator()(const KernelArgs& args, int64_t begin, int64_t end) const {
    const Dim& across = dims_[across_];
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t first = unit % blocks_ * block_, outer = unit / blocks_;
      Row row{args, {}, first, std::min(block_, across.positions - first), nullptr};
      row.totals = static_cast<std::byte*>(args.outputs[0]) +
                   (outer * across.positions + first) * element_bytes();
      int64_t rest = outer;
      for (int d = across_; d-- > 0; rest /= dims_[d].positions) {
        row.outer[d] = rest % dims_[d].positions;
      }
      copy_.fill(static_cast<const std::byte*>(args.inputs[1]), row.totals, {1, 0, 0},
                 row.count * lanes_, static_cast<int>(value_bytes_));
      CombineDim(row, 0, static_cast<const std::byte*>(args.inputs[0]));
    }
  }

 private:
  // Positions [first, first + count) across, at `outer` of the dimensions before.
  struct Row {
    const KernelArgs& args;
    std::array<int64_t, kMaxWindowRank> outer;
    int64_t first, count;
    std::byte* totals;
  };

  // Combines what the window covers of dimensions `d` and those behind it, of which `in` has the
  // first element; nothing of the input where `in` is null.
  void CombineDim(const Row& row, int d, const std::byte* in) const {
    if (d == across_) return CombineAcross(row, in);
    const Dim& dim = dims_[d];
    for (int64_t w = 0; w < dim.window.size; ++w) {
      const int64_t element = in == nullptr ? -1 : dim.Find(row.outer[d], w);
      CombineDim(row, d + 1, element < 0 ? nullptr : in + element * dim.in_bytes);
    }
  }

  void CombineAcross(const Row& row, const std::byte* in) const {
    const Dim& across = dims_[across_];
    if (in == nullptr) return Repeat(row, 0, row.count, across.window.size);
    for (int64_t w = 0; w < across.window.size; ++w) {
      across.window.base == 1 ? CombineElements(row, in, w) : CombineOneByOne(row, in, w);
    }
  }

  // The window's element `w` of all positions: the input's elements lie `stride` apart.
  void CombineElements(const Row& row, const std::byte* in, int64_t w) const {
    const Dim& across = dims_[across_];
    const int64_t stride = across.window.stride;
    const int64_t place = row.first * stride - across.window.low + w * across.window.dilation;
    const int64_t begin = place >= 0 ? 0 : std::min(CeilDiv(-place, stride), row.count);
    const int64_t inside = std::max<int64_t>(across.extent - place, 0);
    const int64_t end = std::clamp(CeilDiv(inside, stride), begin, row.count);
    Repeat(row, 0, begin, 1);
    Repeat(row, end, row.count, 1);
    if (begin == end) return;
    const std::byte* from = in + (place + begin * stride) * across.in_bytes;
    if (stride == 1) return row_.combine(At(row, begin), from, (end - begin) * lanes_);
    if (gathers_) {
      auto* const gathered = static_cast<std::byte*>(row.args.scratch);
      const CopyDim dim{end - begin, stride * across.in_bytes, across.in_bytes};
      copy_.rows(from, gathered, dim, across.in_bytes);
      return row_.combine(At(row, begin), gathered, (end - begin) * lanes_);
    }
    for (int64_t i = begin; i < end; ++i, from += stride * across.in_bytes) {
      row_.combine(At(row, i), from, lanes_);
    }
  }

  // As CombineElements(), where others lie between the input's elements.
  void CombineOneByOne(const Row& row, const std::byte* in, int64_t w) const {
    const Dim& across = dims_[across_];
    for (int64_t i = 0; i < row.count; ++i) {
      const int64_t element = across.Find(row.first + i, w);
      if (element < 0) {
        Repeat(row, i, i + 1, 1);
      } else {
        row_.combine(At(row, i), in + element * across.in_bytes, lanes_);
      }
    }
  }

  // Of the row's dimension: `lanes_` values.
  int64_t element_bytes() const { return dims_[across_].in_bytes; }

  void Repeat(const Row& row, int64_t begin, int64_t end, int64_t times) const {
    if (begin == end) return;
    row_.repeat(At(row, begin), row.args.inputs[1], (end - begin) * lanes_, times);
  }

  std::byte* At(const Row& row, int64_t position) const {
    return row.totals + position * element_bytes();
  }

  WindowRow row_;
  CopyLoops copy_;
  int64_t value_bytes_;
  std::array<Dim, kMaxWindowRank> dims_{};
  int across_ = 0;  // the row's dimension
  int64_t lanes_ = 1, outer_ = 1;
  bool gathers_ = false;
  int64_t block_ = 1, blocks_ = 1;  // positions of a unit, and units of a row
};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildWindowRows(const OpDescription& op,
                                                const std::vector<WindowDim>& window,
                                                WindowFunction function,
                                                const BuildContext& context) {
  constexpr auto kFindRow = FUSELITE_SIMD_TABLE(FindWindowRow);
  FUSELITE_ASSIGN_OR_RETURN(auto* const find, kFindRow.Require(context.isa));
  if (!op.tail.empty()) return Unsupported("windows take no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  if (op.outputs[0].elements() == 0) return Unsupported("there is no window");
  const DataType type = op.inputs[0].type;
  const WindowRows rows(op, window, find(type, function), CopyLoopsFor(context.isa));
  return MakeKernel(
      "reduce_window rows " + std::string(DataTypeName(type)) + " " + SimdName(context.isa),
      rows.work(), rows);
}

}  // namespace fuselite::kernels
#endif
