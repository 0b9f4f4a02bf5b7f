// ResNet's stages begin with convolutions of 1x1 that step over every second row and column: of
// what the stage before gives, the residual sum and the layers that it adds, three pixels of four
// are read by nobody. There the layers before take the step, and compute a quarter.
#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/window.h"
#include "runtime/support/ceil_div.h"

namespace fuselite::fusion {
namespace {

// Images of which the rows and columns 0, step, 2 step, ... are read.
struct Step {
  int32_t y = 1, x = 1;
  friend bool operator==(const Step&, const Step&) = default;
};

// The images without what is stepped over.
Shape Kept(Shape shape, const Step& step) {
  shape.set(1, static_cast<int32_t>(CeilDiv(shape[1], step.y)));
  shape.set(2, static_cast<int32_t>(CeilDiv(shape[2], step.x)));
  return shape;
}

// With what step the node reads `value`, if it reads nothing else of it.
std::optional<Step> StepOf(const Graph& graph, const Consumers::Reader& reader, ValueId value) {
  const Node& node = graph.node(reader.node);
  if (node.op->window == nullptr || node.inputs[0] != value || reader.inputs > 1) {
    return std::nullopt;
  }
  // Said first, as it is so of most layers.
  const Shape& in = graph.value(value).info.shape;
  const Shape& out = graph.value(node.outputs[0]).info.shape;
  if (in[1] == out[1] && in[2] == out[2]) return std::nullopt;
  const kernels::Window window = *node.op->window(graph.Describe(reader.node));
  // The range of what is read is also that of what is stepped over.
  if (window.taps() != 1 || !window.unpadded() || HasDynamicRange(graph, node)) {
    return std::nullopt;
  }
  return Step{window.y.stride, window.x.stride};
}

// The step with which every reader of `value` reads it.
std::optional<Step> CommonStep(const Graph& graph, ValueId value) {
  std::optional<Step> common;
  for (const Consumers::Reader& reader : graph.consumers(value)) {
    const std::optional<Step> step = StepOf(graph, reader, value);
    if (!step || (common && *common != *step)) return std::nullopt;
    common = step;
  }
  return common;
}

// How an operand of an elementwise node meets the pixels of its result.
enum class Meets { kEach, kAllAlike, kOtherwise };

Meets HowMeets(const Shape& operand, const Shape& result) {
  const int rank = operand.rank();
  const int32_t rows = rank >= 3 ? operand[rank - 3] : 1;
  const int32_t columns = rank >= 2 ? operand[rank - 2] : 1;
  if (rank == 4 && rows == result[1] && columns == result[2]) return Meets::kEach;
  return rows == 1 && columns == 1 ? Meets::kAllAlike : Meets::kOtherwise;
}

// What is to change so that a value has no pixels but those that are read.
struct Way {
  std::vector<NodeId> nodes;                       // each behind those whose results it reads
  std::vector<std::pair<NodeId, ValueId>> slices;  // values that others read too, and for whom
};

class StrideAhead {
 public:
  StrideAhead(Graph& graph, RewriteContext& context, ValueId value, const Step& step)
      : graph_(graph), context_(context), value_(value), step_(step) {}

  bool Apply() {
    const std::optional<Way> way = WayTo(value_, 0);
    if (!way) return false;
    std::vector<Node> slices;
    for (const auto& [reader, value] : way->slices) slices.push_back(SliceOf(reader, value));
    if (!Accepts(*way, slices)) return false;
    for (size_t i = 0; i < slices.size(); ++i) Insert(std::move(slices[i]), way->slices[i]);
    for (const NodeId id : way->nodes) TakeStep(id);
    context_.Record("compute only the pixels that are read", MergeHostNodes(graph_, way->nodes));
    return true;
  }

 private:
  // nullopt where no layer with a window is reached, which alone repays the slices.
  std::optional<Way> WayTo(ValueId value, int depth) const {
    constexpr int kMostSums = 16;
    const NodeId id = graph_.producer(value);
    if (id == kNone || graph_.value(value).observed || depth > kMostSums) return std::nullopt;
    const Node& node = graph_.node(id);
    if (node.outputs.size() != 1 || node.tail_inputs > 0) return std::nullopt;
    if (node.op->window != nullptr) return Way{{id}, {}};
    if (!node.op->elementwise) return std::nullopt;
    Way way;
    for (const ValueId operand : std::set(node.inputs.begin(), node.inputs.end())) {
      const Meets meets =
          HowMeets(graph_.value(operand).info.shape, graph_.value(value).info.shape);
      if (meets == Meets::kOtherwise) return std::nullopt;
      if (meets == Meets::kEach) AddWayTo(operand, id, depth + 1, way);
    }
    if (way.nodes.empty()) return std::nullopt;
    way.nodes.push_back(id);
    return way;
  }

