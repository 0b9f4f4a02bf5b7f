// Kernels that map each row of a float32 input to a row of the output: softmax, normalizations.
#pragma once

#include <string>
#include <utility>

#include "kernels/make_kernel.h"
#include "kernels/row_tail.h"

namespace fuselite::kernels {

// `body(args, x, y)` computes one row of input 0; op.tail follows with `apply`. One unit is one
// row; `weight` is what an element costs, 1 being an addition.
template <class Body>
std::unique_ptr<Kernel> MakeRowKernel(std::string name, const OpDescription& op,
                                      ApplyTailFunction* apply, int weight, Body body) {
  const TensorInfo& in = op.inputs[0];
  const int64_t channels = in.shape.dim(-1);
  const RowTail tail(op, apply);
  const Work work{.units = channels ? in.elements() / channels : 0,
                  .grain = GrainFor(channels * weight),
                  .scratch_bytes = tail.scratch_bytes()};
  return MakeKernel(std::move(name), work,
                    [tail, body = std::move(body), pitch = in.pitch()](const KernelArgs& args,
                                                                       int64_t begin, int64_t end) {
                      const auto* x = static_cast<const float*>(args.inputs[0]);
                      for (int64_t row = begin; row < end; ++row) {
                        body(args, x + row * pitch, tail.Row(args, row));
                        tail.Finish(args, row);
                      }
                    });
}

// The shape rule: float32 of any rank from 1 up gives its own shape, then the tail.
Status InferRowKernel(OpDescription& op);

}  // namespace fuselite::kernels
