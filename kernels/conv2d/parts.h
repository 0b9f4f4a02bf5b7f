// A dilated convolution as several, of the outputs whose windows have the same taps inside of the
// image.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/product/description.h"
#include "kernels/window.h"

namespace fuselite::kernels {

// Where many taps of `window` meet padding, as those of DeepLab's head do (33x33 pixels, dilations
// of 6 to 18: up to half of them), a part for each set of taps that lie inside: products that leave
// the others out. They read the padded images, and have weights of their own. Else one part, of the
// whole. `channels_in` are those of a tap.
std::vector<ProductPart> PartsByTaps(const Window& window, int64_t images, int64_t channels_in);

}  // namespace fuselite::kernels
