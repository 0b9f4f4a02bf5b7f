// Operators of which hardly any drawn operands fit one another: products, attention, weights in
// blocks, recurrent cells, windows and indices that parameters describe, custom operators and those
// that rewrites make, tails, functions of quantized values.
#pragma once

#include "tests/kernels/op_tester.h"

namespace fuselite::fuzz {

struct FittingCase {
  kernels::testing::OpTester tester;
  // How far an implementation may be from another one, in parts of the largest value.
  float tolerance = 1e-4f;
};

// Any of those below, or a product.
FittingCase DrawFittingCase(kernels::testing::Random& random);

FittingCase DrawRecurrentCase(kernels::testing::Random& random);
FittingCase DrawIndexedCase(kernels::testing::Random& random);
FittingCase DrawCustomCase(kernels::testing::Random& random);
FittingCase DrawTailCase(kernels::testing::Random& random);
FittingCase DrawFunctionCase(kernels::testing::Random& random);

}  // namespace fuselite::fuzz
