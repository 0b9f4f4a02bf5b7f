// x [.., C, n] and y [1, .., C, 1], n small -> x and BROADCAST_TO(y, [1, .., C, n]): rows of n
// elements with one value each become rows of C n that all meet the same operand. So has group
// normalization its means: SUB of [1,32,32,32,4] floats and [1,1,1,32,1] takes 11 us instead of 33.
#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"

namespace fuselite::fusion {
namespace {

// Rows of so many elements fill vectors.
constexpr int32_t kLongRow = 48;
// What is drawn out is so small beside the output that making it costs nothing.
constexpr int64_t kMostElements = 16384, kLeastTimes = 8;

// The shape to which an operand is drawn out; nullopt where it would not help.
std::optional<Shape> DrawnOut(const Shape& operand, const Shape& out) {
  if (operand.rank() < 2 || operand.rank() > out.rank() || operand.dim(-1) != 1) {
    return std::nullopt;
  }
  const int32_t n = out.dim(-1);
  if (n < 2 || n >= kLongRow || operand.dim(-2) == 1 || operand.dim(-2) != out.dim(-2)) {
    return std::nullopt;
  }
  Shape shape = operand;
  shape.set(shape.rank() - 1, n);
  const int64_t elements = shape.elements();
  if (elements > kMostElements || elements * kLeastTimes > out.elements()) return std::nullopt;
  return shape;
}

}  // namespace

bool DrawOutOperand(Graph& graph, NodeId id, RewriteContext& context) {
  const Node& read = graph.node(id);
  if (!read.op->elementwise || read.inputs.size() != 2 || !read.tail.empty()) return false;
  const Shape& out = graph.value(read.outputs[0]).info.shape;
  for (size_t i = 0; i < read.inputs.size(); ++i) {
    const std::optional<Shape> shape = DrawnOut(graph.value(read.inputs[i]).info.shape, out);
    if (!shape) continue;
    Node node = read;
    ValueId& operand = node.inputs[i];
    Node drawn = MakeNode("BROADCAST_TO", {operand, AddInts(graph, shape->dims(), "drawn out")});
    drawn.outputs = {operand = AddShaped(graph, operand, *shape)};
    if (!context.AcceptsComposite(graph.Describe(drawn)) ||
        !context.Accepts(graph.Describe(node))) {
      return false;
    }
    drawn.host_nodes = node.host_nodes;
    context.Record(internal::Join("draw out operand of ", node.op->name), node.host_nodes);
    graph.InsertBefore(id, std::move(drawn));
    graph.Replace(id, std::move(node));
    return true;
  }
  return false;
}

}  // namespace fuselite::fusion
