// SHAPE, RANK, BROADCAST_ARGS, FILL, ZEROS_LIKE, RANGE, ONE_HOT: tensors made from little or
// nothing.
#pragma once

#include "kernels/movement/movement.h"

namespace fuselite::kernels {

struct ShapeParams {
  DataType out_type;  // int32 or int64
};

// The axis that is added; -1: the innermost.
struct OneHotParams {
  int32_t axis;
};

// SHAPE and RANK: numbers known when the kernel is built.
Result<std::unique_ptr<Kernel>> BuildShapeValue(const OpDescription&, const BuildContext&);

// (dims, dims), vectors of int32 or int64: the dimensions to which both broadcast. Fails when they
// do not.
Result<std::unique_ptr<Kernel>> BuildBroadcastArgs(const OpDescription&, const BuildContext&);

// (dims, value).
Result<Movement> PlanFill(const OpDescription& op);
// All bits zero, whatever the zero point.
Result<Movement> PlanZerosLike(const OpDescription& op);

// (start, limit, delta), constants: start, start + delta, .. up to but without the limit, each
// float the sum of the one before and delta. One unit.
Result<std::unique_ptr<Kernel>> BuildRange(const OpDescription&, const BuildContext&);

// (indices, depth, on, off): output[.., j, ..] = indices[.., ..] == j ? on : off. Dense operands.
Result<std::unique_ptr<Kernel>> BuildOneHot(const OpDescription&, const BuildContext&);

}  // namespace fuselite::kernels
