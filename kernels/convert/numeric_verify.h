// NumericVerify, a custom operator of models that are being debugged.
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

// Values of uint8, int8, int16 or float16 and as many of float32; the output, of the former's
// shape, is how much larger the dequantized values are.
struct NumericVerifyParams {
  float tolerance;  // in steps of the quantization
  bool fails;       // the run, where a value is further off and the tolerance at least 0.1
};

}  // namespace fuselite::kernels
