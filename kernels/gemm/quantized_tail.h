// What the quantized matrix-multiplying operators do with their sums: bias, requantization with the
// fused activation's range, tail.
#pragma once

#include "kernels/gemm/wide_row.h"
#include "kernels/operator.h"
#include "kernels/tail/apply.h"

namespace fuselite::kernels {

// The way from integer sums to the output. Sums of 8-bit activations are int32 (wrapping around);
// those of 16-bit activations are int64, or int32 where weights have at most 8 bits and the bias or
// quantized_bias_type is int32.
//
// A tail whose first stage takes int32 (requantize, rescale, dequantize) takes the sums themselves,
// and holds the fused activation's range: this is what rewrites give a product whose own output is
// an intermediate value with a scale that the description does not hold (RequantizeStage makes it).
// Other tails follow the operator's own requantization to outputs[0].
struct QuantizedTail {
  bool wide = false;         // int64 sums
  WideScaling wide_scaling;  // of wide sums
  // From int32 sums; of wide ones, from the int16 values that wide_scaling gives.
  Tail tail;
  DataType source_type = DataType::kInt32;
  DataType bias_type = DataType::kNone;  // kNone: no bias
  TensorInfo output;
  ProductInputs inputs;
  int64_t channels = 0;

  // How much scratch StoreRow needs.
  size_t row_bytes() const { return channels * sizeof(int32_t); }
  // Stores one row of sums without bias. `row` counts rows of the output (TailTile).
  void StoreRow(const KernelArgs& args, int64_t row, const int64_t* sums, std::byte* scratch) const;
  // `rows` of wide sums, int64_t* or int32_t* without bias, with what ScaleWideRows scales them by.
  // `this` must outlive them.
  template <class Sum>
  WideRows WideRowsOf(const KernelArgs& args, const Sum* sums, WideRows rows) const {
    rows.scaling = &wide_scaling;
    const void* biases = bias_type == DataType::kNone ? nullptr : args.inputs[inputs.bias];
    if (bias_type == DataType::kInt64) {
      rows.bias = static_cast<const int64_t*>(biases);
    } else {
      rows.narrow_bias = static_cast<const int32_t*>(biases);
    }
    if constexpr (sizeof(Sum) == sizeof(int64_t)) {
      rows.sums = sums;
    } else {
      rows.narrow_sums = sums;
    }
    return rows;
  }
  // Bias of channel `c`; 0 without one.
  int64_t Bias(const KernelArgs& args, int64_t c) const;
};

// For an operator that has product_inputs. `bias_hint` is the parameters' quantized_bias_type.
// Fails on missing or impossible quantization.
Result<QuantizedTail> MakeQuantizedTail(const OpDescription& op, Activation activation,
                                        DataType bias_hint, int64_t channels);

// Whether MakeQuantizedTail() would fail, for shape rules: without the multipliers of each channel.
Status CheckQuantizedTail(const OpDescription& op, Activation activation, DataType bias_hint,
                          int64_t channels);

// The requantization of an operator with 8-bit activations, from `op` as the model has it (without
// tail), for a rewrite that puts stages behind it.
Result<TailStage> RequantizeStage(const OpDescription& op, Activation activation, int64_t channels);

// Whether zero points are where TFLite's kernels heed them: none of 16-bit activations (nor of
// their output), none of weights with several scales, none of int8 weights unless
// `weights_may_offset`.
Status CheckZeroPoints(const OpDescription& op, bool weights_may_offset);

}  // namespace fuselite::kernels
