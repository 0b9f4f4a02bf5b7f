#include "fusion/plan/rows.h"

#include <algorithm>

#include "fusion/match.h"
#include "kernels/window.h"

namespace fuselite::fusion {
namespace {

// An input's place among what a node reads.
enum class Reading { kRows, kWhole, kOtherwise };

// What is spread over `out` as operators that broadcast do it.
Reading ReadingOfSpread(const Shape& in, const Shape& out, int64_t rows) {
  const int dims = *DimensionsOfRows(out, rows) - (out.rank() - in.rank());
  if (dims <= 0 || in.elements(0, dims) == 1) return Reading::kWhole;
  return in.elements(0, dims) == rows ? Reading::kRows : Reading::kOtherwise;
}

// What a tail's stage reads, of which element is told by strides (TailOperand).
Reading ReadingOfOperand(const kernels::TailOperand& operand, const kernels::Tail& tail,
                         const Shape& in, const Shape& out) {
  const int64_t out_rows = out.elements(0, out.rank() - 1);
  const bool one_batch = tail.rows_per_batch >= out_rows;
  if (operand.row_stride == 0 && (one_batch || operand.batch_stride == 0)) return Reading::kWhole;
  const bool dense = in.elements() == out_rows * operand.row_stride;
  return one_batch && dense ? Reading::kRows : Reading::kOtherwise;
}

// Whether the stage differs by channel, an index of the last dimension.
bool DiffersByChannel(const kernels::TailStage& stage) {
  return stage.operand.input >= 0 || stage.requantize.multipliers.size() > 1 ||
         stage.scales.size() > 1 || stage.real_scales.size() > 1;
}

// Whether the operator's own outputs are computed row by row from its first input.
bool FollowsFirstInput(const Graph& graph, const Node& node, int dims) {
  const int rank = graph.value(node.inputs[0]).info.shape.rank();
  switch (node.op->samples) {
    case kernels::SampleRule::kApartByRows: return dims < rank;
    case kernels::SampleRule::kApartByKept: return true;
    case kernels::SampleRule::kMixed: return false;
    case kernels::SampleRule::kApart: break;
  }
  if (node.op->reshapes) return true;
  // What quantizes by the range of an image looks at all of it.
  if (node.op->window == nullptr || dims >= rank || HasDynamicRange(graph, node)) return false;
  const Result<kernels::Window> window = node.op->window(graph.Describe(node));
  return window.ok() && kernels::PixelsFollow(*window);
}

class Reader {
 public:
  Reader(const Graph& graph, const Node& node, int64_t rows)
      : graph_(graph), node_(node), rows_(rows), out_(ShapeOf(node.outputs[0])) {}

  std::optional<std::vector<bool>> Run() const {
    for (ValueId v : node_.outputs) {
      if (!HasRows(ShapeOf(v), rows_)) return std::nullopt;
    }
    const bool rows_are_channels = *DimensionsOfRows(out_, rows_) == out_.rank();
    if (rows_are_channels && std::ranges::any_of(node_.tail.stages, DiffersByChannel)) {
      return std::nullopt;
    }
    const bool spreads = node_.op->pointwise || node_.op->elementwise;
    if (!spreads && (!IsByRows(node_.inputs[0]) ||
                     !FollowsFirstInput(graph_, node_, DimensionsOf(node_.inputs[0])))) {
      return std::nullopt;
    }
    std::vector<bool> by_rows;
    for (int i = 0; i < static_cast<int>(node_.inputs.size()); ++i) {
      const Reading reading = node_.inputs[i] == kNone ? Reading::kWhole : ReadingOf(i, spreads);
      const bool constant = node_.inputs[i] != kNone && IsConstant(node_.inputs[i]);
      if (reading == Reading::kOtherwise || (constant && reading == Reading::kRows)) {
        return std::nullopt;
      }
      by_rows.push_back(reading == Reading::kRows);
    }
    return by_rows;
  }

 private:
  const Shape& ShapeOf(ValueId v) const { return graph_.value(v).info.shape; }
  bool IsConstant(ValueId v) const { return graph_.value(v).info.constant(); }
  bool IsByRows(ValueId v) const { return !IsConstant(v) && HasRows(ShapeOf(v), rows_); }
  int DimensionsOf(ValueId v) const { return *DimensionsOfRows(ShapeOf(v), rows_); }

  // Precondition: the node has input `i`.
  Reading ReadingOf(int i, bool spreads) const {
    const ValueId v = node_.inputs[i];
    if (i >= static_cast<int>(node_.inputs.size()) - node_.tail_inputs) return ReadingByTail(i);
    if (spreads) return ReadingOfSpread(ShapeOf(v), out_, rows_);
    return i == 0 ? Reading::kRows : Reading::kWhole;
  }

  // Of an operand of the tail, by all stages that read it.
  Reading ReadingByTail(int i) const {
    std::optional<Reading> reading;
    for (const kernels::TailStage& stage : node_.tail.stages) {
      if (stage.operand.input != i) continue;
      const Reading own =
          ReadingOfOperand(stage.operand, node_.tail, ShapeOf(node_.inputs[i]), out_);
      if (reading.value_or(own) != own) return Reading::kOtherwise;
      reading = own;
    }
    const bool has_rows = IsByRows(node_.inputs[i]);
    return reading == Reading::kRows && !has_rows ? Reading::kOtherwise
                                                  : reading.value_or(Reading::kOtherwise);
  }

  const Graph& graph_;
  const Node& node_;
  const int64_t rows_;
  const Shape& out_;
};

}  // namespace

std::optional<int> DimensionsOfRows(const Shape& shape, int64_t rows) {
  int64_t product = 1;
  for (int d = 0; d < shape.rank(); ++d) {
    product *= shape[d];
    if (product == rows) return d + 1;
    if (product == 0 || product > rows) break;
  }
  return std::nullopt;
}

Shape SomeRows(Shape shape, int64_t rows, int32_t some) {
  const int dims = *DimensionsOfRows(shape, rows);
  for (int d = 0; d < dims; ++d) shape.set(d, d + 1 == dims ? some : 1);
  return shape;
}

std::optional<std::vector<bool>> InputsByRows(const Graph& graph, const Node& node, int64_t rows) {
  return Reader(graph, node, rows).Run();
}

}  // namespace fuselite::fusion
