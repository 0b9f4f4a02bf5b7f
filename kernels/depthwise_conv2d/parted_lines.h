// An image's only line in parts of its columns, for threads to share. Shared by channels instead, a
// thread would read what all of them wrote, 100 KB in 10 microseconds between the cores of a Xeon,
// and so would the step behind it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernels/depthwise_conv2d/line_convolution.h"
#include "kernels/window.h"

namespace fuselite::kernels {

// Some columns of outputs, as the outputs of a window of their own.
struct LinePart {
  int32_t first = 0;        // among the line's outputs
  int32_t first_input = 0;  // the line's pixel from which `window` counts
  Window window;
};

// The parts of the lines of `images` images, from left to right. A single one where there is one
// thread, where the lines suffice for the threads, where images have several rows, and where
// columns are few. Parts that are equally wide and meet no padding have equal windows.
std::vector<LinePart> PartsOfLine(const Window& window, int64_t images, int threads);

// Plans the lines of a window, or of a part's.
using PlanLinesOf =
    std::function<Result<std::shared_ptr<const LineConvolution>>(const Window& window)>;

// The lines of `window` in their parts, or whole where these are not planned alike. Pixels of the
// image are `pixel_bytes` apart.
Result<std::shared_ptr<const LineConvolution>> PlanInParts(const Window& window, int64_t images,
                                                           int64_t pixel_bytes, int threads,
                                                           const PlanLinesOf& plan);

}  // namespace fuselite::kernels
