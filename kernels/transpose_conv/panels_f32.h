// The filters of a transposed convolution's phases as panels of float32 products.
#pragma once

#include <vector>

#include "kernels/gemm/gemm_f32.h"
#include "kernels/transpose_conv/phases.h"

namespace fuselite::kernels {

inline Status InitPanelsF32(const TransposeConvShape& shape, const GemmF32& gemm,
                            TransposeConvPhases* phases) {
  return phases->Init(shape, [&](int64_t depth) {
    return static_cast<int64_t>(gemm.PackedBytes(depth, shape.channels_out) / sizeof(float));
  });
}

// Writes phases.values() floats. `weights` gives element i of the filters, of any type.
template <class Weights>
void PackPhasesF32(const TransposeConvPhases& phases, const GemmF32& gemm, const Weights& weights,
                   float* to) {
  const int64_t columns = phases.shape().channels_out;
  phases.ForEach([&](const TransposeConvPhases::Phase& phase, int32_t ry, int32_t rx) {
    const auto dense = phases.template Dense<float>(phase, ry, rx, weights);
    const int64_t depth = phases.DepthOf(phase);
    PackPanelsF32({.base = dense.data(),
                   .k_stride = 1,
                   .n_stride = depth,
                   .depth = depth,
                   .columns = columns},
                  gemm.panel, 0, gemm.panels(columns), to + phase.offset);
  });
}

}  // namespace fuselite::kernels
