// What this machine can compute and move at most, measured: what results are read as a part of.
#pragma once

#include <cstddef>

#include "runtime/cpu/isa.h"

namespace fuselite::tools {

// Operations a second of a loop of nothing but independent multiply-adds (each counts as two) on
// the vectors of `isa`, which the machine must have; summed over `threads` that run it at once.
// About 20 ms. 0 where the level has no such loop here.
double MeasureFloatPeak(Isa isa, int threads = 1);

// As MeasureFloatPeak(), for products of bfloat16, summed in float32; 0 where no kernel of the
// level has them.
double MeasureBf16Peak(Isa isa, int threads = 1);

// As MeasureFloatPeak(), for products of 8 bits, summed in 32: with the level's dot-product
// instruction, else with the shortest sequence that does its work.
double MeasureInt8Peak(Isa isa, int threads = 1);

// Bytes a second, read and written together, of `threads` that each copy within `bytes` of its own,
// again and again. About 20 ms. `bytes` is at least 1024.
double MeasureCopyBandwidth(size_t bytes, int threads = 1);

}  // namespace fuselite::tools
