// RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR: images of another height and width.
#pragma once

#include <vector>

#include "kernels/operator.h"

namespace fuselite::kernels {

// Inputs: NHWC, then [height, width] of the result. Where neither is set, output pixel o is sampled
// at o * in / out; align_corners maps the outermost pixels' centres to each other, at
// o * (in - 1) / (out - 1); half_pixel_centers measures from pixels' centres,
// at (o + 0.5) * in / out - 0.5.
struct ResizeParams {
  bool align_corners;
  bool half_pixel_centers;
};

// The sizes of an inferred resize, in elements. An output without elements has no pixels either,
// however high and wide its shape is.
struct ResizeShape {
  explicit ResizeShape(const OpDescription& op)
      : in_h(op.inputs[0].shape[1]),
        in_w(op.inputs[0].shape[2]),
        out_h(op.outputs[0].elements() ? op.outputs[0].shape[1] : 0),
        out_w(op.outputs[0].elements() ? op.outputs[0].shape[2] : 0),
        channels(op.outputs[0].shape[3]),
        in_pitch(op.inputs[0].pitch()),
        out_pitch(op.outputs[0].pitch()),
        rows(int64_t{op.outputs[0].shape[0]} * out_h) {}

  int32_t in_h, in_w, out_h, out_w;
  int64_t channels;
  int64_t in_pitch, out_pitch;  // from pixel to pixel
  int64_t rows;                 // of the output, over all images
};

// The shape rule of an operator with such parameters: one whose values are interpolated, and one
// that copies pixels, for which the two parameters do not exclude each other.
Status InferInterpolation(OpDescription& op);
Status InferResize(OpDescription& op);

// Input pixels for each output pixel.
float ResizeScale(int32_t in, int32_t out, bool align_corners);

// One coordinate's interpolation: between `low` and `high` with the weight `t` for `high`. At the
// edges of half-pixel sampling t leaves [0, 1] with low == high, as TFLite has it.
struct Tap {
  int32_t low, high;
  float t;
};
std::vector<Tap> BilinearTaps(int32_t in, int32_t out, ResizeParams params);

// A Tap in units of 2^-10, for int8 and int16.
struct FixedTap {
  int32_t low, high;
  int32_t t;
};
std::vector<FixedTap> FixedBilinearTaps(int32_t in, int32_t out, ResizeParams params);

// The input index of each output index.
std::vector<int32_t> NearestTaps(int32_t in, int32_t out, ResizeParams params);

// One unit is one row of the output's pixels; pixels may be pitched. uint8 is interpolated in
// float and rounded half up, int8 and int16 in fixed point, half away from zero, as TFLite's
// reference does.
Result<std::unique_ptr<Kernel>> BuildResizeBilinearReference(const OpDescription&,
                                                             const BuildContext&);
// int8, int16, and uint8 where every weight is a multiple of 1/128, as those of scales by powers of
// two are: the sums are exact then in whatever order. The reference's bits.
Result<std::unique_ptr<Kernel>> BuildResizeBilinearSeparable(const OpDescription&,
                                                             const BuildContext&);
// float32 and uint8; the reference's bits.
Result<std::unique_ptr<Kernel>> BuildResizeBilinearHighway(const OpDescription&,
                                                           const BuildContext&);
// Copies of pixels of any type.
Result<std::unique_ptr<Kernel>> BuildResizeNearest(const OpDescription&, const BuildContext&);

}  // namespace fuselite::kernels
