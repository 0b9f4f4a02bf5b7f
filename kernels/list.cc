// One line per operator: the function <Name>Operator() that its folder defines.
#include "kernels/operator.h"

// clang-format off
#define FUSELITE_OPERATORS(X) \
  X(BatchMatMul) \
  X(BatchToSpaceNd) \
  X(BroadcastTo) \
  X(Concatenation) \
  X(Conv2D) \
  X(DepthToSpace) \
  X(DepthwiseConv2D) \
  X(ExpandDims) \
  X(FullyConnected) \
  X(MirrorPad) \
  X(Pack) \
  X(Pad) \
  X(PadV2) \
  X(Reshape) \
  X(ReverseSequence) \
  X(ReverseV2) \
  X(Slice) \
  X(Softmax) \
  X(SpaceToBatchNd) \
  X(SpaceToDepth) \
  X(Split) \
  X(SplitV) \
  X(Squeeze) \
  X(StridedSlice) \
  X(Tile) \
  X(Transpose) \
  X(Unpack)
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
