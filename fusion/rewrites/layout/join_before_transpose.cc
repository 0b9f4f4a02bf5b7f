// The skip connections of networks over time that PyTorch's converter writes: several layers' rows
// are each transposed, joined by channels, and transposed back for the next layer.
#include <algorithm>

#include "fusion/match.h"
#include "fusion/rewrites/layout/meets_transposes.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/concatenation/concatenation.h"

namespace fuselite::fusion {
namespace {

using Piece = ElementOrder::Piece;

// One CONCATENATION of the sources, reshaped, in the place of that of what TRANSPOSEs made of them.
struct Joint {
  std::vector<ValueId> sources;
  std::vector<Shape> shapes;
  int axis = -1;
  Shape joined;
  std::vector<int32_t> permutation;  // that then leads to the node's result, reshaped
  ElementOrder order{1};             // the same
};

// nullopt where an input was not transposed, or not as the others were, or is joined along a part
// of what was moved. Whether the sources fit together is the shape rule's to say.
std::optional<Joint> PlanJoint(const Graph& graph, const Node& node) {
  const Shape& out = graph.value(node.outputs[0]).info.shape;
  int axis = node.params.as<kernels::ConcatenationParams>().axis;
  if (axis < 0) axis += out.rank();
  Joint joint;
  for (const ValueId v : node.inputs) {
    const TensorInfo& info = graph.value(v).info;
    const std::optional<Origin> origin = OriginOf(graph, v);
    const auto dimensions = origin ? origin->order.Split(info.shape) : std::nullopt;
    if (!dimensions || (*dimensions)[axis].size() != 1) return std::nullopt;
    const Piece along = (*dimensions)[axis][0];
    std::vector<Piece> pieces;
    for (const auto& own : *dimensions) pieces.insert(pieces.end(), own.begin(), own.end());
    if (pieces.size() > Shape::kMaxRank) return std::nullopt;
    TransposePlan plan = PlanTranspose(pieces);
    const auto place = std::ranges::find(pieces, along) - pieces.begin();
    const int at = plan.permutation[static_cast<size_t>(place)];
    if (joint.sources.empty()) {
      joint.axis = at;
      joint.joined = plan.shape;
      joint.permutation = plan.permutation;
    }
    if (at != joint.axis || plan.permutation != joint.permutation) return std::nullopt;
    joint.sources.push_back(origin->source);
    joint.shapes.push_back(plan.shape);
  }
  joint.joined.set(joint.axis, out[axis]);
  const auto order = ElementOrder::OfTranspose(joint.joined, joint.permutation);
  if (!order || order->unchanged()) return std::nullopt;
  joint.order = *order;
  return joint;
}

}  // namespace

bool JoinBeforeTranspose(Graph& graph, NodeId id, RewriteContext& context) {
  if (!IsBare(graph, id, "CONCATENATION")) return false;
  const std::optional<Joint> joint = PlanJoint(graph, graph.node(id));
  const ValueId out = graph.node(id).outputs[0];
  if (!joint || !MeetsTransposes(graph).From(out)) return false;
  Node node = graph.node(id);
  const std::vector<int> host_nodes = node.host_nodes;
  const ValueId joined = AddShaped(graph, out, joint->joined);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    node.inputs[i] = AddShaped(graph, joint->sources[i], joint->shapes[i]);
  }
  node.outputs = {joined};
  node.params.as<kernels::ConcatenationParams>().axis = joint->axis;
  if (!context.AcceptsInsteadOf(graph.Describe(id), graph.Describe(node))) return false;
  context.Record("move TRANSPOSE behind CONCATENATION", HostNodesWithChains(graph, id));
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    InsertReshape(graph, id, joint->sources[i], node.inputs[i], host_nodes);
  }
  graph.InsertBefore(id, std::move(node));
  graph.Replace(id, Rearranged(graph, id, joined, joint->order, out, host_nodes));
  return true;
}

}  // namespace fuselite::fusion
