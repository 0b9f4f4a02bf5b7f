// CUMSUM: running sums along an axis.
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

struct CumsumParams {
  bool exclusive;  // the sum of those before, without the element itself
  bool reverse;    // from the end
};

// (input, axis). Sums are made one after the other; integers wrap. A unit is one line along the
// axis. Dense operands.
Result<std::unique_ptr<Kernel>> BuildCumsum(const OpDescription&, const BuildContext&);

}  // namespace fuselite::kernels
