// Operators of one input, or of two that broadcast, from a function of values of any type.
#pragma once

#include <string>

#include "kernels/elementwise/broadcast.h"
#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"

namespace fuselite::kernels {

// out = function(x, y), element by element, any rows pitched.
template <class In, class Out, class F>
std::unique_ptr<Kernel> MakeTypedMap(const OpDescription& op, F function) {
  const BroadcastPlan plan({&op.inputs[0], &op.inputs[1], &op.outputs[0]}, /*keep_rows=*/false);
  return MakeKernel(std::string(op.op->name) + " " + std::string(DataTypeName(op.inputs[0].type)),
                    {.units = plan.units(), .grain = GrainFor(plan.unit_elements())},
                    [plan, function](const KernelArgs& args, int64_t begin, int64_t end) {
                      plan.ForEach(begin, end, [&](const BroadcastPlan::Piece& piece) {
                        const auto* x = static_cast<const In*>(args.inputs[0]) + piece.offsets[0];
                        const auto* y = static_cast<const In*>(args.inputs[1]) + piece.offsets[1];
                        auto* out = static_cast<Out*>(args.outputs[0]) + piece.offsets[2];
                        const int x_stride = plan.stride(0), y_stride = plan.stride(1);
                        for (int64_t i = 0; i < piece.count; ++i) {
                          out[i] = static_cast<Out>(function(x[i * x_stride], y[i * y_stride]));
                        }
                      });
                    });
}

// out = function(x), element by element, any rows pitched.
template <class In, class Out, class F>
std::unique_ptr<Kernel> MakeTypedUnaryMap(const OpDescription& op, F function) {
  const BroadcastPlan plan({&op.inputs[0], &op.outputs[0]}, /*keep_rows=*/false);
  return MakeKernel(std::string(op.op->name) + " " + std::string(DataTypeName(op.inputs[0].type)),
                    {.units = plan.units(), .grain = GrainFor(plan.unit_elements())},
                    [plan, function](const KernelArgs& args, int64_t begin, int64_t end) {
                      plan.ForEach(begin, end, [&](const BroadcastPlan::Piece& piece) {
                        const auto* x = static_cast<const In*>(args.inputs[0]) + piece.offsets[0];
                        auto* out = static_cast<Out*>(args.outputs[0]) + piece.offsets[1];
                        for (int64_t i = 0; i < piece.count; ++i) out[i] = function(x[i]);
                      });
                    });
}

// The shape rule of operators of two inputs. No tail.
inline Status InferTypedMap(OpDescription& op, DataType output) {
  if (!op.tail.empty()) return Unsupported("does not take a tail behind ", op.op->name);
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape,
                            BroadcastShapes(op.inputs[0].shape, op.inputs[1].shape));
  return SetOutput(op, 0, output, shape);
}

}  // namespace fuselite::kernels
