// One line per operator: the function <Name>Operator() that its folder defines.
#include "kernels/operator.h"

// clang-format off
#define FUSELITE_OPERATORS(X) \
  X(Abs) \
  X(Add) \
  X(ArgMax) \
  X(ArgMin) \
  X(Attention) \
  X(AveragePool2D) \
  X(BatchMatMul) \
  X(BatchToSpaceNd) \
  X(BroadcastTo) \
  X(Cast) \
  X(Ceil) \
  X(Concatenation) \
  X(Conv2D) \
  X(Cos) \
  X(Cumsum) \
  X(DepthToSpace) \
  X(DepthwiseConv2D) \
  X(Dequantize) \
  X(Div) \
  X(Elementwise) \
  X(Elu) \
  X(EmbeddingLookup) \
  X(Equal) \
  X(Exp) \
  X(ExpandDims) \
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
  X(L2Normalization) \
  X(L2Pool2D) \
  X(LayerNorm) \
  X(LeakyRelu) \
  X(Less) \
  X(LessEqual) \
  X(Log) \
  X(LogSoftmax) \
  X(LogicalAnd) \
  X(LogicalNot) \
  X(LogicalOr) \
  X(Logistic) \
  X(Lstm) \
  X(MaxPool2D) \
  X(Maximum) \
  X(Mean) \
  X(Minimum) \
  X(MirrorPad) \
  X(Mul) \
  X(Neg) \
  X(NotEqual) \
  X(OneHot) \
  X(Pack) \
  X(Pad) \
  X(PadV2) \
  X(Pow) \
  X(Prelu) \
  X(Quantize) \
  X(Range) \
  X(Rank) \
  X(ReduceAll) \
  X(ReduceAny) \
  X(ReduceMax) \
  X(ReduceMin) \
  X(ReduceProd) \
  X(Relu) \
  X(Relu0To1) \
  X(Relu6) \
  X(ReluN1To1) \
  X(Reshape) \
  X(ResizeBilinear) \
  X(ResizeNearestNeighbor) \
  X(ReverseSequence) \
  X(ReverseV2) \
  X(Round) \
  X(Rsqrt) \
  X(ScatterNd) \
  X(Select) \
  X(SelectV2) \
  X(Shape) \
  X(Sign) \
  X(Sin) \
  X(Slice) \
  X(Softmax) \
  X(SpaceToBatchNd) \
  X(SpaceToDepth) \
  X(Split) \
  X(SplitV) \
  X(Sqrt) \
  X(Square) \
  X(SquaredDifference) \
  X(Squeeze) \
  X(StridedSlice) \
  X(Sub) \
  X(Sum) \
  X(Tanh) \
  X(Tile) \
  X(TopK) \
  X(Transpose) \
  X(TransposeConv) \
  X(UnidirectionalSequenceLstm) \
  X(Unpack) \
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
