#include "kernels/rows/row_kernel.h"

#include "kernels/check_tail.h"
#include "kernels/shape_rules.h"

namespace fuselite::kernels {

Status InferRowKernel(OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  if (in.shape.rank() < 1) return Unsupported("a scalar has no dimension to normalize over");
  if (op.tail.empty()) {
    return SetOutput(op, 0, op.outputs[0].absent() ? in.type : op.outputs[0].type, in.shape);
  }
  if (in.type != DataType::kFloat32)
    return Unsupported("does not take a tail behind a quantized operator");
  if (op.outputs[0].absent()) op.outputs[0].type = in.type;
  op.outputs[0].shape = in.shape;
  return CheckTail(op, in.type);
}

}  // namespace fuselite::kernels
