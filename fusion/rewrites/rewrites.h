// Every rewrite: one file each, named as the function.
#pragma once

#include "fusion/rewrite.h"

namespace fuselite::fusion {

// simplify/: constants, and what need not be computed.

// FULLY_CONNECTED of one row by many constant weights that DEQUANTIZE makes of small integers or
// halves reads these instead; EMBEDDING_LOOKUP of integers, too. Before FoldConstants, which would
// make floats of them.
bool KeepWeightsSmall(Graph&, NodeId, RewriteContext&);

// A node whose inputs are all constant becomes constants, with the bits of the reference. Not where
// that would make much of little (a broadcast of a scalar).
bool FoldConstants(Graph&, NodeId, RewriteContext&);

// FlexSplitV -> SPLIT_V.
bool PlainOperator(Graph&, NodeId, RewriteContext&);

// A node that gives its input unchanged goes away: PAD by nothing, SLICE of everything, TRANSPOSE
// that moves only dimensions of size 1 of equal shape, CAST to its own type, MUL by 1, ADD of 0,
// RESHAPE to the same shape, a table that gives each code itself.
bool RemoveIdentity(Graph&, NodeId, RewriteContext&);

// Equal nodes of the same inputs become one, but elementwise ones that join the only node that
// reads them. Behind what folds a node into the only layer that reads it, and before FuseIntoTail,
// which makes equal layers different.
bool ShareEqual(Graph&, NodeId, RewriteContext&);

// Nodes whose outputs nobody reads; how many went.
int RemoveDeadNodes(Graph&);

// layout/: where elements stand.

// Leaves the last one of RESHAPE, SQUEEZE and EXPAND_DIMS in a row.
bool MergeReshapes(Graph&, NodeId, RewriteContext&);

// TRANSPOSEs and reshapes in a row become one of each, or a reshape alone where nothing moves:
// pairs that cancel, dimensions of size 1, a channel shuffle between two changes of layout.
bool MergeTransposes(Graph&, NodeId, RewriteContext&);

// A TRANSPOSE that puts the same elements in the same order as one before reshapes what that gives.
bool ShareTransposes(Graph&, NodeId, RewriteContext&);

// BATCH_MATMUL that TRANSPOSEs behind it read by columns, or that gives a single one, becomes the
// product of its turned operands in the other order. Not of constants, nor where matrices would
// have to be turned.
bool TurnProduct(Graph&, NodeId, RewriteContext&);

// An elementwise node behind a TRANSPOSE stands before it where another TRANSPOSE, or a reduction,
// follows on every way: the two then meet, and mostly cancel. Also where a layer's tail can take it
// there. Operands by channel are turned with it.
bool SinkTranspose(Graph&, NodeId, RewriteContext&);

// SOFTMAX behind a TRANSPOSE that leaves its rows whole, and the scale and mask between the two,
// stand before it where others follow as for SinkTranspose. Before RecognizeAttention, which takes
// the scores as a product gives them.
bool SinkTransposeOfScores(Graph&, NodeId, RewriteContext&);

// A sum, mean, maximum or minimum of what TRANSPOSE gives reduces the source, and TRANSPOSE puts
// what is left in order, if it still has to.
bool ReduceBeforeTranspose(Graph&, NodeId, RewriteContext&);

// PAD behind a TRANSPOSE stands before it, where others follow as for SinkTranspose.
bool PadBeforeTranspose(Graph&, NodeId, RewriteContext&);

// CONCATENATION of what was transposed alike joins the sources, where others follow as for
// SinkTranspose.
bool JoinBeforeTranspose(Graph&, NodeId, RewriteContext&);

// An elementwise node behind a RESHAPE of what a layer, or another elementwise node, gives stands
// before it, where the layer's tail can take it. Its operands are reshaped.
bool SinkReshape(Graph&, NodeId, RewriteContext&);

// SLICE, SPLIT or UNPACK of packed queries, keys and values behind the TRANSPOSE that moves the
// three to the outside stands before it, where it takes columns of rows, if only attention reads
// them. Before HeadsIntoAttention, which takes the TRANSPOSEs that are then left. All become
// SLICEs, which are made only where kernels as good as the node's compute them in its type.
bool MoveSliceAhead(Graph&, NodeId, RewriteContext&);

// A TRANSPOSE that takes a layer's channels apart (pixel shuffle) finds them in the order in which
// it gives them: the layer's filters are put in it.
bool OrderFilters(Graph&, NodeId, RewriteContext&);

// An operand with one value for each row of a few elements, the same for many such rows, is drawn
// out to whole rows.
bool DrawOutOperand(Graph&, NodeId, RewriteContext&);

// integers/: what stands between quantized values.

// DEQUANTIZE of what is only moved or chosen from (a TRANSPOSE, CONCATENATION, MAX_POOL_2D ...)
// stands behind the operator that does so, which then handles integers: the same values. Not where
// more values would be dequantized than before, as where others read them, too, unless all that
// comes of them is quantized again.
bool SinkDequantize(Graph&, NodeId, RewriteContext&);

// QUANTIZE of a sum of dequantized bytes (the residuals of PyTorch's quantizer) becomes one step,
// with the bits of the three operators. A chain of sums is computed from all of its terms again
// where their float values are read by the next sum, too: bytes are less to read than floats.
bool SumDequantized(Graph&, NodeId, RewriteContext&);

// Elementwise nodes that make an 8-bit value of a single other 8-bit value and scalar constants, on
// whatever ways (x * LOGISTIC(x), a requantization, a float function between DEQUANTIZE and
// QUANTIZE), become one table with the bits of the reference kernels.
bool TabulateBytes(Graph&, NodeId, RewriteContext&);

// functions/: those that TFLite has no operator for, or converters take apart.

// x * LOGISTIC(x) -> SiLU.
bool RecognizeSilu(Graph&, NodeId, RewriteContext&);

// RELU6(x + 3) / 6 -> hard-sigmoid; x times that -> hard-swish.
bool RecognizeHardSigmoid(Graph&, NodeId, RewriteContext&);
bool RecognizeHardSwish(Graph&, NodeId, RewriteContext&);

// GELU by tanh from its parts -> GELU.
bool RecognizeGelu(Graph&, NodeId, RewriteContext&);

// Whatever computes GELU by erf, for which TFLite has no operator, from one value -> GELU.
bool RecognizeGeluByValues(Graph&, NodeId, RewriteContext&);

// SELECT(x > 0, x, x * alpha), RELU(x) - alpha * RELU(-x) -> PRELU, or LEAKY_RELU where alpha is a
// scalar.
bool RecognizePrelu(Graph&, NodeId, RewriteContext&);

// MEAN, SQUARED_DIFFERENCE, MEAN, RSQRT ... -> layer normalization.
bool RecognizeLayerNorm(Graph&, NodeId, RewriteContext&);

// MUL by itself, MEAN, RSQRT, MUL ... -> RMS normalization.
bool RecognizeRmsNorm(Graph&, NodeId, RewriteContext&);

// Products of rows, or of their halves, by cosines and sines -> rotary embedding, in one step.
bool RecognizeRotary(Graph&, NodeId, RewriteContext&);

// A TRANSPOSE that leaves rows whole, or a reshape, before rotary embedding stands behind it: there
// it mostly cancels, and rows are read where a layer leaves them.
bool MoveRotaryAhead(Graph&, NodeId, RewriteContext&);

// attention/: the pattern, and what goes into it.

// ADD of a small number before SOFTMAX goes away.
bool DropShiftOfScores(Graph&, NodeId, RewriteContext&);

// SELECT_V2 of scores or a very low number before SOFTMAX, SUB of a mask, MUL by zeros and ones
// with SUB of large numbers -> ADD of a mask.
bool MaskByAddition(Graph&, NodeId, RewriteContext&);

// BATCH_MATMUL, scale, mask, SOFTMAX, BATCH_MATMUL -> attention, in one step.
bool RecognizeAttention(Graph&, NodeId, RewriteContext&);

// MULs of queries and keys by the root of attention's scale, or of either by a number, go into it.
bool ScaleIntoAttention(Graph&, NodeId, RewriteContext&);

// BROADCAST_TOs of keys and values to all heads of groups before attention go into it.
bool GroupsIntoAttention(Graph&, NodeId, RewriteContext&);

// Attention whose keys and values DEQUANTIZE makes of int8 caches reads these. Before
// HeadsIntoAttention, for which a DEQUANTIZE would be the end of the way to the heads.
bool CachesIntoAttention(Graph&, NodeId, RewriteContext&);

// TRANSPOSEs of [batch, row, head, channel] to [batch, head, row, channel] before attention go into
// it, for queries, keys and values together; what it gives is transposed behind it, which mostly
// cancels.
bool HeadsIntoAttention(Graph&, NodeId, RewriteContext&);

// Two BATCH_MATMULs of bytes with SOFTMAX between them, which no attention takes, and the same
// TRANSPOSEs before them -> FUSELITE_HEADS_MATMULs of the rows in which the heads lie side by side.
// What the second one gives is transposed behind it, which mostly cancels.
bool HeadsIntoProducts(Graph&, NodeId, RewriteContext&);

// convolutions/: those that other operators, or fewer steps, compute faster.

// CONV_2D with a group for each input channel -> DEPTHWISE_CONV_2D, as converters leave it;
// DEPTHWISE_CONV_2D of one channel -> CONV_2D.
bool RegroupConvolution(Graph&, NodeId, RewriteContext&);

// Convolution2DTransposeBias, a custom operator -> TRANSPOSE_CONV.
bool PlainTransposeConv(Graph&, NodeId, RewriteContext&);

// CONV_2D of 1x1 by many constant weights, be they floats or dequantized, of images of one pixel ->
// FULLY_CONNECTED. Before KeepWeightsSmall.
bool PixelAsRow(Graph&, NodeId, RewriteContext&);

// FlexMaxPool3D and FlexAvgPool3D -> MAX_POOL_2D or AVERAGE_POOL_2D over height and width, and one
// over the depth, between reshapes.
bool PoolVolumeByImages(Graph&, NodeId, RewriteContext&);

// AVERAGE_POOL_2D with one window over a large image of floats -> MEAN.
bool MeanOfImage(Graph&, NodeId, RewriteContext&);

// TRANSPOSE_CONV to a few channels -> CONV_2D, DEPTH_TO_SPACE (along lines RESHAPE); of stride 1 ->
// CONV_2D.
bool TransposeConvInBlocks(Graph&, NodeId, RewriteContext&);

// CONV_3D_TRANSPOSE to a few channels -> PAD, CONV_3D, TRANSPOSE between reshapes.
bool TransposeVolumeInBlocks(Graph&, NodeId, RewriteContext&);

// CONV_2D to a few channels -> CONV_2D of blocks of outputs, DEPTH_TO_SPACE (along lines RESHAPE),
// and SLICE where blocks reach beyond. Once: what it makes has strides.
bool ConvolutionInBlocks(Graph&, NodeId, RewriteContext&);

// layers/: what goes into the layers beside it.

// PAD with zeros, or zero points, before a convolution or depthwise convolution becomes its extra
// padding; before a maximum pool, too, where no padded value is below zero.
bool FoldPadding(Graph&, NodeId, RewriteContext&);

// Where windows of one pixel step over the same rows and columns of a value and nobody else reads
// it, the layers that make it, and the elementwise nodes between, take that step: they leave out
// what nobody reads. Other operands of such nodes get a STRIDED_SLICE.
bool MoveStrideAhead(Graph&, NodeId, RewriteContext&);

// Before a float convolution of 1x1, channels that all pixels of an image share (image pooling) are
// multiplied once for each image; their sums become an operand that is added to those of the other
// channels. Before FuseIntoTail, which takes that addition. Not where precision=strict forbids
// another order of sums.
bool SplitUniformChannels(Graph&, NodeId, RewriteContext&);

// MUL, ADD, SUB, DIV by a constant per channel or scalar after a convolution, depthwise
// convolution or fully connected layer goes into its weights and bias: what batch normalization
// leaves. Rounding moves by what scaling a weight costs, half a unit in its last place.
bool FoldScaleAfter(Graph&, NodeId, RewriteContext&);

// MUL by a constant before a convolution, depthwise convolution or fully connected layer goes into
// the weights of its input channels (FoldScaleAfter).
bool FoldScaleBefore(Graph&, NodeId, RewriteContext&);

// Layers with dynamic range, with weights in blocks or with small ones that read the same rows, and
// that only attention reads, or rotary embedding and caches before it, become one and a SPLIT_V,
// which takes addresses alone. So do two of the latter kinds of which one is a gate of the other.
bool JoinProjections(Graph&, NodeId, RewriteContext&);

// A squeeze-excite gate before a 1x1 convolution of one image scales the weights instead of the
// pixels, where those are many more.
bool GateIntoWeights(Graph&, NodeId, RewriteContext&);

// An elementwise node becomes stages in the tail of the node that makes one of its operands: the
// activation, residual, scale or gate after a convolution, and chains of elementwise nodes.
bool FuseIntoTail(Graph&, NodeId, RewriteContext&);

// precision=fast: what a layer gives lies in memory as bfloat16 where its kernel stores that and
// the kernels of all who read it, behind nodes that only move elements, take it.
bool StoreAsBFloat16(Graph&, NodeId, RewriteContext&);

// FULLY_CONNECTED of a single row by many float32 weights of the model reads them where they lie,
// if it is a small part of the graph: the model opens sooner and takes less memory than with a
// packed copy.
bool ReadWeightsInPlace(Graph&, NodeId, RewriteContext&);

}  // namespace fuselite::fusion
