// Which rewrites run, in which order. What recognizes a composite stands before what would take it
// apart; folding into weights before fusing into the tail, as it costs nothing at run time.
#include <cassert>

#include "fusion/rewrites/rewrites.h"
#include "fusion/validate.h"

namespace fuselite::fusion {
namespace {

constexpr RewriteFunction kRewrites[] = {
    FoldConstants,         //
    RemoveIdentity,        //
    MergeReshapes,         //
    SinkDequantize,        //
    TabulateBytes,         //
    RecognizeSilu,         //
    RecognizeHardSwish,    //
    RecognizeHardSigmoid,  //
    RecognizeGelu,         //
    RecognizeLayerNorm,    //
    RecognizeAttention,    //
    FoldPadding,           //
    FoldScaleAfter,        //
    FoldScaleBefore,       //
    FuseIntoTail,          //
    GateIntoWeights,       //
};

// Each round works on what the one before left; patterns nest a few levels deep at most.
constexpr int kMaxRounds = 8;

}  // namespace

std::span<const RewriteFunction> AllRewrites() { return kRewrites; }

int RunRewrite(RewriteFunction rewrite, Graph& graph, RewriteContext& context) {
  const std::vector<NodeId> order(graph.order().begin(), graph.order().end());
  int changes = 0;
  Uses uses(graph);
  for (NodeId id : order) {
    if (!graph.alive(id) || !rewrite(graph, uses, id, context)) continue;
    assert(Validate(graph).ok());
    uses = Uses(graph);
    ++changes;
  }
  return changes;
}

void RunRewrites(Graph& graph, RewriteContext& context) {
  for (int round = 0; round < kMaxRounds; ++round) {
    int changes = RemoveDeadNodes(graph);
    for (RewriteFunction rewrite : kRewrites) changes += RunRewrite(rewrite, graph, context);
    if (changes == 0) return;
  }
}

}  // namespace fuselite::fusion
