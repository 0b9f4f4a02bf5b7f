// What hybrid operators (float32 activations quantized at run time, 8-bit weights) do with their
// integer sums: back to float32, bias, fused activation, tail.
#pragma once

#include "kernels/gemm/output_tail.h"

namespace fuselite::kernels {

struct HybridTail {
  FloatTail tail;
  ChannelValues<float> scales;  // of the weights, one for each channel
  // TFLite rounds sum * (scale * weights_scale), and of CONV_2D with several scales
  // (sum * weights_scale) * scale.
  bool weights_first = false;
  int bias = -1;  // the input that it is, or -1
  TensorInfo output;

  // How much scratch StoreRow needs.
  size_t row_bytes() const { return scales.size() * sizeof(float); }
  // Stores one row of sums: `scale` is the activations'.
  void StoreRow(const KernelArgs& args, int64_t row, const int64_t* sums, float scale,
                float* scratch) const;
};

// For an operator that has product_inputs. Fails on missing or impossible quantization of the
// weights.
Result<HybridTail> MakeHybridTail(const OpDescription& op, Activation activation, int64_t channels);

// One row of sums to float32: to[i] = clamp(real(sums[i]) + bias[i], min, max). `to` may be `sums`.
struct HybridRow {
  const int32_t* sums;
  // Where activations were raised by an offset: the sums of the weights, and what brings it back,
  // sums[i] + offset * weight_sums[i]. Null: they were not.
  const int32_t* weight_sums = nullptr;
  int32_t offset = 0;
  int64_t n;
  float scale;
  const float* scales;  // the weights'
  bool weights_first;
  const float* bias;  // null for none
  float min, max;
  float* to;
};
using HybridRowFunction = void(const HybridRow& row);

// The version for `isa`; null below SSSE3. The same bits as StoreRow.
HybridRowFunction* FindHybridRow(Isa isa);

}  // namespace fuselite::kernels
