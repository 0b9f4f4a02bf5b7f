// CONV_3D: (input [n, d, h, w, c], filter [fd, fh, fw, c, k], bias): convolutions of volumes.
// CONV_3D_TRANSPOSE: (shape, filter [fd, fh, fw, k, c], input, bias): what spreads each element of
// the input over a window of the output, whose shape is given. float32.
#pragma once

#include "kernels/operator.h"
#include "kernels/window3d.h"

namespace fuselite::kernels {

struct Conv3DParams {
  Padding padding;
  int32_t stride_d, stride_w, stride_h;
  Activation activation;
  int32_t dilation_d, dilation_w, dilation_h;
};

bool IsConv3DTransposed(const OpDescription& op);

// The filter's windows over `volume` [n, d, h, w, c]: the input, or the output of the transposed
// form.
Result<Window3D> ResolveConv3D(const OpDescription& op, const Shape& volume);

}  // namespace fuselite::kernels
