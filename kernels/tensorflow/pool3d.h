// FlexMaxPool3D and FlexAvgPool3D, TensorFlow's pools of volumes: NDHWC, float32, padding left out
// of every window.
#pragma once

#include "kernels/operator.h"
#include "kernels/window3d.h"

namespace fuselite::kernels {

struct Pool3DParams {
  Padding padding;
  int32_t filter[3], stride[3];  // depth, height, width
};

// The windows on an input of 5 dimensions.
Result<Window3D> ResolvePool3D(const OpDescription& op);

// Whether the operator takes maxima, not means.
bool TakesMaxima(const OperatorDef& op);

}  // namespace fuselite::kernels