  void AddWayTo(ValueId operand, NodeId reader, int depth, Way& way) const {
    std::optional<Way> more;
    if (graph_.SingleConsumer(operand) == reader) more = WayTo(operand, depth);
    if (!more) {
      way.slices.emplace_back(reader, operand);
      return;
    }
    way.nodes.insert(way.nodes.end(), more->nodes.begin(), more->nodes.end());
    way.slices.insert(way.slices.end(), more->slices.begin(), more->slices.end());
  }

  // STRIDED_SLICE of what the step keeps of `value`, which is not in the graph yet.
  Node SliceOf(NodeId reader, ValueId value) const {
    const Shape shape = graph_.value(value).info.shape;
    const std::array begin = {0, 0, 0, 0}, strides = {1, step_.y, step_.x, 1};
    Node slice = MakeNode("STRIDED_SLICE", {value, AddInts(graph_, begin, "begin"),
                                            AddInts(graph_, shape.dims(), "end"),
                                            AddInts(graph_, strides, "strides")});
    slice.outputs = {AddShaped(graph_, value, Kept(shape, step_))};
    slice.host_nodes = graph_.node(reader).host_nodes;
    return slice;
  }

  // Lets the reader of a value read its slice.
  void Insert(Node slice, const std::pair<NodeId, ValueId>& read) {
    const auto& [reader, value] = read;
    Node node = graph_.node(reader);
    std::ranges::replace(node.inputs, value, slice.outputs[0]);
    graph_.InsertBefore(reader, std::move(slice));
    graph_.Replace(reader, std::move(node));
  }

  // The operation of one of the way's nodes, for what the step keeps.
  kernels::OpDescription Stepped(NodeId id) const {
    kernels::OpDescription op = graph_.Describe(id);
    const Shape result = op.outputs[0].shape;
    op.outputs[0].shape = Kept(result, step_);
    if (op.op->window != nullptr) {
      kernels::Window window = *op.op->window(op);
      window.y.stride *= step_.y;
      window.x.stride *= step_.x;
      op.op->set_window(op.params, window);
      return op;
    }
    for (TensorInfo& operand : op.inputs) {
      if (HowMeets(operand.shape, result) == Meets::kEach) {
        operand.shape = Kept(operand.shape, step_);
      }
    }
    return op;
  }

  // The operation of a node that reads the value, which now has only what the step keeps.
  kernels::OpDescription Following(NodeId id) const {
    kernels::OpDescription op = graph_.Describe(id);
    op.inputs[0].shape = Kept(op.inputs[0].shape, step_);
    op.op->set_window(op.params, kernels::Window());
    return op;
  }

  bool Accepts(const Way& way, const std::vector<Node>& slices) const {
    const auto steps = [&](NodeId id) {
      const kernels::OpDescription before = graph_.Describe(id);
      return context_.AcceptsComposite(Stepped(id), &before);
    };
    const auto follows = [&](const Consumers::Reader& reader) {
      const kernels::OpDescription before = graph_.Describe(reader.node);
      return context_.AcceptsComposite(Following(reader.node), &before);
    };
    const auto is_computed = [&](const Node& slice) {
      return context_.AcceptsComposite(graph_.Describe(slice));
    };
    return std::ranges::all_of(way.nodes, steps) &&
           std::ranges::all_of(graph_.consumers(value_), follows) &&
           std::ranges::all_of(slices, is_computed);
  }

  // Puts the stepping operation in the place of one of the way's nodes, and lets those that read
  // its result follow.
  void TakeStep(NodeId id) {
    Node node = graph_.node(id);
    const ValueId whole = node.outputs[0];
    const kernels::OpDescription stepped = Stepped(id);
    const ValueId kept = AddShaped(graph_, whole, stepped.outputs[0].shape);
    node.params = stepped.params;
    node.outputs = {kept};
    graph_.Replace(id, std::move(node));
    graph_.ReplaceUses(whole, kept);
    if (whole != value_) return;
    const Consumers followers = graph_.consumers(kept);
    for (const Consumers::Reader& reader : followers) {
      Node follower = graph_.node(reader.node);
      follower.op->set_window(follower.params, kernels::Window());
      graph_.Replace(reader.node, std::move(follower));
    }
  }

  Graph& graph_;
  RewriteContext& context_;
  const ValueId value_;
  const Step step_;
};

}  // namespace

bool MoveStrideAhead(Graph& graph, NodeId id, RewriteContext& context) {
  if (graph.node(id).op->window == nullptr) return false;
  const ValueId value = graph.node(id).inputs[0];
  const std::optional<Step> step = CommonStep(graph, value);
  return step && StrideAhead(graph, context, value, *step).Apply();
}

}  // namespace fuselite::fusion
