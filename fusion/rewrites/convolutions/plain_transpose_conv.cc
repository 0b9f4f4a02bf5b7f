// MediaPipe's Convolution2DTransposeBias is a TRANSPOSE_CONV whose output has the size that its own
// padding gives: as that it has emitted kernels and a tail, and is a convolution where it has few
// channels.
#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"

namespace fuselite::fusion {

bool PlainTransposeConv(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "Convolution2DTransposeBias")) return false;
  const Node node = graph.node(id);
  const Shape shape = graph.value(node.outputs[0]).info.shape;
  Node plain = MakeNode("TRANSPOSE_CONV", {AddInts(graph, shape.dims(), "shape"), node.inputs[1],
                                           node.inputs[0], node.inputs[2]});
  plain.params = node.params;
  plain.outputs = node.outputs;
  plain.host_nodes = node.host_nodes;
  if (!context.AcceptsComposite(graph.Describe(plain))) return false;
  graph.Replace(id, std::move(plain));
  context.Record("Convolution2DTransposeBias as TRANSPOSE_CONV", node.host_nodes);
  return true;
}

}  // namespace fuselite::fusion
