// FUSELITE_ROTARY: rotary position embedding: each pair of channels half a head apart is turned by
// an angle that depends on the position. Made by rewrites.
#pragma once

#include <string>

#include "kernels/operator.h"

namespace fuselite::kernels {

struct RotaryParams {
  int32_t width;  // of a head; a row may have several of them side by side
};

// Inputs x [..., n * width], cos and sin [..., width / 2] or [..., width], which broadcast to the
// rows of x (in a way that AsTailOperand can say). With h = width / 2, for each head of a row:
//   y[i]     = x[i] * cos[i] - x[i + h] * sin[i]
//   y[i + h] = x[i + h] * cos[j] + x[i] * sin[j]
// where i < h, and j is i, or i + h in tables of the whole width. Each product and each sum is
// rounded, as MUL, SUB and ADD round theirs. float32; rows may be pitched; one unit is one row.
Result<std::unique_ptr<Kernel>> BuildRotaryReference(const OpDescription&, const BuildContext&);
Result<std::unique_ptr<Kernel>> BuildRotaryHighway(const OpDescription&, const BuildContext&);

// One head: `second` is where the tables' entries for its second half begin, 0 or `half`.
using RotateFunction = void(const float* x, const float* cos, const float* sin, int64_t half,
                            int64_t second, float* y);
// Any of both, of which `rotate` does the heads.
Result<std::unique_ptr<Kernel>> MakeRotary(std::string name, const OpDescription& op,
                                           RotateFunction* rotate);

}  // namespace fuselite::kernels
