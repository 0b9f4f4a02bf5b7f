// Images of one column, and windows over whole rows, as images of one row.
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

// `window` over one line of all rows where windows take whole rows, none of which is padding: their
// taps follow each other. Other windows as they are. For what takes taps in any number of rows.
inline Window WholeRowsAlongOneLine(const Window& window) {
  const auto& [y, x] = window;
  const bool whole = x.output == 1 && x.before == 0 && x.filter == x.input && x.dilation == 1 &&
                     y.dilation == 1 && y.output > 1;
  constexpr int64_t kMost = 1 << 30;
  const int64_t rows = int64_t{y.input} + y.before + y.after + y.stride;
  if (!whole || rows * x.input > kMost) return window;
  return {.y = {.input = 1, .output = 1},
          .x = {.input = y.input * x.input,
                .filter = y.filter * x.input,
                .stride = y.stride * x.input,
                .output = y.output,
                .before = y.before * x.input,
                .after = y.after * x.input}};
}

}  // namespace fuselite::kernels
