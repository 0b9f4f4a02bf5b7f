// Operators of TensorFlow's that converters leave in a model though TFLite has them, under the
// latter's names, by which the other rewrites know them.
#include <string_view>

#include "fusion/match.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"

namespace fuselite::fusion {
namespace {

// With the same inputs and parameters.
struct Pair {
  std::string_view tensorflow, tflite;
};
constexpr Pair kPairs[] = {{"FlexSplitV", "SPLIT_V"}};

}  // namespace

bool PlainOperator(Graph& graph, NodeId id, RewriteContext& context) {
  for (const Pair& pair : kPairs) {
    if (!Is(graph, id, pair.tensorflow)) continue;
    const Node node = graph.node(id);
    Node plain = MakeNode(pair.tflite, node.inputs);
    plain.params = node.params;
    plain.outputs = node.outputs;
    plain.host_nodes = node.host_nodes;
    if (!context.AcceptsComposite(graph.Describe(plain))) return false;
    graph.Replace(id, std::move(plain));
    context.Record(internal::Join(pair.tensorflow, " as ", pair.tflite), node.host_nodes);
    return true;
  }
  return false;
}

}  // namespace fuselite::fusion
