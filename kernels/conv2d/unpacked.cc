// 1x1 convolutions to a channel, or of floats to two, as masks and heads have them, whose pixels
// and filters are read where they lie.
#include "kernels/conv2d/conv2d.h"
#include "kernels/unpacked/unpacked_product.h"

namespace fuselite::kernels {

bool ReadsFiltersUnpacked(const OpDescription& op) {
  // A panel has at least 8 channels. From these depths on vectors along the terms take less time
  // than filling a lane or two of it: 128x128x64 to one channel 55 us instead of 147 (Zen 5).
  constexpr int64_t kDeepOfOne = 16, kDeepOfTwo = 64;
  const Result<Conv2DShape> resolved = ResolveConv2D(op);
  if (!resolved.ok()) return false;
  const Conv2DShape& shape = *resolved;
  const auto& [y, x] = shape.window;
  const bool pixel_by_pixel =
      shape.window.taps() == 1 && shape.window.unpadded() && y.stride == 1 && x.stride == 1;
  const TensorInfo &in = op.inputs[0], &filters = op.inputs[1];
  const bool dense = in.row_pitch == 0 && filters.row_pitch == 0;
  if (!dense || !pixel_by_pixel || shape.groups != 1 || in.type != filters.type) return false;
  if (in.type != DataType::kFloat32) return ReadsOneUnitOfBytes(op, shape.pixels_out());
  return (shape.channels_out == 1 && shape.channels_in >= kDeepOfOne) ||
         (shape.channels_out == 2 && shape.channels_in >= kDeepOfTwo);
}

Result<std::unique_ptr<Kernel>> BuildConv2DUnpacked(const OpDescription& op, Isa isa) {
  FUSELITE_ASSIGN_OR_RETURN(const Conv2DShape shape, ResolveConv2D(op));
  const auto& params = op.params.as<Conv2DParams>();
  return MakeUnpackedLayer(
      "conv", op, {.activation = params.activation, .bias_hint = params.quantized_bias_type},
      {.rows = shape.pixels_out(),
       .units = shape.channels_out,
       .depth = shape.channels_in,
       .pitch = shape.channels_in},
      isa);
}

}  // namespace fuselite::kernels
