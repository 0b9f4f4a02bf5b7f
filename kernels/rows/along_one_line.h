// Images of one column as images of one row.
#pragma once

#include <utility>

#include "kernels/window.h"

namespace fuselite::kernels {

// `window` with height and width exchanged where the image, the output and the windows are one
// pixel wide: pixels, outputs and taps lie in memory as before, and make one long line, of which
// tiles take many rows. Other windows as they are.
inline Window AlongOneLine(Window window) {
  const WindowAxis& x = window.x;
  const bool column = x.input == 1 && x.output == 1 && x.filter == 1 && x.before == 0;
  if (column) std::swap(window.y, window.x);
  return window;
}

}  // namespace fuselite::kernels
