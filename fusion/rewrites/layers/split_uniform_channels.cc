// Image pooling, as in the pyramids of DeepLab and PSPNet: a pixel of features of the whole image
// is repeated at all places, beside other features, before a convolution of 1x1. Its channels are
// multiplied once for each image here, and their sums added to those of the others: DeepLab's
// largest layer has half of its multiply-adds left.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "fusion/match.h"
#include "fusion/rewrites/layers/fold_scale.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/concatenation/concatenation.h"
#include "kernels/window.h"

namespace fuselite::fusion {
namespace {

// Multiply-adds that repay two more steps, the sums of the pixel and the operand of a tail: some
// 3 us of a core with AVX2.
constexpr int64_t kLeastSpared = 150'000;

// The pixel of each image that `value` has at all places, if a node repeats one; else kNone.
ValueId RepeatedPixel(const Graph& graph, ValueId value) {
  const NodeId id = graph.producer(value);
  if (id == kNone || !NothingFollows(graph.node(id))) return kNone;
  const bool repeats = Is(graph, id, "RESIZE_BILINEAR") ||
                       Is(graph, id, "RESIZE_NEAREST_NEIGHBOR") || Is(graph, id, "BROADCAST_TO") ||
                       Is(graph, id, "TILE");
  const ValueId pixel = graph.node(id).inputs[0];
  if (!repeats) return kNone;
  const Shape &from = graph.value(pixel).info.shape, &to = graph.value(value).info.shape;
  const bool one = from.rank() == 4 && to.rank() == 4 && from[0] == to[0] && from[1] == 1 &&
                   from[2] == 1 && from[3] == to[3];
  return one ? pixel : kNone;
}

// Some operands of a concatenation of channels, as values to be joined anew.
struct Side {
  struct Part {
    ValueId value = kNone;
    int64_t first = 0, channels = 0;  // among those of the whole concatenation
  };
  std::vector<Part> parts;
  int64_t channels = 0;  // of all parts

  void Add(const Part& part) {
    parts.push_back(part);
    channels += part.channels;
  }
};

struct Sides {
  Side pixels;                  // in the place of operands that repeat them
  Side rest;                    // the other operands
  std::vector<NodeId> repeats;  // what repeats the pixels
};

// Of a concatenation along another axis all operands are the rest.
Sides FindSides(const Graph& graph, const Node& joined) {
  const int32_t axis = joined.params.as<kernels::ConcatenationParams>().axis;
  const bool of_channels = NothingFollows(joined) && (axis == -1 || axis == 3);
  Sides sides;
  int64_t first = 0;
  for (const ValueId operand : joined.inputs) {
    const int64_t channels = graph.value(operand).info.shape.dim(-1);
    const ValueId pixel = of_channels ? RepeatedPixel(graph, operand) : kNone;
    if (pixel == kNone) {
      sides.rest.Add({operand, first, channels});
    } else {
      sides.pixels.Add({pixel, first, channels});
      sides.repeats.push_back(graph.producer(operand));
    }
    first += channels;
  }
  return sides;
}

// The weights of a convolution of 1x1 for the channels of one side, in the order of its parts.
std::vector<float> PartOf(const std::vector<float>& weights, const Layer& layer, const Side& side) {
  std::vector<float> own;
  own.reserve(static_cast<size_t>(side.channels * layer.outputs));
  for (auto row = weights.begin(); row != weights.end(); row += layer.inputs) {
    for (const Side::Part& part : side.parts) {
      own.insert(own.end(), row + part.first, row + part.first + part.channels);
    }
  }
  return own;
}

class UniformChannels {
 public:
  UniformChannels(Graph& graph, RewriteContext& context, NodeId layer_id, const Layer& layer,
                  NodeId joined, const Sides& sides)
      : graph_(graph),
        context_(context),
        id_(layer_id),
        layer_(layer),
        joined_(joined),
        sides_(sides) {}

