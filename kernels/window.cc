#include "kernels/window.h"

#include <algorithm>

namespace fuselite::kernels {
namespace {

// Positions are computed in int32_t by the kernels: half of its range leaves room for their sums.
constexpr int64_t kMaxExtent = int64_t{1} << 30;

Result<WindowAxis> ResolveAxis(const char* axis, int32_t input, int32_t filter, int32_t stride,
                               int32_t dilation, const WindowRequest& request, int32_t extra_before,
                               int32_t extra_after) {
  if (filter <= 0 || stride <= 0 || dilation <= 0) {
    return InvalidArgument("filter ", filter, ", stride ", stride, " and dilation ", dilation,
                           " along the ", axis, " must be positive");
  }
  if (input < 0 || extra_before < 0 || extra_after < 0) {
    return InvalidArgument("negative ", axis, " or padding");
  }
  const int64_t padded = int64_t{input} + extra_before + extra_after;
  const int64_t reach = (int64_t{filter} - 1) * dilation + 1;
  // A single tap has no neighbour that dilation would move away.
  WindowAxis result{
      .input = input, .filter = filter, .stride = stride, .dilation = filter == 1 ? 1 : dilation};
  int64_t output, before = 0, after = 0;
  if (request.padding == Padding::kSame) {
    output = (padded + stride - 1) / stride;
    const int64_t total = std::max<int64_t>(0, (output - 1) * stride + reach - padded);
    before = total / 2;
    after = total - before;
  } else {
    // As in TFLite the division rounds toward zero: an input that is too small by less than twice
    // the stride has no outputs.
    output = (padded + stride - reach) / stride;
    if (output < 0 && !request.none_in_too_small) {
      return InvalidArgument("a window of ", reach, " does not fit into an input ", axis, " of ",
                             padded);
    }
  }
  if (padded + reach + before + after + stride > kMaxExtent) {
    return Unsupported("an input ", axis, " of ", padded, " with a window of ", reach,
                       " is too large");
  }
  result.output = static_cast<int32_t>(output);
  result.before = static_cast<int32_t>(before + extra_before);
  result.after = static_cast<int32_t>(after + extra_after);
  return result;
}

}  // namespace

int32_t WindowAxis::interior_begin() const {
  return std::min(output, (before + stride - 1) / stride);
}

int32_t WindowAxis::interior_end() const {
  const int32_t room = input - ((filter - 1) * dilation + 1) + before;
  if (room < 0) return interior_begin();
  return std::clamp(room / stride + 1, interior_begin(), output);
}

Result<Window> ResolveWindow(const WindowRequest& r) {
  Window window;
  FUSELITE_ASSIGN_OR_RETURN(window.y, ResolveAxis("height", r.input_h, r.filter_h, r.stride_h,
                                                  r.dilation_h, r, r.extra.top, r.extra.bottom));
  FUSELITE_ASSIGN_OR_RETURN(window.x, ResolveAxis("width", r.input_w, r.filter_w, r.stride_w,
                                                  r.dilation_w, r, r.extra.left, r.extra.right));
  // Negative where the input is too small. LiteRT looks at the width first.
  if (window.x.output < 0) window.x.output = window.y.output = 0;
  window.y.output = std::max(0, window.y.output);
  return window;
}

}  // namespace fuselite::kernels
