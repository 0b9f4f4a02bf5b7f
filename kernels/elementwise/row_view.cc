#include "kernels/elementwise/row_view.h"

#include <numeric>

#include "kernels/tail/operands.h"
#include "runtime/support/ceil_div.h"

namespace fuselite::kernels {
namespace {

// How an operand lies beside rows of `channels` values that follow each other.
enum class Pattern { kScalar, kFull, kPerChannel, kOther };

Pattern PatternOf(const TailOperand& y, bool linear, int64_t channels) {
  if (!linear) return Pattern::kOther;
  if (y.row_stride == 0) return y.channel_stride == 0 ? Pattern::kScalar : Pattern::kPerChannel;
  const bool dense = y.row_stride == channels && (y.channel_stride == 1 || channels == 1);
  return dense ? Pattern::kFull : Pattern::kOther;
}

}  // namespace

RowView ChooseRowView(const Tail& tail, bool dense, const ElementwiseGrid& grid, int lanes) {
  if (!dense || grid.pieces > 1) return {};
  RowView view{.flat = true};
  for (const TailStage& stage : tail.stages) {
    if (stage.operand.input < 0) continue;
    const bool linear = TailIsLinear({.stages = {stage}, .rows_per_batch = tail.rows_per_batch});
    switch (PatternOf(stage.operand, linear, grid.channels)) {
      case Pattern::kOther: return {};
      case Pattern::kPerChannel: view.flat = false; break;
      default: break;
    }
  }
  if (view.flat) return view;
  // Rows that fill their vectors to nine tenths are left as they are. A group fills them all, and
  // has four at least.
  const int64_t c = grid.channels, vectors = CeilDiv(c, lanes);
  if (10 * c >= 9 * vectors * lanes) return view;
  view.group = lanes / std::gcd<int64_t>(lanes, c);
  while (view.group * c < 4 * lanes) view.group *= 2;
  if (view.group * 4 > grid.rows) view.group = 1;  // repeating operands costs as much as four rows
  return view;
}

Tail InRowView(Tail tail, const RowView& view) {
  for (TailStage& stage : tail.stages) {
    TailOperand& y = stage.operand;
    if (y.input < 0 || (!view.flat && view.group == 1)) continue;
    if (y.row_stride != 0) y.channel_stride = 1;               // full, be it of one channel
    y.row_stride = view.flat ? 0 : y.row_stride * view.group;  // flat: there is one row
  }
  return tail;
}

}  // namespace fuselite::kernels
