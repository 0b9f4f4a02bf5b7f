// Checks of the operands (input, filter, bias) that CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED
// have in common.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/shape_rules.h"
#include "kernels/window.h"

namespace fuselite::kernels {

// Whether the weights, and the bias where there is one, are the same at each run. `bias` < 0: none.
inline bool HasConstants(const OpDescription& op, int weights, int bias) {
  const bool biased = bias >= 0 && op.has_input(bias);
  return op.inputs[weights].constant() && (!biased || op.inputs[bias].constant());
}

// Filters and biases that are no constants must be dense.
inline Status CheckFilterIsDense(const OpDescription& op) { return RequireDenseInputs(op, {1, 2}); }

// TFLite's kernels of int16 activations want a bias of the type that quantized_bias_type names,
// where it names one.
inline Status CheckBiasHint(const OpDescription& op, DataType hint) {
  const bool named = hint == DataType::kInt32 || hint == DataType::kInt64;
  const bool wide = op.inputs[0].type == DataType::kInt16;
  if (!wide || !named || !op.has_input(2) || op.inputs[2].type == hint) return Status();
  return InvalidArgument("a bias of type ", DataTypeName(op.inputs[2].type),
                         " where quantized_bias_type is ", DataTypeName(hint));
}

// TFLite adds a bias as if its scale were that of the products, and refuses one whose step would be
// off by more than 0.02 steps of the output; without a scale it has 0. Nothing is known where a
// tail stands behind an output of another scale.
inline Status CheckBiasScale(const OpDescription& op) {
  if (!op.has_input(2) || !op.tail.empty()) return Status();
  const double product =
      double{op.inputs[0].quantization.scale()} * double{op.inputs[1].quantization.scale()};
  const double bias = op.inputs[2].quantization.scale();
  const double output = op.outputs[0].quantization.scale();
  if (!(std::abs(product - bias) / output > 0.02)) return Status();
  return InvalidArgument("the bias has scale ", bias, ", its products ", product);
}

// One value for each output channel, where there is a bias.
inline Status CheckBias(const OpDescription& op, int64_t channels) {
  if (!op.has_input(2) || op.inputs[2].elements() == channels) return Status();
  return InvalidArgument("bias ", op.inputs[2].shape, " for ", channels, " channels");
}

inline Status CheckImageAndFilter(const OpDescription& op) {
  const Shape& in = op.inputs[0].shape;
  const Shape& filter = op.inputs[1].shape;
  if (in.rank() == 4 && filter.rank() == 4) return CheckFilterIsDense(op);
  return InvalidArgument("input ", in, " and filter ", filter, " must have 4 dimensions");
}

// The window that a filter [.., height, width, ..] slides over an image, by parameters that have
// strides, dilations and paddings. As in TFLite an image has a pixel, and a step fits into 16 bits.
template <class Params>
Result<Window> ResolveFilterWindow(const OpDescription& op) {
  const auto& params = op.params.as<Params>();
  const Shape& in = op.inputs[0].shape;
  const Shape& filter = op.inputs[1].shape;
  if (in[1] == 0 || in[2] == 0) return InvalidArgument("an image of ", in[1], " x ", in[2]);
  if (std::max({params.stride_h, params.stride_w, params.dilation_h, params.dilation_w}) >
      std::numeric_limits<int16_t>::max()) {
    return InvalidArgument("strides and dilations must be at most 32767");
  }
  return ResolveWindow({.input_h = in[1],
                        .input_w = in[2],
                        .filter_h = filter[1],
                        .filter_w = filter[2],
                        .stride_h = params.stride_h,
                        .stride_w = params.stride_w,
                        .dilation_h = params.dilation_h,
                        .dilation_w = params.dilation_w,
                        .padding = params.padding,
                        .extra = params.extra_padding});
}

}  // namespace fuselite::kernels
