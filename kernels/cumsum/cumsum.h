// CUMSUM: running sums along an axis.
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

struct CumsumParams {
  bool exclusive;  // the sum of those before, without the element itself
  bool reverse;    // from the end
};

// Precondition: the shape rule took `op`.
Result<int> CumsumAxis(const OpDescription& op);

// (input, axis). Sums are made one after the other; integers wrap. Dense operands.
Result<std::unique_ptr<Kernel>> BuildCumsum(const OpDescription&, const BuildContext&);
Result<std::unique_ptr<Kernel>> BuildCumsumHighway(const OpDescription&, const BuildContext&);

}  // namespace fuselite::kernels
