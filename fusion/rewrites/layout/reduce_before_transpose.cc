#include <algorithm>
#include <optional>

#include "fusion/match.h"
#include "fusion/rewrites/layout/meets_transposes.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/reduce/reduce.h"

namespace fuselite::fusion {
namespace {

using Piece = ElementOrder::Piece;

// A reduction of the source in the place of one of what TRANSPOSE made of it: the source reshaped
// to `shape` is reduced along `axes` to `kept`, whose elements are then put in `order`.
struct Reduction {
  ValueId source = kNone;
  Shape shape, kept;
  std::vector<int32_t> axes;
  ElementOrder order{1};
};

// Which dimensions of a value of `rank` the axes are, of which negative ones count from the end.
std::vector<bool> AreAxes(const std::vector<int32_t>& axes, int rank) {
  std::vector<bool> are(static_cast<size_t>(rank));
  for (const int32_t axis : axes) are[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
  return are;
}

// nullopt where shapes cut through what was moved, or where the source's innermost elements would
// be reduced and the node's are not: rows of a few elements take longer than transposing them.
std::optional<Reduction> PlanReduction(const Graph& graph, const Node& node) {
  const TensorInfo& input = graph.value(node.inputs[0]).info;
  const std::optional<Origin> origin = OriginOf(graph, node.inputs[0]);
  if (!origin || origin->order.unchanged()) return std::nullopt;
  const auto dimensions = origin->order.Split(input.shape);
  if (!dimensions) return std::nullopt;
  const auto axes = IntConstant(graph, node.inputs[1]);
  const std::vector<bool> goes = AreAxes(*axes, input.shape.rank());
  std::vector<Piece> all, kept;
  for (size_t d = 0; d < goes.size(); ++d) {
    const std::vector<Piece>& pieces = (*dimensions)[d];
    all.insert(all.end(), pieces.begin(), pieces.end());
    if (!goes[d]) kept.insert(kept.end(), pieces.begin(), pieces.end());
  }
  if (all.size() > Shape::kMaxRank || kept.size() == all.size()) return std::nullopt;
  const auto is_kept = [&](const Piece& piece) {
    return std::ranges::find(kept, piece) != kept.end();
  };
  const bool keeps_innermost = is_kept(all.back());
  std::ranges::sort(all, std::greater(), &Piece::stride);
  if (keeps_innermost && !is_kept(all.back())) return std::nullopt;
  Reduction reduction;
  reduction.source = origin->source;
  std::vector<int32_t> permutation(kept.size());
  for (const Piece& piece : all) {
    const auto size = static_cast<int32_t>(piece.size);
    const auto place = std::ranges::find(kept, piece);
    if (place == kept.end()) {
      reduction.axes.push_back(reduction.shape.rank());
    } else {
      permutation[static_cast<size_t>(place - kept.begin())] = reduction.kept.rank();
      reduction.kept.push_back(size);
    }
    reduction.shape.push_back(size);
  }
  const auto order = ElementOrder::OfTranspose(reduction.kept, permutation);
  if (!order) return std::nullopt;
  reduction.order = *order;
  return reduction;
}

}  // namespace

bool ReduceBeforeTranspose(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Reduces(graph.node(id))) return false;
  const std::optional<Reduction> reduction = PlanReduction(graph, graph.node(id));
  if (!reduction) return false;
  Node node = graph.node(id);
  const ValueId out = node.outputs[0];
  const std::vector<int> host_nodes = node.host_nodes;
  const ValueId source = AddShaped(graph, reduction->source, reduction->shape);
  node.inputs = {source, AddInts(graph, reduction->axes, "axes")};
  node.params.as<kernels::ReduceParams>().keep_dims = false;
  const ValueId kept = AddShaped(graph, out, reduction->kept);
  node.outputs = {kept};
  if (!context.AcceptsInsteadOf(graph.Describe(id), graph.Describe(node))) return false;
  context.Record(internal::Join("move TRANSPOSE behind ", node.op->name),
                 HostNodesWithChains(graph, id));
  InsertReshape(graph, id, reduction->source, source, host_nodes);
  graph.InsertBefore(id, std::move(node));
  graph.Replace(id, Rearranged(graph, id, kept, reduction->order, out, host_nodes));
  return true;
}

}  // namespace fuselite::fusion
