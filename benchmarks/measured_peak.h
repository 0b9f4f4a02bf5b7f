// What one core of this machine can multiply, measured, so that results can be read as a part of
// it.
#pragma once

#include "runtime/cpu.h"

namespace fuselite::benchmarks {

// Billions of float32 operations a second (a multiply-add counts as two) of a loop of nothing but
// fused multiply-adds on the vectors of `isa`; measured once per level. 0 below AVX2.
double FloatPeak(Isa isa);

// The same for 8-bit products, with the dot-product instructions of the level. 0 where it has none.
double Int8Peak(Isa isa);

}  // namespace fuselite::benchmarks
