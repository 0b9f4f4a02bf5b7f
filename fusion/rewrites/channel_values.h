// Where a layer has numbers of its channels beside its filters.
#pragma once

#include "kernels/tail/tail.h"
#include "runtime/tensor.h"

namespace fuselite::fusion {

// f(values) for each ChannelValues that may have one for each channel.
template <class F>
void ForChannelValues(Quantization& quantization, F f) {
  f(quantization.scales);
  f(quantization.zero_points);
}

// f(values) for each ChannelValues of the tail's stages, also of those without operands.
template <class F>
void ForChannelValues(kernels::Tail& tail, F f) {
  for (kernels::TailStage& stage : tail.stages) {
    f(stage.requantize.multipliers);
    f(stage.requantize.shifts);
    f(stage.scales);
    f(stage.real_scales);
  }
}

}  // namespace fuselite::fusion
