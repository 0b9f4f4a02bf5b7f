// Sliding windows over volumes, by the rules of those over images (kernels/window.h).
#pragma once

#include <array>

#include "kernels/window.h"

namespace fuselite::kernels {

// Depth, height and width.
struct Window3D {
  WindowAxis axes[3];
};

struct WindowRequest3D {
  std::array<int32_t, 3> input, filter, stride, dilation = {1, 1, 1};
  Padding padding = Padding::kValid;
};

// As ResolveWindow().
Result<Window3D> ResolveWindow3D(const WindowRequest3D& request);

}  // namespace fuselite::kernels
