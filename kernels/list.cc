// One line per operator: the function <Name>Operator() that its folder defines.
#include "kernels/operator.h"

// clang-format off
#define FUSELITE_OPERATORS(X) \
  X(BatchMatMul) \
  X(Concatenation) \
  X(Conv2D) \
  X(DepthwiseConv2D) \
  X(ExpandDims) \
  X(FullyConnected) \
  X(Pack) \
  X(Reshape) \
  X(Slice) \
  X(Softmax) \
  X(Split) \
  X(SplitV) \
  X(Squeeze) \
  X(StridedSlice) \
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
