// Operators of one input, or of two that broadcast, from a function of values of any type.
#pragma once

#include <string>
#include <utility>

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

// map(x, out, n) for n elements of input 0 that follow each other, and their place in the output,
// any rows pitched. An element takes the work of `work` (GrainFor).
template <class In, class Out, class Map>
std::unique_ptr<Kernel> MakeUnaryRows(const OpDescription& op, std::string name, int64_t work,
                                      Map map) {
  const BroadcastPlan plan({&op.inputs[0], &op.outputs[0]}, /*keep_rows=*/false);
  return MakeKernel(
      std::move(name), {.units = plan.units(), .grain = GrainFor(work * plan.unit_elements())},
      [plan, map = std::move(map)](const KernelArgs& args, int64_t begin, int64_t end) {
        plan.ForEach(begin, end, [&](const BroadcastPlan::Piece& piece) {
          map(static_cast<const In*>(args.inputs[0]) + piece.offsets[0],
              static_cast<Out*>(args.outputs[0]) + piece.offsets[1], piece.count);
        });
      });
}

// out = function(x), element by element, any rows pitched.
template <class In, class Out, class F>
std::unique_ptr<Kernel> MakeTypedUnaryMap(const OpDescription& op, F function) {
  return MakeUnaryRows<In, Out>(
      op, std::string(op.op->name) + " " + std::string(DataTypeName(op.inputs[0].type)),
      /*work=*/4, [function](const In* x, Out* out, int64_t n) {
        for (int64_t i = 0; i < n; ++i) out[i] = function(x[i]);
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