  bool Apply() {
    const std::vector<float> weights = WeightsOf(graph_, layer_);
    const Shape out = graph_.value(graph_.node(id_).outputs[0]).info.shape;
    std::vector<Node> nodes;  // before the sum, in their order
    // The bias goes with the pixels: there it is added once.
    const ValueId of_pixels =
        AddLayer(sides_.pixels, weights, Shape({out[0], 1, 1, out[3]}), &nodes);
    nodes.back().op->set_window(nodes.back().params, kernels::Window());
    const ValueId of_rest = AddLayer(sides_.rest, weights, out, &nodes);
    nodes.back().inputs.resize(2);
    Node sum = MakeNode("ADD", {of_rest, of_pixels});
    SetFusedActivation(sum, FusedActivation(graph_.node(id_)));
    sum.outputs = graph_.node(id_).outputs;
    sum.host_nodes = graph_.node(id_).host_nodes;
    const auto is_computed = [&](const Node& node) {
      return context_.Accepts(graph_.Describe(node));
    };
    if (!context_.AcceptsInsteadOf(graph_.Describe(id_), graph_.Describe(nodes.back())) ||
        !std::ranges::all_of(nodes, is_computed) || !is_computed(sum)) {
      return false;
    }
    Record();
    for (Node& node : nodes) graph_.InsertBefore(id_, std::move(node));
    graph_.Replace(id_, std::move(sum));
    graph_.Remove(joined_);
    return true;
  }

 private:
  // The side's channels in one value: its only part, or what a node before the layer joins.
  ValueId Joined(const Side& side, std::vector<Node>* nodes) const {
    const ValueId first = side.parts[0].value;
    if (side.parts.size() == 1) return first;
    Node node = graph_.node(joined_);
    node.inputs.clear();
    for (const Side::Part& part : side.parts) node.inputs.push_back(part.value);
    Shape shape = graph_.value(first).info.shape;
    shape.set(3, static_cast<int32_t>(side.channels));
    node.outputs = {AddShaped(graph_, first, shape)};
    nodes->push_back(std::move(node));
    return nodes->back().outputs[0];
  }

  // The layer over the side's channels alone, without an activation; the value that it makes.
  ValueId AddLayer(const Side& side, const std::vector<float>& weights, const Shape& out,
                   std::vector<Node>* nodes) const {
    Node node = graph_.node(id_);
    node.inputs[0] = Joined(side, nodes);
    Layer layer = layer_;
    layer.weights_shape.set(3, static_cast<int32_t>(side.channels));
    SetWeights(graph_, node, layer, PartOf(weights, layer_, side));
    SetFusedActivation(node, kernels::Activation::kNone);
    node.outputs = {AddShaped(graph_, node.outputs[0], out)};
    nodes->push_back(std::move(node));
    return nodes->back().outputs[0];
  }

  void Record() const {
    std::vector<NodeId> nodes = sides_.repeats;
    nodes.insert(nodes.end(), {joined_, id_});
    context_.Record("multiply channels that all pixels share once", MergeHostNodes(graph_, nodes));
  }

  Graph& graph_;
  RewriteContext& context_;
  const NodeId id_;
  const Layer& layer_;
  const NodeId joined_;
  const Sides& sides_;
};

}  // namespace

bool SplitUniformChannels(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "CONV_2D") || context.precision() == kernels::Precision::kStrict) return false;
  const NodeId joined = OwnProducerIs(graph, graph.node(id).inputs[0], "CONCATENATION");
  if (joined == kNone) return false;
  const Sides sides = FindSides(graph, graph.node(joined));
  if (sides.pixels.parts.empty() || sides.rest.parts.empty()) return false;
  const std::optional<Layer> layer = FindLayer(graph, id);
  if (!layer || layer->weights_per_output != layer->inputs) return false;
  const kernels::Window window = *graph.node(id).op->window(graph.Describe(id));
  const int64_t spared =
      (int64_t{window.y.output} * window.x.output - 1) * sides.pixels.channels * layer->outputs;
  if (!window.unpadded() || spared < kLeastSpared) return false;
  return UniformChannels(graph, context, id, *layer, joined, sides).Apply();
}

}  // namespace fuselite::fusion
