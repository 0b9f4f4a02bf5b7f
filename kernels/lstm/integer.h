// The int8 form of LSTM, resolved: what its reference and its Highway version share.
#pragma once

#include "kernels/lstm/lstm.h"
#include "kernels/quantization.h"

namespace fuselite::kernels {

// Scales and zero points, as TFLite derives them (in float where it does).
struct IntegerLstm {
  FixedPoint input[kLstmGates], recurrent[kLstmGates];  // sums of products to 12 fractional bits
  FixedPoint hidden;
  int32_t hidden_zero_point, x_zero_point, h_zero_point;
  int cell_log2;      // the cell state's scale is 2^cell_log2, -15 to -9
  int32_t cell_clip;  // 0: none
};

Result<IntegerLstm> ResolveIntegerLstm(const OpDescription& op);

}  // namespace fuselite::kernels
