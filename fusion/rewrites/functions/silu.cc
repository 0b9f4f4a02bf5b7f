#include "fusion/match.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"

namespace fuselite::fusion {

bool RecognizeSilu(Graph& graph, NodeId id, RewriteContext& context) {
  if (!IsBare(graph, id, "MUL")) return false;
  const Node& mul = graph.node(id);
  for (int i : {0, 1}) {
    const NodeId logistic = OwnProducerIs(graph, mul.inputs[i], "LOGISTIC");
    const ValueId x = mul.inputs[1 - i];
    if (logistic == kNone || graph.node(logistic).inputs[0] != x || !IsFloat(graph, x)) continue;
    kernels::Tail tail;
    tail.stages.push_back(kernels::TailStage::Unary(kernels::UnaryKind::kSilu));
    kernels::AppendActivation(FusedActivation(mul), &tail);
    return ReplacePattern(graph, id, {logistic}, MakeChain(graph, x, std::move(tail.stages)),
                          "recognize SiLU", context);
  }
  return false;
}

}  // namespace fuselite::fusion
