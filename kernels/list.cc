// One line per operator: the function <Name>Operator() that its folder defines.
#include "kernels/operator.h"

// clang-format off
#define FUSELITE_OPERATORS(X) \
  X(Abs) \
  X(Add) \
  X(AddN) \
  X(ArgMax) \
  X(ArgMin) \
  X(Atan2) \
  X(Attention) \
  X(AveragePool2D) \
  X(BatchMatMul) \
  X(BatchToSpaceNd) \
  X(BidirectionalSequenceLstm) \
  X(BidirectionalSequenceRnn) \
  X(Bitcast) \
  X(BitwiseXor) \
  X(BlockwiseEmbeddingLookup) \
  X(BlockwiseFullyConnected) \
  X(BroadcastArgs) \
  X(BroadcastTo) \
  X(Bucketize) \
  X(Cast) \
  X(Ceil) \
  X(ComplexAbs) \
  X(Concatenation) \
  X(Conv2D) \
  X(Conv3D) \
  X(Conv3DTranspose) \
  X(Convolution2DTransposeBias) \
  X(Cos) \
  X(Cumsum) \
  X(Densify) \
  X(DepthToSpace) \
  X(DepthwiseConv2D) \
  X(Dequantize) \
  X(DetectionPostProcess) \
  X(Dilate) \
  X(Div) \
  X(DynamicUpdateSlice) \
  X(Elementwise) \
  X(Elu) \
  X(EmbeddingLookup) \
  X(EmbeddingLookupSparse) \
  X(Equal) \
  X(Exp) \
  X(ExpandDims) \
  X(FakeQuant) \
  X(Fill) \
  X(Floor) \
  X(FloorDiv) \
  X(FloorMod) \
  X(FullyConnected) \
  X(Gather) \
  X(GatherNd) \
  X(Gelu) \
  X(Greater) \
  X(GreaterEqual) \
  X(HardSwish) \
  X(HashtableLookup) \
  X(Imag) \
  X(L2Normalization) \
  X(L2Pool2D) \
  X(LayerNorm) \
  X(LeakyRelu) \
  X(Less) \
  X(LessEqual) \
  X(LocalResponseNormalization) \
  X(Log) \
  X(LogSoftmax) \
  X(LogicalAnd) \
  X(LogicalNot) \
  X(LogicalOr) \
  X(Logistic) \
  X(Lstm) \
  X(MatrixDiag) \
  X(MatrixSetDiag) \
  X(MaxPool2D) \
  X(MaxPoolingWithArgmax2D) \
  X(MaxUnpooling2D) \
  X(Maximum) \
  X(Mean) \
  X(Minimum) \
  X(MirrorPad) \
  X(Mul) \
  X(Multinomial) \
  X(Neg) \
  X(NonMaxSuppressionV4) \
  X(NonMaxSuppressionV5) \
  X(NotEqual) \
  X(OneHot) \
  X(Pack) \
  X(Pad) \
  X(PadV2) \
  X(Pow) \
  X(Prelu) \
  X(Quantize) \
  X(RandomStandardNormal) \
  X(RandomUniform) \
  X(Range) \
  X(Rank) \
  X(Real) \
  X(ReduceAll) \
  X(ReduceAny) \
  X(ReduceMax) \
  X(ReduceMin) \
  X(ReduceProd) \
  X(ReduceWindow) \
  X(Relu) \
  X(Relu0To1) \
  X(Relu6) \
  X(ReluN1To1) \
  X(Reshape) \
  X(ResizeBilinear) \
  X(ResizeNearestNeighbor) \
  X(ReverseSequence) \
  X(ReverseV2) \
  X(Rfft2d) \
  X(RightShift) \
  X(Rnn) \
  X(Round) \
  X(Rsqrt) \
  X(ScatterNd) \
  X(SegmentSum) \
  X(Select) \
  X(SelectV2) \
  X(Shape) \
  X(Sign) \
  X(Sin) \
  X(Slice) \
  X(Softmax) \
  X(SpaceToBatchNd) \
  X(SpaceToDepth) \
  X(SparseToDense) \
  X(Split) \
  X(SplitV) \
  X(Sqrt) \
  X(Square) \
  X(SquaredDifference) \
  X(Squeeze) \
  X(StablehloAdd) \
  X(StablehloAnd) \
  X(StablehloGather) \
  X(StablehloMaximum) \
  X(StablehloMinimum) \
  X(StablehloMultiply) \
  X(StablehloPad) \
  X(StablehloShiftLeft) \
  X(StridedSlice) \
  X(Sub) \
  X(Sum) \
  X(Svdf) \
  X(Tanh) \
  X(Tile) \
  X(TopK) \
  X(Transpose) \
  X(TransposeConv) \
  X(UnidirectionalSequenceLstm) \
  X(UnidirectionalSequenceRnn) \
  X(Unique) \
  X(Unpack) \
  X(UnsortedSegmentMax) \
  X(UnsortedSegmentMin) \
  X(UnsortedSegmentProd) \
  X(UnsortedSegmentSum) \
  X(Where) \
  X(ZerosLike)
// clang-format on

namespace fuselite::kernels {

#define FUSELITE_DECLARE(name) const OperatorDef& name##Operator();
FUSELITE_OPERATORS(FUSELITE_DECLARE)
#undef FUSELITE_DECLARE

std::span<const OperatorDef* const> AllOperators() {
#define FUSELITE_ENTRY(name) &name##Operator(),
  static const OperatorDef* const kOperators[] = {FUSELITE_OPERATORS(FUSELITE_ENTRY)};
#undef FUSELITE_ENTRY
  return kOperators;
}

}  // namespace fuselite::kernels
