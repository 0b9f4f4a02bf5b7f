// The parameters of RNN, UNIDIRECTIONAL_SEQUENCE_RNN and BIDIRECTIONAL_SEQUENCE_RNN.
#pragma once

#include "kernels/fields.h"

namespace fuselite::kernels {

struct RnnParams {
  Activation activation;
  bool time_major, merge_outputs, asymmetric_quantize_inputs;
};

}  // namespace fuselite::kernels
