// 8-bit weights of convolutions and fully connected layers, prepared for products whose activations
// are taken as unsigned.
#pragma once

#include "jit/gemm.h"

namespace fuselite::jit {

struct ByteWeights {
  std::vector<int8_t> values;  // input 1, row by row; of uint8 weights, less 128
  ByteWeightsView view;        // of `values`; without quads
  int64_t sum_bound = 0;       // no sum exceeds it in magnitude, whatever the activations
};

// The weights (input 1) and bias (input 2) of an operator whose input 0 is int8 or uint8, all
// constant. With activations a and their zero point z, sum (a - z) w + bias is
// sum (a + o) w + bias', o being 128 for int8 and 0 for uint8: bias' = bias - (z + o) sum w.
// Refuses weights with a zero point (of uint8 other than 128).
Result<ByteWeights> ReadByteWeights(const kernels::OpDescription& op, int64_t channels);

// Splits the runs of a filter row, in bytes, into steps, the rest of each as a step that overlaps
// the one before, and notes for all rows of the filter which weights the steps take.
void AddByteRuns(const std::vector<DepthRuns::Run>& runs, DepthRuns& depth,
                 ByteWeightsView& weights);

// Null while judging.
Result<PackedWeights> PackByteWeights(const kernels::OpDescription& op, const Gemm& gemm,
                                      const ByteWeights& weights,
                                      const kernels::BuildContext& context);

}  // namespace fuselite::jit
