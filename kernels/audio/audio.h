// The custom operators with which speech models begin: a spectrogram of samples, and its
// mel-frequency cepstral coefficients. Both are computed in double and rounded once, as TFLite does
// it.
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

struct SpectrogramParams {
  int64_t window, stride;  // in samples
  bool squared;            // magnitudes squared
};

struct MfccParams {
  float lower_limit, upper_limit;  // in hertz
  int64_t filters, coefficients;
};

}  // namespace fuselite::kernels
