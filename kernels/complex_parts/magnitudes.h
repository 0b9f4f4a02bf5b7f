// Magnitudes of complex numbers.
#pragma once

#include <complex>
#include <cstdint>

#include "runtime/cpu/isa.h"

namespace fuselite::kernels {

// out[i] = |x[i]|, rounded once: C's hypotf, to the bit. In rows of any length.
using MagnitudesFunction = void(const std::complex<float>* x, float* out, int64_t n);

// The version for `isa`; null below SSSE3.
MagnitudesFunction* FindMagnitudes(Isa isa);

}  // namespace fuselite::kernels
