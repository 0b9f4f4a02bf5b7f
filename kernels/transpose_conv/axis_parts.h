// What transposed convolutions are made of along one axis: ordinary ones, each of the outputs whose
// position plus padding leaves the same remainder by the stride, which meet the same taps.
#pragma once

#include <cstdint>

#include "kernels/window.h"

namespace fuselite::kernels {

// Along one axis, the outputs whose position plus padding leaves the remainder `remainder`. They
// meet the taps remainder, remainder + stride, ... of the filter, and neighbours among them meet
// neighbouring inputs, the last tap the first input.
struct AxisPart {
  int32_t remainder = 0, taps = 0;
  int32_t first = 0, outputs = 0;
  int32_t start = 0;  // the first output's first input in the padded image
};

// `axis` is that of the convolution that leads back: its input is the transposed one's output.
inline int32_t PaddingBefore(const WindowAxis& axis) {
  return (axis.filter + axis.stride - 1) / axis.stride - 1;
}

inline AxisPart PartOf(const WindowAxis& axis, int32_t remainder) {
  const int32_t s = axis.stride;
  AxisPart part{.remainder = remainder};
  part.taps = remainder < axis.filter ? (axis.filter - remainder + s - 1) / s : 0;
  part.first = ((remainder - axis.before) % s + s) % s;
  part.outputs = part.first < axis.input ? (axis.input - 1 - part.first) / s + 1 : 0;
  part.start = (part.first + axis.before) / s - (part.taps - 1) + PaddingBefore(axis);
  return part;
}

// The transposed convolution's input, with the padding that the parts' windows reach.
inline WindowAxis PaddedAxis(const WindowAxis& axis) {
  const int32_t last = (axis.input - 1 + axis.before) / axis.stride;
  WindowAxis padded;
  padded.input = axis.output;
  padded.before = PaddingBefore(axis);
  padded.output = padded.before + last + 1;
  return padded;
}

}  // namespace fuselite::kernels
