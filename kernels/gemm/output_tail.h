// What the matrix-multiplying operators do with their accumulators: bias, fused activation, tail.
#pragma once

#include "kernels/operator.h"
#include "kernels/tail/apply.h"

namespace fuselite::kernels {

// The way from float32 accumulators to the output: clamp(sum + bias, min, max), then `rest`.
struct FloatTail {
  float min, max;  // of the fused activation, or of a first stage that is a clamp
  Tail rest;       // stages behind the clamp; empty for the most part
};

// For an operator whose parameters hold `activation`. Fails on activations that TFLite's kernels do
// not compute, and on stages that do not fit.
Result<FloatTail> MakeFloatTail(const OpDescription& op, Activation activation);

// Stores one row of accumulators, bias added, through the clamp and the tail. `row` counts rows of
// the output (TailTile). `sums` is overwritten.
void StoreFloatRow(const FloatTail& tail, const KernelArgs& args, const TensorInfo& output,
                   int64_t row, float* sums);

}  // namespace fuselite::kernels
