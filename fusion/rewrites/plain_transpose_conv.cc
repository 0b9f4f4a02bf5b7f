// MediaPipe's Convolution2DTransposeBias is a TRANSPOSE_CONV whose output has the size that its own
// padding gives: as that it has emitted kernels and a tail, and is a convolution where it has few
// channels.
#include <cstring>

#include "fusion/match.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"

namespace fuselite::fusion {
namespace {

// The output's shape, as the operand that TRANSPOSE_CONV has for it.
ValueId ShapeConstant(Graph& graph, const Shape& shape) {
  std::vector<std::byte> bytes(shape.dims().size_bytes());
  std::memcpy(bytes.data(), shape.dims().data(), bytes.size());
  return graph.AddConstant({.type = DataType::kInt32, .shape = {shape.rank()}}, bytes,
                           "shape of a transposed convolution");
}

}  // namespace

bool PlainTransposeConv(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "Convolution2DTransposeBias")) return false;
  const Node node = graph.node(id);
  const Shape shape = graph.value(node.outputs[0]).info.shape;
  Node plain = MakeNode("TRANSPOSE_CONV", {ShapeConstant(graph, shape), node.inputs[1],
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
