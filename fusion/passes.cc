// Which rewrites run, in which order. What recognizes a composite stands before what would take it
// apart; folding into weights before fusing into the tail, as it costs nothing at run time.
#include <cassert>

#include "fusion/rewrites/rewrites.h"
#include "fusion/validate.h"

namespace fuselite::fusion {
namespace {

constexpr RewriteFunction kRewrites[] = {
    KeepWeightsSmall,       //
    FoldConstants,          //
    RemoveIdentity,         //
    MergeReshapes,          //
    MergeTransposes,        //
    RegroupConvolution,     //
    PlainTransposeConv,     //
    SinkDequantize,         //
    TabulateBytes,          //
    SumDequantized,         //
    RecognizeSilu,          //
    RecognizeHardSwish,     //
    RecognizeHardSigmoid,   //
    RecognizeGelu,          //
    RecognizePrelu,         //
    RecognizeLayerNorm,     //
    RecognizeRmsNorm,       //
    RecognizeRotary,        //
    MoveRotaryAhead,        //
    RecognizeAttention,     //
    CachesIntoAttention,    //
    HeadsIntoAttention,     //
    JoinProjections,        //
    SinkTranspose,          //
    SinkReshape,            //
    FoldPadding,            //
    FoldScaleAfter,         //
    FoldScaleBefore,        //
    FuseIntoTail,           //
    GateIntoWeights,        //
    TransposeConvInBlocks,  //
};

// Each round works on what the one before left; patterns nest a few levels deep at most.
constexpr int kMaxRounds = 8;

}  // namespace

std::span<const RewriteFunction> AllRewrites() { return kRewrites; }

int RunRewrite(RewriteFunction rewrite, Graph& graph, RewriteContext& context) {
  int changes = 0;
  for (NodeId id : graph.order()) {
    if (graph.alive(id) && rewrite(graph, id, context)) ++changes;
  }
  assert(Validate(graph).ok());
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
