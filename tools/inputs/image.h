// JPEG, PNG and BMP files as a model's input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/support/status.h"
#include "tools/inputs/npy.h"

namespace fuselite::tools {

// Whether the name ends as an image's does: .jpg, .jpeg, .png or .bmp, in either case.
bool IsImageName(const std::string& path);

// What an input wants of an image.
struct ImageRequest {
  DataType type = DataType::kNone;  // float32, uint8 or int8
  std::vector<int32_t> shape{};     // [N, H, W, C] or [H, W, C]; -1: as the image has it, N then 1
  double low = -1, high = 1;        // what floats lie between
};

// The image in that shape. Channels: 1 is grey, 3 RGB, 4 RGBA; -1 counts as 3. An image of another
// size is stretched, by bilinear interpolation between the nearest four pixels from centre to
// centre, without a low-pass filter: what TensorFlow Lite's image tools do. Each of N images is the
// same. uint8 gets the bytes, int8 the bytes less 128 (how 8-bit image models are quantized),
// float32 low + byte / 255 * (high - low).
// Errors name the file: one that cannot be read, is no image or has more than 2^26 pixels; a type
// or shape that no image has.
Result<Array> ReadImage(const std::string& path, const ImageRequest& request);

}  // namespace fuselite::tools
