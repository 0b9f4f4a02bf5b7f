// Operators of which hardly any drawn operands fit one another: products, recurrent cells,
// attention, weights in blocks.
#pragma once

#include "tests/kernels/op_tester.h"

namespace fuselite::fuzz {

struct FittingCase {
  kernels::testing::OpTester tester;
  // How far an implementation may be from another one, in parts of the largest value.
  float tolerance = 1e-4f;
};

FittingCase DrawFittingCase(kernels::testing::Random& random);

}  // namespace fuselite::fuzz
