// FUSELITE_LAYER_NORM: rows brought to mean 0 and variance 1, or to a mean square of 1 alone (RMS
// normalization), then scaled and shifted by channel. Made by rewrites, and of composites.
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

struct LayerNormParams {
  float epsilon;
  bool keeps_mean;  // counts as 0: RMS normalization
};

// Inputs x [..., C], gamma [C] and beta [C], either of which may be absent (1 and 0):
//   y[r][c] = (x[r][c] - mean[r]) / sqrt(variance[r] + epsilon) * gamma[c] + beta[c]
// with mean[r] = 0 where `keeps_mean`, and with the variance of the differences from the mean, not
// of the squares: large means lose nothing. float32; rows may be pitched; one unit is one row.
Result<std::unique_ptr<Kernel>> BuildLayerNormReference(const OpDescription&, const BuildContext&);
Result<std::unique_ptr<Kernel>> BuildLayerNormHighway(const OpDescription&, const BuildContext&);

}  // namespace fuselite::kernels
