// Operands of layers of few channels.
#pragma once

#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {

// Filters [O, KH, KW, I], where there are three of them with a scale for each.
inline ValueId Int8Filters(Int8Builder& b, const Shape& shape) {
  const ValueId filters = b.Int8Constant(shape, 0.01f);
  if (shape[0] == 3) {
    Quantization& q = b.graph().value(filters).info.quantization;
    q.axis = 0;
    q.scales = {0.010f, 0.012f, 0.045f};
    q.zero_points = ChannelValues<int32_t>::Repeated(3, 0);
  }
  return filters;
}

}  // namespace fuselite::fusion::testing
