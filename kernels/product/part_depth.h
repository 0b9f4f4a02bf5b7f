// Where the values lie that one window reads.
#pragma once

#include "kernels/product/description.h"
#include "kernels/product/rows.h"
#include "kernels/product/source.h"

namespace fuselite::kernels {

// The left row of one window of `part` in images of `memory`: the taps in the order of the weights.
DepthRuns DepthOf(const ProductDescription& description, const ProductPart& part,
                  const ImageMemory& memory);

}  // namespace fuselite::kernels
