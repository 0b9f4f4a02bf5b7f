// SVDF's parameters.
#pragma once

#include <cstdint>

#include "kernels/fields.h"

namespace fuselite::kernels {

struct SvdfParams {
  int32_t rank = 1;
  Activation activation = Activation::kNone;
  bool asymmetric_quantize_inputs = false;
};

}  // namespace fuselite::kernels
