// Which rewrites run, in which order. What recognizes a composite stands before what would take it
// apart; folding into weights before fusing into the tail, as it costs nothing at run time.
#include <cassert>
#include <vector>

#include "fusion/graph/validate.h"
#include "fusion/rewrites/rewrites.h"

namespace fuselite::fusion {
namespace {

constexpr RewriteFunction kRewrites[] = {
    // Other names, constants, and what changes nothing.
    PlainOperator,
    PixelAsRow,
    KeepWeightsSmall,
    FoldConstants,
    RemoveIdentity,
    // The scores of attention, in the form that its pattern knows.
    TurnProduct,
    DropShiftOfScores,
    MaskByAddition,
    SinkTransposeOfScores,
    // What only moves.
    MergeReshapes,
    MergeTransposes,
    ShareTransposes,
    // Layers under the names of others.
    RegroupConvolution,
    PlainTransposeConv,
    PoolVolumeByImages,
    MeanOfImage,
    // Integers.
    SinkDequantize,
    TabulateBytes,
    SumDequantized,
    // Functions from their parts.
    RecognizeSilu,
    RecognizeHardSwish,
    RecognizeHardSigmoid,
    RecognizeGelu,
    RecognizeGeluByValues,
    RecognizePrelu,
    RecognizeLayerNorm,
    RecognizeRmsNorm,
    RecognizeRotary,
    MoveRotaryAhead,
    // Attention, and what it reads where it lies.
    RecognizeAttention,
    ScaleIntoAttention,
    GroupsIntoAttention,
    CachesIntoAttention,
    MoveSliceAhead,
    HeadsIntoAttention,
    HeadsIntoProducts,
    JoinProjections,
    // Transposes towards others that they cancel with.
    SinkTranspose,
    ReduceBeforeTranspose,
    PadBeforeTranspose,
    JoinBeforeTranspose,
    OrderFilters,
    SinkReshape,
    // Windows and weights.
    FoldPadding,
    MoveStrideAhead,
    SplitUniformChannels,
    FoldScaleAfter,
    FoldScaleBefore,
    // What is left, into tails.
    DrawOutOperand,
    ShareEqual,
    FuseIntoTail,
    GateIntoWeights,
    // Layers to a few channels, with their tails.
    TransposeConvInBlocks,
    ConvolutionInBlocks,
    TransposeVolumeInBlocks,
};

// When nothing else changes: the others look for float32, and for kernels with tails.
constexpr RewriteFunction kLastRewrites[] = {StoreAsBFloat16, ReadWeightsInPlace};

// Each round works on what the one before left; patterns nest a few levels deep at most.
constexpr int kMaxRounds = 8;

// Runs one rewrite over the nodes of `order` that still live; returns the number of changes.
int RunOver(std::span<const NodeId> order, RewriteFunction rewrite, Graph& graph,
            RewriteContext& context) {
  int changes = 0;
  for (NodeId id : order) {
    if (graph.alive(id) && rewrite(graph, id, context)) ++changes;
  }
  assert(Validate(graph).ok());
  return changes;
}

// Round after round, until nothing changes.
void RunRounds(Graph& graph, RewriteContext& context) {
  for (int round = 0; round < kMaxRounds; ++round) {
    int changes = RemoveDeadNodes(graph);
    std::vector<NodeId> order = graph.order();
    for (RewriteFunction rewrite : kRewrites) {
      const int made = RunOver(order, rewrite, graph, context);
      if (made > 0) order = graph.order();
      changes += made;
    }
    if (changes == 0) return;
  }
}

}  // namespace

std::span<const RewriteFunction> AllRewrites() { return kRewrites; }

int RunRewrite(RewriteFunction rewrite, Graph& graph, RewriteContext& context) {
  return RunOver(graph.order(), rewrite, graph, context);
}

void RunRewrites(Graph& graph, RewriteContext& context) {
  RunRounds(graph, context);
  for (RewriteFunction rewrite : kLastRewrites) RunRewrite(rewrite, graph, context);
}

}  // namespace fuselite::fusion
