// Windows that move over all dimensions of a tensor, each combined to one element: REDUCE_WINDOW,
// and STABLEHLO_REDUCE_WINDOW, which pads and spreads its input first.
#pragma once

#include <vector>

#include "kernels/operator.h"

namespace fuselite::kernels {

// Values as in the schema.
enum class WindowFunction : int32_t { kUnsupported, kAdd, kMul, kMinimum, kMaximum, kAll, kAny };

struct ReduceWindowParams {
  WindowFunction function;
};

// The window along one dimension of the input, between whose elements lie `base - 1` others, with
// `low` before the first and `high` behind the last; negative ones cut elements off. What lies
// outside of the input has the initial value.
struct WindowDim {
  int64_t size = 1, stride = 1, dilation = 1;
  int64_t base = 1, low = 0, high = 0;

  // Positions of the window in an input of so many elements; kInvalidArgument where what the window
  // moves over is empty though the input is not, or too large.
  Result<int64_t> Positions(int64_t extent) const;
};

inline constexpr int kMaxWindowRank = 6;

// (input, initial value, ...): output[o] = f(.. f(f(initial, x0), x1) ..) over x =
// input[o * stride + w * dilation] for all w of the window in order; one entry of `window` for each
// dimension, at most kMaxWindowRank. Integers wrap around; bool is computed as int8. Dense
// operands.
Result<std::unique_ptr<Kernel>> BuildWindows(const OpDescription& op,
                                             const std::vector<WindowDim>& window,
                                             WindowFunction function);
// The same values, whole rows at a time.
Result<std::unique_ptr<Kernel>> BuildWindowRows(const OpDescription& op,
                                                const std::vector<WindowDim>& window,
                                                WindowFunction function,
                                                const BuildContext& context);
// Sets the output's shape and checks what BuildWindows() relies on.
Status InferWindows(OpDescription& op, const std::vector<WindowDim>& window,
                    WindowFunction function);

// REDUCE_WINDOW's operands: window, strides and dilations are int64 constants with an entry for
// each dimension.
Result<std::unique_ptr<Kernel>> BuildReduceWindow(const OpDescription&, const BuildContext&);
Result<std::unique_ptr<Kernel>> BuildReduceWindowRows(const OpDescription&, const BuildContext&);

}  // namespace fuselite::kernels
