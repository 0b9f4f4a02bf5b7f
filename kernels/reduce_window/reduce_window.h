// REDUCE_WINDOW: windows that move over all dimensions of a tensor, each combined to one element.
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

// Values as in the schema.
enum class WindowFunction : int32_t { kUnsupported, kAdd, kMul, kMinimum, kMaximum, kAll, kAny };

struct ReduceWindowParams {
  WindowFunction function;
};

// (input, initial value, window, strides, dilations), the last three int64 constants with an entry
// for each dimension: output[o] = f(.. f(f(initial, x0), x1) ..) over x = input[o * stride + w *
// dilation] for all w of the window in order. Integers wrap around; bool is computed as int8. Dense
// operands, at most 6 dimensions.
Result<std::unique_ptr<Kernel>> BuildReduceWindow(const OpDescription&, const BuildContext&);

}  // namespace fuselite::kernels
