// The filters of a transposed convolution's phases as panels of float32 products.
#pragma once

#include <cstring>
#include <string_view>
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

// The constant filters, of elements T, packed. `type` tells kernels of other types apart.
template <class T>
Result<PackedWeights> PackFiltersF32(std::string_view type, const TransposeConvPhases& phases,
                                     const GemmF32& gemm, const TensorInfo& filters,
                                     const BuildContext& context) {
  const TransposeConvShape& shape = phases.shape();
  PackRequest request;
  request.source = filters.data;
  request.source_bytes = filters.bytes();
  request.bytes = static_cast<size_t>(phases.values()) * sizeof(float);
  request.layout = internal::Join("transpose_conv ", type, " p", gemm.panel, " ", filters.shape,
                                  " s", shape.window.y.stride, "x", shape.window.x.stride);
  return context.Pack(request, [&](std::byte* to) {
    // The file may have left the constant misaligned.
    std::vector<T> aligned(filters.elements());
    std::memcpy(aligned.data(), filters.data, filters.bytes());
    PackPhasesF32(phases, gemm, aligned, reinterpret_cast<float*>(to));
  });
}

}  // namespace fuselite::kernels
