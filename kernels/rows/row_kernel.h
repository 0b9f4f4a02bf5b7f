// Kernels that map each row of an input to a row of the output: softmax, normalizations.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/make_kernel.h"
#include "kernels/rows/row_tail.h"

namespace fuselite::kernels {

// Rows of floats: `rows` of them, `pitch` floats apart.
struct SourceRows {
  const float* data;
  int64_t pitch, rows;
};
struct ResultRows {
  float* data;
  int64_t pitch;
};

// `body(args, SourceRows, ResultRows)` computes rows of input 0, `together` at most; op.tail
// follows with `apply`. One unit is one row, whose bits must not depend on the others; `weight` is
// what an element costs, 1 being an addition.
template <class Body>
std::unique_ptr<Kernel> MakeRowsKernel(std::string name, const OpDescription& op,
                                       ApplyTailFunction* apply, int weight, int64_t together,
                                       Body body) {
  const TensorInfo& in = op.inputs[0];
  const int64_t channels = in.shape.dim(-1);
  const RowTail tail(op, apply);
  const Work work{.units = channels ? in.elements() / channels : 0,
                  .grain = GrainFor(channels * weight),
                  .scratch_bytes = tail.scratch_bytes(together)};
  return MakeKernel(std::move(name), work,
                    [tail, together, body = std::move(body), pitch = in.pitch()](
                        const KernelArgs& args, int64_t begin, int64_t end) {
                      const auto* x = static_cast<const float*>(args.inputs[0]);
                      for (int64_t row = begin; row < end; row += together) {
                        const int64_t rows = std::min(together, end - row);
                        body(args, SourceRows{x + row * pitch, pitch, rows},
                             ResultRows{tail.Row(args, row), tail.row_pitch()});
                        tail.Finish(args, row, rows);
                      }
                    });
}

// As MakeRowsKernel(), by single rows: `body(args, x, y)`.
template <class Body>
std::unique_ptr<Kernel> MakeRowKernel(std::string name, const OpDescription& op,
                                      ApplyTailFunction* apply, int weight, Body body) {
  return MakeRowsKernel(
      std::move(name), op, apply, weight, 1,
      [body = std::move(body)](const KernelArgs& args, const SourceRows& x, const ResultRows& y) {
        body(args, x.data, y.data);
      });
}

// As MakeRowsKernel(), of other types, without a tail: `body(args, x, y, rows)` has rows of In and
// of Out, which are as far apart as those of the operator's tensors. `scratch_bytes` is what `body`
// needs at args.scratch.
template <class In, class Out, class Body>
std::unique_ptr<Kernel> MakeTypedRowsKernel(std::string name, const OpDescription& op, int weight,
                                            int64_t together, size_t scratch_bytes, Body body) {
  const TensorInfo& in = op.inputs[0];
  const int64_t channels = in.shape.dim(-1);
  const Work work{.units = channels ? in.elements() / channels : 0,
                  .grain = GrainFor(channels * weight),
                  .scratch_bytes = scratch_bytes};
  return MakeKernel(
      std::move(name), work,
      [together, body = std::move(body), pitch = in.pitch(), out_pitch = op.outputs[0].pitch()](
          const KernelArgs& args, int64_t begin, int64_t end) {
        const auto* x = static_cast<const In*>(args.inputs[0]);
        auto* y = static_cast<Out*>(args.outputs[0]);
        for (int64_t row = begin; row < end; row += together) {
          const int64_t rows = std::min(together, end - row);
          body(args, x + row * pitch, y + row * out_pitch, rows);
        }
      });
}

// As MakeTypedRowsKernel(), by single rows: `body(args, x, y)`.
template <class In, class Out, class Body>
std::unique_ptr<Kernel> MakeQuantizedRowKernel(std::string name, const OpDescription& op,
                                               int weight, size_t scratch_bytes, Body body) {
  return MakeTypedRowsKernel<In, Out>(
      std::move(name), op, weight, 1, scratch_bytes,
      [body = std::move(body)](const KernelArgs& args, const In* x, Out* y, int64_t /*rows*/) {
        body(args, x, y);
      });
}

// The shape rule: any type and any rank from 1 up gives its own shape; float32 then has the tail,
// and quantized types have none. The output's type is the input's unless the model states another.
Status InferRowKernel(OpDescription& op);

}  // namespace fuselite::kernels
